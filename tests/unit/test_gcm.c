/* The AES-GCM of src/tls/gcm.c, beside OpenSSL's: the same bytes for every size and however they are cut into
 * pieces, and nothing that was changed is opened. Skipped where there is none (gcm.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "tls/gcm.h"

enum { SIZE_MAX_TRIED = 16384, SMALL = 700, PIECES = 32, TRIES = 300 };

static const uint8_t head[5] = { 23, 3, 3, 0x40, 0x11 };
static uint8_t key[GCM_KEY], nonce[GCM_NONCE], content[SIZE_MAX_TRIED];
static uint8_t sealed[SIZE_MAX_TRIED + 1 + GCM_TAG], expected[sizeof(sealed)],
        opened[SIZE_MAX_TRIED];

static struct gcm *start(void)
{
        srand(1);
        for (size_t i = 0; i < sizeof(content); i++)
                content[i] = (uint8_t)rand();
        for (size_t i = 0; i < sizeof(key); i++)
                key[i] = (uint8_t)rand();
        struct gcm *g = gcm_new(key);
        if (!g)
                skip();
        return g;
}

static void seal_with_openssl(size_t size, uint8_t type)
{
        int n;
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
        assert_int_equal(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, nonce), 1);
        assert_int_equal(EVP_EncryptUpdate(c, NULL, &n, head, sizeof(head)), 1);
        assert_int_equal(EVP_EncryptUpdate(c, expected, &n, content, (int)size), 1);
        assert_int_equal(EVP_EncryptUpdate(c, expected + size, &n, &type, 1), 1);
        assert_int_equal(EVP_EncryptFinal_ex(c, expected + size + 1, &n), 1);
        assert_int_equal(
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, expected + size + 1), 1);
        EVP_CIPHER_CTX_free(c);
}

/* Pieces of random sizes, some of them empty. */
static int cut(uint8_t *data, size_t size, struct iovec ret[PIECES])
{
        int n = 0;
        size_t at = 0;
        while (at < size && n < PIECES - 1) {
                size_t most = rand() % 2 ? 40 : size;
                size_t len = (size_t)rand() % (most + 1);
                len = len < size - at ? len : size - at;
                ret[n++] = (struct iovec){ data + at, len };
                at += len;
        }
        ret[n++] = (struct iovec){ data + at, size - at };
        return n;
}

static void check(struct gcm *g, size_t size)
{
        struct iovec iov[PIECES];
        uint8_t type = (uint8_t)rand(), got;
        nonce[rand() % GCM_NONCE]++;
        seal_with_openssl(size, type);
        gcm_seal(g, nonce, head, iov, cut(content, size, iov), type, sealed);
        assert_memory_equal(sealed, expected, size + 1 + GCM_TAG);

        memset(opened, 0, size);
        assert_true(gcm_open(g, nonce, head, sealed, iov, cut(opened, size, iov), &got));
        assert_memory_equal(opened, content, size);
        assert_int_equal(got, type);

        size_t changed = (size_t)rand() % (size + 1 + GCM_TAG);
        sealed[changed] ^= (uint8_t)(1 << rand() % 8);
        assert_false(gcm_open(g, nonce, head, sealed, iov, cut(opened, size, iov), &got));
}

static void records_are_those_of_openssl(void **state)
{
        struct gcm *g = start();
        for (size_t size = 0; size <= SMALL; size++)
                check(g, size);
        for (int i = 0; i < TRIES; i++)
                check(g, (size_t)rand() % (SIZE_MAX_TRIED + 1));
        check(g, SIZE_MAX_TRIED);
        gcm_free(g);
}

static void the_head_is_authenticated(void **state)
{
        struct gcm *g = start();
        struct iovec iov = { content, 100 };
        uint8_t other[5], type;
        gcm_seal(g, nonce, head, &iov, 1, 23, sealed);
        for (size_t i = 0; i < sizeof(other); i++) {
                memcpy(other, head, sizeof(other));
                other[i] ^= 1;
                iov.iov_base = opened;
                assert_false(gcm_open(g, nonce, other, sealed, &iov, 1, &type));
        }
        assert_true(gcm_open(g, nonce, head, sealed, &iov, 1, &type));
        gcm_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_are_those_of_openssl),
                cmocka_unit_test(the_head_is_authenticated),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
