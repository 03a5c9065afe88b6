/* The key schedule (RFC 8446, 7.1) and the records (RFC 8446, 5) of TLS 1.3 with TLS_CHACHA20_POLY1305_SHA256; private
 * to nano/tls. No state; sizes are bytes. */
#ifndef SPANCL_NANO_TLS_KEYS_H
#define SPANCL_NANO_TLS_KEYS_H

#include <mbedtls/sha256.h>

#include "tls/tls.h"

enum { TLS_HASH = 32, TLS_HEAD = 5, TLS_TAG = 16, TLS_NONCE = 12 };

enum tls_type { TLS_CHANGE = 20, TLS_ALERT = 21, TLS_HANDSHAKE = 22, TLS_DATA = 23 };

/* A running hash. tls_hash_end leaves it as it is, so that more can be added. */
void tls_hash_begin(mbedtls_sha256_context *c);
void tls_hash_add(mbedtls_sha256_context *c, const void *data, size_t size);
void tls_hash_end(const mbedtls_sha256_context *c, uint8_t ret[TLS_HASH]);

/* HMAC-SHA-256; `key` has at most 64 bytes. HKDF-Extract is the same function (RFC 5869). */
void tls_hmac(const uint8_t *key, size_t key_size, const void *data, size_t size,
              uint8_t ret[TLS_HASH]);

/* HKDF-Expand-Label (RFC 8446, 7.1) with a label of at most 12 letters, and a hash or NULL as context. `size`: at most
 * TLS_HASH. */
void tls_expand(const uint8_t secret[TLS_HASH], const char *label, const uint8_t *context,
                uint8_t *ret, size_t size);

/* Derive-Secret of no messages. */
void tls_derive_empty(const uint8_t secret[TLS_HASH], const char *label, uint8_t ret[TLS_HASH]);

/* Have a direction use the traffic secret h->secret from its next record on. tls_half_renew: first replace the secret
 * by the one that follows it. */
void tls_half_start(struct spancl_nano_tls_half *h);
void tls_half_renew(struct spancl_nano_tls_half *h);

/* Seal `size` bytes, which stand at record + TLS_HEAD, with their type behind them. Returns the record's size, which is
 * `size` + SPANCL_NANO_TLS_OVERHEAD. 0: the cipher failed, and nothing may be sent. */
size_t tls_seal(struct spancl_nano_tls_half *h, uint8_t *record, size_t size, enum tls_type type);

/* Open a whole record in its place. Returns the size of its content, which stands at record + TLS_HEAD; negative: it is
 * not genuine. */
int tls_open(struct spancl_nano_tls_half *h, uint8_t *record, size_t size, uint8_t *ret_type);

/* Overwrite a secret; the compiler does not leave this out. */
void tls_wipe(void *p, size_t size);

#endif
