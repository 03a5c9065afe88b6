/* A configuration file. */
#include "fuzz/target.h"

#include <string.h>

#include "config/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), *at = text;
        fuzz_check(text);
        memcpy(text, data, size);
        text[size] = '\0';
        struct config_line line;
        for (unsigned number = 0, before = 0; config_lines_next(&at, &number, &line);) {
                fuzz_check(line.number == number && number > before);
                fuzz_check(!line.key == !line.value);
                fuzz_check(at >= text && at <= text + size);
                before = number;
                if (!line.key)
                        continue;
                fuzz_check(*line.key && !strpbrk(line.key, "=\n"));
                fuzz_check(line.value > line.key && line.value + strlen(line.value) <= at);
        }
        free(text);
        return 0;
}
