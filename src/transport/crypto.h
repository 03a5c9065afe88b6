/* What TLS needs of a cryptographic library. Our libraries need libc alone: the module behind this table,
 * libspancl-tls.so (src/tls), stands on OpenSSL and is loaded when the first TLS link is made.
 *
 * Handshakes are sans-IO: bytes in, bytes out. Afterwards the library has no part in the connection but to
 * seal and open records with keys made from the two secrets (RFC 8446), so that a connection can be handed
 * to another process or to the kernel, and one thread may send while another receives. */
#ifndef SPANCL_TRANSPORT_CRYPTO_H
#define SPANCL_TRANSPORT_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
        CRYPTO_VERSION = 3, /* of this table */
        CRYPTO_SECRET = 32,
        CRYPTO_FINGERPRINT = 32, /* SHA-256 of a public key (SubjectPublicKeyInfo) */
        CRYPTO_TAG = 16,
        CRYPTO_NONCE = 12,
        CRYPTO_NAME_MAX = 63,
        CRYPTO_TEXT_MAX = 200,
        CRYPTO_BEFORE_MAX = 8, /* keys that one has followed */
};

enum crypto_cipher { CRYPTO_AES_128_GCM = 1, CRYPTO_CHACHA20_POLY1305 = 2 };

/* A pre-shared secret and what it is called on the wire. */
struct crypto_psk {
        char name[CRYPTO_NAME_MAX + 1];
        uint8_t secret[CRYPTO_SECRET];
};

struct crypto_params {
        bool server;
        const char *identity;  /* PEM: private key and certificate(s); NULL: none (a client's) */
        const char *authority; /* PEM: certificates that vouch for the other side's; NULL: none */
};

/* What a handshake found out. */
struct crypto_result {
        enum crypto_cipher cipher;
        uint8_t send[CRYPTO_SECRET], receive[CRYPTO_SECRET];
        char psk[CRYPTO_NAME_MAX + 1]; /* both sides have this one; "": not used */
        bool known;                    /* the other side showed a certificate, and has its key: */
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        /* Keys that it follows, the newest first: each has signed the certificate of the next. */
        unsigned before_count;
        uint8_t before[CRYPTO_BEFORE_MAX][CRYPTO_FINGERPRINT];
        bool vouched; /* by the authority, for `host` too on the client's side */
};

/* What a traffic secret stands for (RFC 8446, 7.3), for who seals and opens elsewhere: AES-128 takes the first half of
 * `key`. */
struct crypto_raw {
        uint8_t key[32], iv[CRYPTO_NONCE];
};

struct crypto_context;
struct crypto_shake;
struct crypto_key;

struct crypto_ops {
        unsigned version; /* CRYPTO_VERSION */

        /* Everything that many handshakes share. NULL with a sentence: what is wrong with the PEM. */
        struct crypto_context *(*context_new)(const struct crypto_params *p,
                                              char text[CRYPTO_TEXT_MAX]);
        void (*context_free)(struct crypto_context *c); /* handshakes go on; NULL allowed */

        /* A client offers `psk` (NULL: none) and asks for `host`; a server is asked with `find` for
         * those it has. NULL: out of memory. */
        struct crypto_shake *(*shake_new)(struct crypto_context *c, const char *host,
                                          const struct crypto_psk *psk,
                                          bool (*find)(void *user, struct crypto_psk *psk),
                                          void *user);
        void (*shake_free)(struct crypto_shake *s); /* NULL allowed */

        /* Feed bytes that came, perhaps none. 1: done; 0: more has to come; negative: it failed, with
         * a sentence. In each case there may be bytes to send. */
        int (*shake_step)(struct crypto_shake *s, const void *data, size_t size,
                          char text[CRYPTO_TEXT_MAX]);

        /* Take at most `size` bytes to send; returns how many. */
        size_t (*shake_output)(struct crypto_shake *s, void *out, size_t size);

        /* When done: the result, and at most `size` bytes that came behind the handshake. Returns how
         * many; negative: there are more. */
        long (*shake_result)(struct crypto_shake *s, struct crypto_result *ret, void *rest,
                             size_t size);

        /* A key made from a traffic secret, for one direction. NULL: out of memory. */
        struct crypto_key *(*key_new)(enum crypto_cipher cipher, bool seal,
                                      const uint8_t secret[CRYPTO_SECRET]);
        void (*key_free)(struct crypto_key *k); /* NULL allowed */

        /* The same key itself. False: the library failed. */
        bool (*key_raw)(enum crypto_cipher cipher, const uint8_t secret[CRYPTO_SECRET],
                        struct crypto_raw *ret);

        /* The pieces, `type` behind them, sealed as record number `seq` with the header `head`: to
         * `out`, which has their size + 1 + CRYPTO_TAG bytes. False: the library failed. */
        bool (*seal)(struct crypto_key *k, uint64_t seq, const uint8_t head[5],
                     const struct iovec *pieces, int n, uint8_t type, uint8_t *out);

        /* The contrary: `size` bytes, the tag included, into places of size - 1 - CRYPTO_TAG bytes, and
         * *ret_type. False: not genuine. Places were written nevertheless. */
        bool (*open)(struct crypto_key *k, uint64_t seq, const uint8_t head[5], const uint8_t *in,
                     size_t size, const struct iovec *places, int n, uint8_t *ret_type);

        /* The secret that follows `secret` (RFC 8446, 7.2). */
        bool (*next_secret)(uint8_t secret[CRYPTO_SECRET]);

        /* A new key pair with a certificate for it, named `name`, as PEM; freed with free(3). NULL. */
        char *(*identity_new)(const char *name);
        /* The same to follow that of `pem`, whose key signs the new certificate; its certificates stand behind it.
         * NULL: `pem` is not one that identity_new or this made. */
        char *(*identity_next)(const char *pem, const char *name);
        bool (*identity_fingerprint)(const char *pem, uint8_t ret[CRYPTO_FINGERPRINT]);

        /* A secret made from a text (PBKDF2): each guess takes as many rounds. */
        bool (*stretch)(const char *text, const char *salt, unsigned rounds,
                        uint8_t ret[CRYPTO_SECRET]);
};

/* What the module exports. */
#define CRYPTO_SYMBOL "spancl_crypto"
extern const struct crypto_ops spancl_crypto;

#endif
