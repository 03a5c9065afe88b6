/* The TLS of the nano client against the server's, without connections: which secrets may leave out the Diffie-Hellman
 * exchange, and what the server learns of a device. tests/nano/tls.py has the claims over real servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tls/tls.h"
#include "transport/nano_key.h"
#include "transport/tls.h"

static const struct crypto_ops *crypto;
static const uint8_t key[CRYPTO_SECRET] = { 9 }, other_key[CRYPTO_SECRET] = { 8 };

static struct {
        struct crypto_context *context;
        struct crypto_shake *shake;
        int step; /* the last shake_step's result */
        char text[CRYPTO_TEXT_MAX], asked[CRYPTO_NAME_MAX + 1];
        const uint8_t *secret;
        bool known; /* the secret is a nano client's */
        uint64_t now_ms;
} server;

static bool find(void *user, struct crypto_psk *psk)
{
        (void)user;
        strcpy(server.asked, psk->name);
        memcpy(psk->secret, server.secret, CRYPTO_SECRET);
        psk->known = server.known;
        memset(psk->fingerprint, 5, CRYPTO_FINGERPRINT);
        return true;
}

static int lane_open(void *user, unsigned lane)
{
        (void)user;
        (void)lane;
        server.shake = crypto->shake_new(server.context, NULL, NULL, find, NULL);
        return server.shake ? 0 : -1;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        (void)user;
        (void)lane;
        if (server.step < 0)
                return -1;
        server.step = crypto->shake_step(server.shake, data, size, server.text);
        return (int)size;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        (void)user;
        (void)lane;
        const size_t n = crypto->shake_output(server.shake, data, size);
        return n ? (int)n : server.step < 0 ? -1 : 0;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        (void)user;
        return server.now_ms += timeout_ms;
}

/* Make a handshake. Returns the client's result. */
static int shake_hands(const uint8_t *server_has, bool known)
{
        static struct spancl_nano_tls tls;
        static const uint8_t random[32] = { 1 };
        const struct spancl_nano_transport below = { lane_open, lane_send, lane_receive, lanes_wait,
                                                     NULL };
        char *pem = crypto->identity_new("server"), text[CRYPTO_TEXT_MAX];
        assert_non_null(pem);
        memset(&server, 0, sizeof(server));
        server.secret = server_has;
        server.known = known;
        server.context = crypto->context_new(
                &(struct crypto_params){ .server = true, .identity = pem }, text);
        free(pem);
        assert_non_null(server.context);
        const struct spancl_nano_transport t = spancl_nano_tls(&tls, &below, key, random);
        const int r = t.open(t.user, 0);
        assert_int_equal(r < 0, *spancl_nano_tls_error(&tls) != 0);
        return r;
}

static void end(void)
{
        crypto->shake_free(server.shake);
        crypto->context_free(server.context);
}

static void a_device_is_known_by_its_key(void **state)
{
        (void)state;
        struct crypto_result result;
        uint8_t fingerprint[CRYPTO_FINGERPRINT] = { 0 }, rest[1];
        char hex[KEYS_HEX + 1], name[CRYPTO_NAME_MAX + 1];
        assert_int_equal(shake_hands(key, true), 0);
        assert_int_equal(server.step, 1);
        assert_int_equal(crypto->shake_result(server.shake, &result, rest, sizeof(rest)), 0);
        assert_int_equal(result.cipher, CRYPTO_CHACHA20_POLY1305);
        assert_int_equal(result.record_max, SPANCL_NANO_TLS_RECORD);
        assert_true(result.known);
        assert_false(result.vouched);
        memset(fingerprint, 5, sizeof(fingerprint));
        assert_memory_equal(result.fingerprint, fingerprint, sizeof(fingerprint));
        /* The client names its key as nano_key_find expects it. */
        keys_hex(key, hex);
        assert_true(crypto->stretch(hex, "spancl nano", 1, fingerprint));
        keys_hex(fingerprint, hex);
        snprintf(name, sizeof(name), NANO_KEY_PSK "%.*s", NANO_KEY_DIGITS, hex);
        assert_string_equal(server.asked, name);
        assert_string_equal(result.psk, name);
        end();
}

static void other_secrets_need_a_diffie_hellman_exchange(void **state)
{
        (void)state;
        (void)shake_hands(key, false);
        assert_int_equal(server.step, -1);
        assert_non_null(strstr(server.text, "Diffie-Hellman"));
        end();
}

static void a_server_with_another_key_is_refused(void **state)
{
        (void)state;
        assert_int_equal(shake_hands(other_key, true), -1);
        assert_int_equal(server.step, -1);
        end();
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_is_known_by_its_key),
                cmocka_unit_test(other_secrets_need_a_diffie_hellman_exchange),
                cmocka_unit_test(a_server_with_another_key_is_refused),
        };
        char text[KEYS_TEXT_MAX];
        crypto = tls_crypto(text);
        if (!crypto)
                return 77;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
