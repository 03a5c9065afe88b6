/* The table of cryptographic operations that TLS needs. SpanCL's libraries need libc alone. The
 * module behind this table, libspancl-tls.so (src/tls), needs OpenSSL and is loaded with the first
 * TLS link.
 *
 * Handshakes are sans-IO: bytes in, bytes out. After a handshake the library only seals and opens
 * records. Their keys are made from the two traffic secrets (RFC 8446). So a connection can be
 * handed to another process or to the kernel, and one thread may send while another receives. */
#ifndef SPANCL_TRANSPORT_CRYPTO_H
#define SPANCL_TRANSPORT_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/iovec.h"

enum {
        CRYPTO_VERSION = 5, /* of this table */
        CRYPTO_SECRET = 32,
        CRYPTO_FINGERPRINT = 32, /* SHA-256 of a public key (SubjectPublicKeyInfo) */
        CRYPTO_TAG = 16,
        CRYPTO_NONCE = 12,
        CRYPTO_NAME_MAX = 63,
        CRYPTO_TEXT_MAX = 200,
        CRYPTO_RECORD_MAX = 16384, /* bytes of content in a record */
        CRYPTO_RECORD_MIN = 63,    /* the least limit that a side may set (RFC 8449) */
        CRYPTO_BEFORE_MAX = 8,     /* earlier keys, each of which handed over to the next */
        /* Ed25519 (RFC 8032). */
        CRYPTO_PUBLIC = 32,
        CRYPTO_SIGNATURE = 64,
};

enum crypto_cipher { CRYPTO_AES_128_GCM = 1, CRYPTO_CHACHA20_POLY1305 = 2 };

/* A pre-shared secret and its name on the wire. */
struct crypto_psk {
        char name[CRYPTO_NAME_MAX + 1];
        uint8_t secret[CRYPTO_SECRET];
        /* On a server: only the nano client with this fingerprint has the secret. Only such a client may leave out the
         * Diffie-Hellman exchange, because its processor is slow. */
        bool known;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
};

struct crypto_params {
        bool server;
        const char *identity;  /* PEM: private key and certificate(s); NULL: none (a client's) */
        const char *authority; /* PEM: certificates that vouch for the other side's; NULL: none */
};

/* The result of a handshake. */
struct crypto_result {
        enum crypto_cipher cipher;
        uint8_t send[CRYPTO_SECRET], receive[CRYPTO_SECRET];
        char psk[CRYPTO_NAME_MAX + 1]; /* both sides have this one; "": not used */
        /* The other side showed a certificate and proved that it has its key, or it has the secret of a nano client: */
        bool known;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        /* Keys that it replaced, the newest first: each has signed the certificate of the next. */
        unsigned before_count;
        uint8_t before[CRYPTO_BEFORE_MAX][CRYPTO_FINGERPRINT];
        bool vouched;        /* an authority vouches for it; on the client's side for `host`, too */
        unsigned record_max; /* bytes of content in one record that the other side takes */
};

/* The key and IV derived from a traffic secret (RFC 8446, 7.3), for sealing and opening outside the
 * module. AES-128 takes the first half of `key`. */
struct crypto_raw {
        uint8_t key[32], iv[CRYPTO_NONCE];
};

struct crypto_context;
struct crypto_shake;
struct crypto_key;

struct crypto_ops {
        unsigned version; /* CRYPTO_VERSION */

        /* Make the state that many handshakes share. NULL: the PEM is wrong; `text` says how. */
        struct crypto_context *(*context_new)(const struct crypto_params *p,
                                              char text[CRYPTO_TEXT_MAX]);
        void (*context_free)(struct crypto_context *c); /* handshakes go on; NULL allowed */

        /* Begin a handshake. A client offers `psk` (NULL: none) and asks for `host`. A server calls
         * `find` to look up a secret that a client offers. NULL: out of memory. */
        struct crypto_shake *(*shake_new)(struct crypto_context *c, const char *host,
                                          const struct crypto_psk *psk,
                                          bool (*find)(void *user, struct crypto_psk *psk),
                                          void *user);
        void (*shake_free)(struct crypto_shake *s); /* NULL allowed */

