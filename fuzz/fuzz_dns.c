/* The answers of a DNS message that discovery receives. */
#include <stdlib.h>
#include <string.h>

#include "discover/dns_message.h"
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct dns_message m;
        struct dns_record r;
        char name[DNS_NAME_MAX + 1], label[DNS_NAME_MAX + 1];
        size_t end;
        uint8_t *copy = malloc(size + 1); /* so that AddressSanitizer sees its end */
        memcpy(copy, data, size);
        for (bool more = dns_begin(&m, copy, size); more && dns_next(&m, &r);) {
                fuzz_check(r.at + r.size <= size && m.at <= size);
                size_t skip = r.type == DNS_SRV ? 6 : 0;
                if ((r.type != DNS_PTR && r.type != DNS_SRV) ||
                    !dns_name(&m, r.at + skip, name, &end))
                        continue;
                fuzz_check(strlen(name) <= DNS_NAME_MAX && end <= size);
                dns_label(name, label);
                fuzz_check(strlen(label) <= 63);
        }
        free(copy);
        return 0;
}
