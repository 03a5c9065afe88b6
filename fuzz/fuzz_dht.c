/* A value of a distributed hash table: a server's record. Any signature is good here, so that the target reaches the
 * end; the strings are read before it. */
#include <stdlib.h>
#include <string.h>

#include "discover/dht_record.h"
#include "fuzz/target.h"

#define NOW 1700000000000ull

static bool verify(const uint8_t public[CRYPTO_PUBLIC], const void *data, size_t size,
                   const uint8_t signature[CRYPTO_SIGNATURE], uint8_t ret[CRYPTO_FINGERPRINT])
{
        (void)public, (void)data, (void)size, (void)signature;
        memset(ret, 0xab, CRYPTO_FINGERPRINT);
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct crypto_ops crypto = { .verify = verify };
        struct dht_record r;
        char body[LINE_MAX_SIZE];
        uint8_t *copy = malloc(size + 1); /* so that AddressSanitizer sees its end */
        memcpy(copy, data, size);
        const char *why = dht_record_read(copy, size, &crypto, NOW, &r);
        free(copy);
        if (why)
                return 0;
        fuzz_check(size >= DHT_VALUE_MIN && size <= DHT_VALUE_MAX);
        fuzz_check(strlen(r.found.txt.key) == TXT_KEY);
        fuzz_check(r.at_ms <= NOW + DHT_SKEW_S * 1000ull && r.at_ms + DHT_LIFE_S * 1000ull > NOW);
        if (r.gone)
                return 0;
        fuzz_check(*r.name && strlen(r.name) <= FOUND_NAME_MAX && line_is_utf8(r.name));
        fuzz_check(r.found.port && r.found.port <= 65535);
        fuzz_check(r.found.address_count && r.found.address_count <= FOUND_ADDRESSES);
        r.found.id = r.found.txt.key;
        r.found.name = r.name;
        line_body(&r.found, body);
        fuzz_check(strlen(body) + 64 < LINE_MAX_SIZE && line_is_utf8(body));
        return 0;
}