        /* Feed received bytes, perhaps none. 1: done; 0: more bytes have to come; negative: it
         * failed, and `text` says why. In each case there may be bytes to send. */
        int (*shake_step)(struct crypto_shake *s, const void *data, size_t size,
                          char text[CRYPTO_TEXT_MAX]);

        /* Take at most `size` bytes to send. Returns how many. */
        size_t (*shake_output)(struct crypto_shake *s, void *out, size_t size);

        /* When done: the result, and at most `size` bytes that came behind the handshake. Returns
         * how many; negative: there are more. */
        long (*shake_result)(struct crypto_shake *s, struct crypto_result *ret, void *rest,
                             size_t size);

        /* Make a key from a traffic secret, for one direction. NULL: out of memory. */
        struct crypto_key *(*key_new)(enum crypto_cipher cipher, bool seal,
                                      const uint8_t secret[CRYPTO_SECRET]);
        void (*key_free)(struct crypto_key *k); /* NULL allowed */

        /* The raw bytes of the same key. False: the library failed. */
        bool (*key_raw)(enum crypto_cipher cipher, const uint8_t secret[CRYPTO_SECRET],
                        struct crypto_raw *ret);

        /* Seal the pieces, with `type` behind them, as record number `seq` with the header `head`.
         * `out` has room for their size + 1 + CRYPTO_TAG bytes. False: the library failed. */
        bool (*seal)(struct crypto_key *k, uint64_t seq, const uint8_t head[5],
                     const struct iovec *pieces, int n, uint8_t type, uint8_t *out);

        /* Open a record: `size` bytes, the tag included. The content goes into places of size - 1 -
         * CRYPTO_TAG bytes, the type to *ret_type. False: not genuine; the places were written
         * nevertheless. */
        bool (*open)(struct crypto_key *k, uint64_t seq, const uint8_t head[5], const uint8_t *in,
                     size_t size, const struct iovec *places, int n, uint8_t *ret_type);

        /* Replace `secret` by the one that follows it (RFC 8446, 7.2). */
        bool (*next_secret)(uint8_t secret[CRYPTO_SECRET]);

        /* Make a key pair and a certificate for it, named `name`. Returns PEM to be freed with
         * free(3); NULL on failure. */
        char *(*identity_new)(const char *name);
        /* Make a key pair that follows the identity `pem`. The old key signs the new certificate,
         * and the old certificates stand behind it. NULL: neither identity_new nor this operation
         * made `pem`. */
        char *(*identity_next)(const char *pem, const char *name);
        bool (*identity_fingerprint)(const char *pem, uint8_t ret[CRYPTO_FINGERPRINT]);
        /* Write the identity's public key. False: it is no key of Ed25519. */
        bool (*identity_public)(const char *pem, uint8_t ret[CRYPTO_PUBLIC]);
        /* Sign data with the identity's private key. The data begins with a text that names its purpose, so that no
         * signature serves for another one. False: it is no key of Ed25519, or the library failed. */
        bool (*identity_sign)(const char *pem, const void *data, size_t size,
                              uint8_t ret[CRYPTO_SIGNATURE]);
        /* Verify a signature by a key that may be a stranger's, and write the key's fingerprint. False: it is not
         * genuine. */
        bool (*verify)(const uint8_t public[CRYPTO_PUBLIC], const void *data, size_t size,
                       const uint8_t signature[CRYPTO_SIGNATURE], uint8_t ret[CRYPTO_FINGERPRINT]);

        /* Derive a secret from a text (PBKDF2). Each guess of an attacker costs `rounds`, too. */
        bool (*stretch)(const char *text, const char *salt, unsigned rounds,
                        uint8_t ret[CRYPTO_SECRET]);
};

/* The symbol that the module exports. */
#define CRYPTO_SYMBOL "spancl_crypto"
extern const struct crypto_ops spancl_crypto;

#endif
