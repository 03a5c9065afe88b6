/* The TXT record of a service that discovery finds, and the line that describes the service. */
#include <stdlib.h>
#include <string.h>

#include "discover/line.h"
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char body[LINE_MAX_SIZE], name[FOUND_NAME_MAX + 1] = "", id[FOUND_ID_MAX + 1] = "";
        struct found f = { .id = id, .name = name, .kind = "spancl", .port = 7777 };
        uint8_t *copy = malloc(size + 1); /* so that AddressSanitizer sees its end */
        memcpy(copy, data, size);
        int r = txt_parse(copy, size, &f.txt);
        free(copy);
        fuzz_check(r == 0 || r == SP_E_INVAL || r == SP_E_LIMIT);
        fuzz_check(strlen(f.txt.key) == 0 || strlen(f.txt.key) == TXT_KEY);
        memcpy(name, data, size < FOUND_NAME_MAX ? size : FOUND_NAME_MAX);
        memcpy(id, data, size < FOUND_ID_MAX ? size : FOUND_ID_MAX);
        for (int i = 0; i < FOUND_ADDRESSES; i++) {
                char address[] = "fe80::a%interface";
                address[6] = (char)('a' + i);
                found_add_address(&f, address);
        }
        line_body(&f, body);
        size_t n = strlen(body), quotes = 0;
        fuzz_check(n + 64 < LINE_MAX_SIZE && line_is_utf8(body));
        for (size_t i = 0; i < n; i++) {
                fuzz_check((uint8_t)body[i] >= 0x20 && body[i] != 0x7f);
                if (body[i] == '\\')
                        i++;
                else
                        quotes += body[i] == '"';
        }
        fuzz_check(quotes % 2 == 0 && quotes >= 10);
        return 0;
}
