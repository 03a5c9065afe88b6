/* TLS 1.3 for the nano client (RFC 8446), between the client and a transport of plain TCP.
 *
 * The device and the server share a key of 32 bytes, which `spancld pair --nano NAME` makes. It authenticates both
 * sides, so there are no certificates, and no public-key arithmetic. The cipher is ChaCha20-Poly1305; ciphers and hash
 * are mbedTLS's. Keys are made without a Diffie-Hellman exchange (psk_ke): an attacker who records the connections and
 * gets the device's key later can decrypt them.
 *
 * A record from the server has at most SPANCL_NANO_TLS_RECORD bytes of content (RFC 8449), and one from here has at
 * most SPANCL_NANO_TLS_SEND. No memory is allocated. One thread, as for the client. */
#ifndef SPANCL_NANO_TLS_H
#define SPANCL_NANO_TLS_H

#include <stdbool.h>

#include "spancl_nano.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SPANCL_NANO_TLS_RECORD
#define SPANCL_NANO_TLS_RECORD 512
#endif
#ifndef SPANCL_NANO_TLS_SEND
#define SPANCL_NANO_TLS_SEND 192
#endif
#define SPANCL_NANO_TLS_KEY      32
#define SPANCL_NANO_TLS_OVERHEAD 22 /* a record's head, type and tag */

/* The keys of one direction. */
struct spancl_nano_tls_half {
        uint64_t seq; /* the next record's number */
        uint8_t secret[32], key[32], iv[12];
        bool sealed; /* this direction has its keys */
};

struct spancl_nano_tls_lane {
        struct spancl_nano_tls_half rx, tx;
        uint16_t in_have;             /* bytes of the record that is arriving */
        uint16_t plain_at, plain_end; /* its content that nobody has taken yet, in `in` */
        uint16_t out_at, out_end;     /* of a record, the bytes that the transport has not taken */
        bool update_owed, broken;
        uint8_t in[SPANCL_NANO_TLS_RECORD + SPANCL_NANO_TLS_OVERHEAD];
        uint8_t out[SPANCL_NANO_TLS_SEND + SPANCL_NANO_TLS_OVERHEAD];
};

struct spancl_nano_tls {
        const struct spancl_nano_transport *below;
        const uint8_t *key;
        const char *error;
        uint8_t random[32];
        uint32_t opened;
        uint64_t now_ms;
        struct spancl_nano_tls_lane lanes[2];
};

/* Return the functions of a transport that encrypts what `below` carries. `key`: SPANCL_NANO_TLS_KEY bytes; it, `below`
 * and *t are borrowed until spancl_nano_stop. `random`: 32 bytes, different at each start, and not those of struct
 * spancl_nano_config; they are copied. If they repeat, records can be forged. */
struct spancl_nano_transport spancl_nano_tls(struct spancl_nano_tls *t,
                                             const struct spancl_nano_transport *below,
                                             const uint8_t *key, const uint8_t *random);

/* Return why the last connection failed, as a static text; "" if it did not fail. A program between both sides can
 * cause each of these failures, so the client tries again after all of them. */
const char *spancl_nano_tls_error(const struct spancl_nano_tls *t);

#ifdef __cplusplus
}
#endif

#endif
