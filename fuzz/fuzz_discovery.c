/* Lines of a source of discovery, in pieces. */
#include <string.h>

#include "base/log.h"
#include "discovery/records.h"
#include "discovery/trust.h"
#include "fuzz/target.h"

static void check_record(const struct discovered *d)
{
        struct server_spec spec;
        struct trust nobody = { 0 };
        fuzz_check(*d->id && strlen(d->id) <= DISCOVERED_ID_MAX);
        fuzz_check(*d->name && strlen(d->name) <= DISCOVERED_NAME_MAX);
        fuzz_check(d->address_count && d->address_count <= DISCOVERED_ADDRESSES_MAX);
        fuzz_check(d->port && d->port <= 65535);
        fuzz_check(!*d->key || strlen(d->key) == DISCOVERED_KEY);
        for (const char *p = d->name; *p; p++)
                fuzz_check((unsigned char)*p >= ' ' && *p != 127);
        /* The network's word is never enough. */
        enum discovered_use use = trust_judge(&nobody, d, false);
        fuzz_check(use != DISCOVERED_USED && use != DISCOVERED_USED_HERE);
        for (unsigned i = 0; i < d->address_count; i++) {
                fuzz_check(discovered_spec(d, use, i, &spec) < 0);
                if (trust_judge(&nobody, d, true) == DISCOVERED_USED_HERE) {
                        fuzz_check(discovered_spec(d, DISCOVERED_USED_HERE, i, &spec) == 0);
                        server_spec_fini(&spec);
                }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct records r;
        log_threshold = LOG_NONE;
        memset(&r, 0, sizeof(r));
        for (size_t at = 0; at < size;) {
                size_t n = 1 + data[at] % 64; /* the pieces of a pipe */
                n = n < size - at ? n : size - at;
                (void)records_feed(&r, "fuzz", (const char *)data + at, n);
                at += n;
        }
        fuzz_check(r.count <= RECORDS_MAX);
        for (size_t i = 0; i < r.count; i++)
                check_record(&r.list[i]);
        records_fini(&r);
        return 0;
}
