/* A server's record in a distributed hash table, signed with the server's key. Anybody can store values in the table,
 * and any node can alter what it stores, so a value is worth its signature alone. Stateless.
 *
 * A value is DHT_MAGIC, the public key, strings as in a TXT record (txt.h), and the signature of all bytes before it.
 * The strings are "at=" the time of signing, "name=", "port=", "a=" for each address, and those of txt.h. A server
 * that leaves signs "gone=1" and the time alone. */
#ifndef SPANCL_DISCOVER_DHT_RECORD_H
#define SPANCL_DISCOVER_DHT_RECORD_H

#include "discover/line.h"
#include "transport/crypto.h"

/* TLS and certificates sign nothing that begins like this. */
#define DHT_MAGIC      "SPANCL-DHT 1\n"
#define DHT_MAGIC_SIZE (sizeof(DHT_MAGIC) - 1)

enum {
        DHT_VALUE_MIN = DHT_MAGIC_SIZE + CRYPTO_PUBLIC + CRYPTO_SIGNATURE,
        DHT_VALUE_MAX = DHT_VALUE_MIN + TXT_MAX,
        DHT_PUBLISH_S = 600, /* between two records of a server */
        DHT_LIFE_S = 1500,   /* a record is valid so long after its signing */
        DHT_SKEW_S = 300,    /* clocks may differ so much */
};

struct dht_record {
        uint64_t at_ms; /* the time of signing, since 1970 */
        bool gone;      /* the server has left: `found` has the key alone */
        char name[FOUND_NAME_MAX + 1];
        struct found found; /* `id` and `name` are NULL; the key is the one that has signed */
};

/* Write a record as a value, signed with the identity `pem`. Returns its size; 0: the identity has no key of Ed25519,
 * or the record is too large. The key in `found` is not read. */
size_t dht_record_write(const struct dht_record *r, const struct crypto_ops *crypto,
                        const char *pem, uint8_t ret[DHT_VALUE_MAX]);

/* Read a value at the time `now_ms`. Returns NULL, or the reason to refuse it, a static text: it is no record, has a
 * wrong string, no address that another host can have, is too old or from the future, or was not signed. The strings
 * are read first, because a signature costs more. */
const char *dht_record_read(const void *data, size_t size, const struct crypto_ops *crypto,
                            uint64_t now_ms, struct dht_record *ret);

#endif
