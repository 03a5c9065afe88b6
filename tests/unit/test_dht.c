/* Servers' records in a distributed hash table, and the set of those that it lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "discover/dht_services.h"
#include "transport/tls.h"

#define NOW 1700000000000ull

static const struct crypto_ops *crypto;
static char *pem;

static size_t write_at(uint64_t at_ms, const char *address, uint8_t ret[DHT_VALUE_MAX])
{
        struct dht_record r = { .at_ms = at_ms,
                                .name = "gpu1",
                                .found = { .port = 7777, .txt = { .has_load = true, .load = 3 } } };
        found_add_address(&r.found, address);
        return dht_record_write(&r, crypto, pem, ret);
}

static const char *why_at(uint64_t at_ms, const char *address)
{
        uint8_t value[DHT_VALUE_MAX];
        struct dht_record r;
        size_t size = write_at(at_ms, address, value);
        const char *why = dht_record_read(value, size, crypto, NOW, &r);
        return why ? why : "";
}

static void a_record_is_read_as_it_was_written(void **state)
{
        (void)state;
        uint8_t value[DHT_VALUE_MAX], fingerprint[CRYPTO_FINGERPRINT];
        char key[KEYS_HEX + 1];
        struct dht_record r;
        size_t size = write_at(NOW, "2001:db8::5", value);
        assert_true(size > DHT_VALUE_MIN && size < DHT_VALUE_MAX);
        assert_null(dht_record_read(value, size, crypto, NOW, &r));
        assert_true(crypto->identity_fingerprint(pem, fingerprint));
        keys_hex(fingerprint, key);
        assert_string_equal(r.found.txt.key, key);
        assert_string_equal(r.name, "gpu1");
        assert_string_equal(r.found.addresses[0], "2001:db8::5");
        assert_int_equal(r.found.address_count, 1);
        assert_int_equal(r.found.port, 7777);
        assert_int_equal(r.found.txt.load, 3);
        assert_int_equal(r.at_ms, NOW);
}

static void no_bit_can_be_altered(void **state)
{
        (void)state;
        uint8_t value[DHT_VALUE_MAX];
        struct dht_record r;
        size_t size = write_at(NOW, "192.0.2.5", value);
        for (size_t i = 0; i < 8 * size; i++) {
                value[i / 8] ^= (uint8_t)(1u << i % 8);
                assert_non_null(dht_record_read(value, size, crypto, NOW, &r));
                value[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        for (size_t n = 0; n < size; n++)
                assert_non_null(dht_record_read(value, n, crypto, NOW, &r));
        assert_null(dht_record_read(value, size, crypto, NOW, &r));
}

static void a_record_has_its_time_and_an_address(void **state)
{
        (void)state;
        assert_string_equal(why_at(NOW, "192.0.2.5"), "");
        assert_string_equal(why_at(NOW - DHT_LIFE_S * 1000ull + 1, "192.0.2.5"), "");
        assert_non_null(strstr(why_at(NOW - DHT_LIFE_S * 1000ull, "192.0.2.5"), "too old"));
        assert_string_equal(why_at(NOW + DHT_SKEW_S * 1000ull, "192.0.2.5"), "");
        assert_non_null(strstr(why_at(NOW + DHT_SKEW_S * 1000ull + 1, "192.0.2.5"), "future"));
        assert_non_null(strstr(why_at(0, "192.0.2.5"), "too old"));
        static const char *const nowhere[] = { "127.0.0.1", "::1", "0.0.0.0",         "224.0.0.1",
                                               "fe80::1",   "::",  "::ffff:192.0.2.5" };
        for (size_t i = 0; i < array_size(nowhere); i++)
                assert_non_null(strstr(why_at(NOW, nowhere[i]), "no address"));
        assert_non_null(strstr(why_at(NOW, "gpu1.example"), "wrong string"));
}

static void a_stranger_can_not_fill_the_memory(void **state)
{
        (void)state;
        uint8_t value[DHT_VALUE_MAX];
        char *own = pem;
        for (int i = 0; i < DHT_SERVICES_MAX + 50; i++) {
                pem = crypto->identity_new("other");
                dht_services_take(value, write_at(NOW, "192.0.2.5", value), NOW);
                free(pem);
        }
        pem = own;
        assert_int_equal(dht_services_count(), DHT_SERVICES_MAX);
        assert_int_equal(dht_services_expire(NOW), NOW + DHT_LIFE_S * 1000ull);
        assert_int_equal(dht_services_expire(NOW + DHT_LIFE_S * 1000ull), UINT64_MAX);
        assert_int_equal(dht_services_count(), 0);
}

int main(void)
{
        char text[KEYS_TEXT_MAX];
        crypto = tls_crypto(text);
        if (!crypto) {
                printf("%s\n", text);
                return 0;
        }
        pem = crypto->identity_new("gpu1");
        dht_services_init(crypto);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_is_read_as_it_was_written),
                cmocka_unit_test(no_bit_can_be_altered),
                cmocka_unit_test(a_record_has_its_time_and_an_address),
                cmocka_unit_test(a_stranger_can_not_fill_the_memory),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        free(pem);
        return r;
}
