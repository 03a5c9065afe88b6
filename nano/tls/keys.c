#include "tls/keys.h"

#include <string.h>

#include <mbedtls/chachapoly.h>
#include <mbedtls/version.h>

/* The functions that return a status got other names in mbedTLS 3. SHA-256 in software has no failures. */
#if MBEDTLS_VERSION_NUMBER < 0x03000000
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret
#endif

enum { BLOCK = 64, LABEL_MAX = 12 };

void tls_wipe(void *p, size_t size)
{
        volatile uint8_t *at = p;
        while (size--)
                *at++ = 0;
}

/* ---- hashes ----------------------------------------------------------------------------------- */

void tls_hash_begin(mbedtls_sha256_context *c)
{
        mbedtls_sha256_init(c);
        (void)mbedtls_sha256_starts(c, 0);
}

void tls_hash_add(mbedtls_sha256_context *c, const void *data, size_t size)
{
        (void)mbedtls_sha256_update(c, data, size);
}

void tls_hash_end(const mbedtls_sha256_context *c, uint8_t ret[TLS_HASH])
{
        mbedtls_sha256_context copy;
        mbedtls_sha256_init(&copy);
        mbedtls_sha256_clone(&copy, c);
        (void)mbedtls_sha256_finish(&copy, ret);
        mbedtls_sha256_free(&copy);
}

void tls_hmac(const uint8_t *key, size_t key_size, const void *data, size_t size,
              uint8_t ret[TLS_HASH])
{
        mbedtls_sha256_context c;
        uint8_t pad[BLOCK] = { 0 };
        memcpy(pad, key, key_size);
        for (unsigned i = 0; i < BLOCK; i++)
                pad[i] ^= 0x36;
        tls_hash_begin(&c);
        tls_hash_add(&c, pad, BLOCK);
        tls_hash_add(&c, data, size);
        tls_hash_end(&c, ret);
        for (unsigned i = 0; i < BLOCK; i++)
                pad[i] ^= 0x36 ^ 0x5c;
        tls_hash_begin(&c);
        tls_hash_add(&c, pad, BLOCK);
        tls_hash_add(&c, ret, TLS_HASH);
        tls_hash_end(&c, ret);
        mbedtls_sha256_free(&c);
        tls_wipe(pad, sizeof(pad));
}

void tls_expand(const uint8_t secret[TLS_HASH], const char *label, const uint8_t *context,
                uint8_t *ret, size_t size)
{
        static const char prefix[] = "tls13 ";
        uint8_t info[2 + 1 + sizeof(prefix) - 1 + LABEL_MAX + 1 + TLS_HASH + 1], block[TLS_HASH];
        const size_t before = sizeof(prefix) - 1, n = strlen(label);
        size_t at = 0;
        info[at++] = 0;
        info[at++] = (uint8_t)size;
        info[at++] = (uint8_t)(before + n);
        memcpy(info + at, prefix, before);
        memcpy(info + at + before, label, n);
        at += before + n;
        info[at++] = context ? TLS_HASH : 0;
        if (context)
                memcpy(info + at, context, TLS_HASH);
        at += context ? TLS_HASH : 0;
        info[at++] = 1; /* the first block, and the only one */
        tls_hmac(secret, TLS_HASH, info, at, block);
        memcpy(ret, block, size);
        tls_wipe(block, sizeof(block));
}

void tls_derive_empty(const uint8_t secret[TLS_HASH], const char *label, uint8_t ret[TLS_HASH])
{
        mbedtls_sha256_context c;
        uint8_t none[TLS_HASH];
        tls_hash_begin(&c);
        tls_hash_end(&c, none);
        mbedtls_sha256_free(&c);
        tls_expand(secret, label, none, ret, TLS_HASH);
}

/* ---- records ---------------------------------------------------------------------------------- */

void tls_half_start(struct spancl_nano_tls_half *h)
{
        tls_expand(h->secret, "key", NULL, h->key, sizeof(h->key));
        tls_expand(h->secret, "iv", NULL, h->iv, sizeof(h->iv));
        h->seq = 0;
        h->sealed = true;
}

void tls_half_renew(struct spancl_nano_tls_half *h)
{
        tls_expand(h->secret, "traffic upd", NULL, h->secret, sizeof(h->secret));
        tls_half_start(h);
}

static void next_nonce(struct spancl_nano_tls_half *h, uint8_t ret[TLS_NONCE])
{
        memcpy(ret, h->iv, TLS_NONCE);
        for (unsigned i = 0; i < 8; i++)
                ret[TLS_NONCE - 1 - i] ^= (uint8_t)(h->seq >> 8 * i);
        h->seq++;
}

size_t tls_seal(struct spancl_nano_tls_half *h, uint8_t *record, size_t size, enum tls_type type)
{
        mbedtls_chachapoly_context c;
        uint8_t nonce[TLS_NONCE], *content = record + TLS_HEAD;
        content[size++] = (uint8_t)type;
        record[0] = TLS_DATA;
        record[1] = record[2] = 3;
        record[3] = (uint8_t)((size + TLS_TAG) >> 8);
        record[4] = (uint8_t)(size + TLS_TAG);
        next_nonce(h, nonce);
        mbedtls_chachapoly_init(&c);
        const bool ok = !mbedtls_chachapoly_setkey(&c, h->key) &&
                        !mbedtls_chachapoly_encrypt_and_tag(&c, size, nonce, record, TLS_HEAD,
                                                            content, content, content + size);
        mbedtls_chachapoly_free(&c);
        return ok ? TLS_HEAD + size + TLS_TAG : 0;
}

int tls_open(struct spancl_nano_tls_half *h, uint8_t *record, size_t size, uint8_t *ret_type)
{
        mbedtls_chachapoly_context c;
        uint8_t nonce[TLS_NONCE], *content = record + TLS_HEAD;
        if (size < TLS_HEAD + 1 + TLS_TAG)
                return -1;
        size -= TLS_HEAD + TLS_TAG;
        next_nonce(h, nonce);
        mbedtls_chachapoly_init(&c);
        const bool ok = !mbedtls_chachapoly_setkey(&c, h->key) &&
                        !mbedtls_chachapoly_auth_decrypt(&c, size, nonce, record, TLS_HEAD,
                                                         content + size, content, content);
        mbedtls_chachapoly_free(&c);
        if (!ok)
                return -1;
        /* The type is the last byte that is not padding. */
        while (size && !content[size - 1])
                size--;
        if (!size)
                return -1;
        *ret_type = content[size - 1];
        return (int)size - 1;
}
