/* Addresses as text and typed: every text that one process writes another one parses to the same
 * address, and nothing else is an address. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "transport/address.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void addresses_come_back_as_they_were_written(void **state)
{
        (void)state;
        static const struct {
                const char *text, *shown, *host;
                unsigned port;
                bool here, key;
        } cases[] = {
                { "tcp:127.0.0.1:7777", "127.0.0.1:7777", "127.0.0.1", 7777, true, false },
                { "tcp:[fd00::1]:1", "[fd00::1]:1", "fd00::1", 1, false, false },
                { "tcp:*:0", "*:0", "*", 0, false, false },
                { "tls:alpha.example:65535", "alpha.example:65535", "alpha.example", 65535, false,
                  false },
                { "tls:[::1]:5#" KEY, "[::1]:5", "::1", 5, true, true },
                { "loopback:localhost:7#" KEY, "localhost:7", "localhost", 7, true, true },
                { "vsock:2:7777", "vsock:2:7777", "2", 7777, false, false },
                { "vsock:2:7777#" KEY, "vsock:2:7777", "2", 7777, false, true },
                { "vsock-plain:1:4294967294", "vsock-plain:1:4294967294", "1", 4294967294, false,
                  false },
                /* Its number is no address of IP, though 127.0.0.1 may be written so. */
                { "vsock-plain:2130706433:1", "vsock-plain:2130706433:1", "2130706433", 1, false,
                  false },
                { "unix:/run/a#b:c", "unix:/run/a#b:c", "/run/a#b:c", 0, true, false },
                { "inproc:x/bulk", "inproc:x/bulk", "x/bulk", 0, true, false },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct address a;
                char text[ADDRESS_MAX];
                assert_int_equal(address_parse(cases[i].text, &a), 0);
                assert_ptr_equal(a.ops, transport_of(cases[i].text));
                assert_string_equal(a.host, cases[i].host);
                assert_int_equal(a.port, cases[i].port);
                assert_string_equal(a.key, cases[i].key ? KEY : "");
                assert_int_equal(address_is_here(&a), cases[i].here);
                assert_int_equal(address_is_reached(&a),
                                 !cases[i].here && !strstr(cases[i].shown, "vsock"));
                address_put(&a, text);
                assert_string_equal(text, cases[i].text);
                address_show(cases[i].text, text);
                assert_string_equal(text, cases[i].shown);
        }
}

static void the_encrypted_transport_of_an_address_has_the_same_host(void **state)
{
        (void)state;
        static const char *const texts[][2] = { { "vsock-plain:3:7777", "vsock:3:7777" },
                                                { "tcp:host:1", "tls:host:1" },
                                                { "tls:host:1", "tls:host:1" },
                                                { "unix:/tmp/s", "unix:/tmp/s" } };
        for (size_t i = 0; i < array_size(texts); i++) {
                struct address a;
                char text[ADDRESS_MAX];
                assert_int_equal(address_parse(texts[i][0], &a), 0);
                address_encrypt(&a);
                address_put(&a, text);
                assert_string_equal(text, texts[i][1]);
        }
}

static void other_texts_are_no_addresses(void **state)
{
        (void)state;
        static const char *const bad[] = {
                "",
                "x",
                "alpha:7777",
                "tcp",
                "tcp:",
                "tcp:alpha",
                "tcp::7777",
                "tcp:alpha:",
                "tcp:alpha:65536",
                "tcp:alpha:100000",
                "tcp:alpha:7777x",
                "tcp:alpha:-1",
                "tcp:fd00::1:7777",
                "tcp:[fd00::1]",
                "tcp:[fd00::1]x:1",
                "tcp:[]:1",
                "tcp:[fd00::1",
                "vsock:2",
                "vsock-plain:2:1#" KEY,
                "vsock:2:4294967296",
                "vsock:2:99999999999",
                "tcp:alpha:1#" KEY, /* nothing would check the key */
                "tls:alpha:1#",
                "tls:alpha:1#00",
                "tls:alpha:1#" KEY "0",
                "tls:alpha:1#" KEY "++",
                "tls:alpha:1#+",
                "tcp:alpha:1#" KEY "+",
                "tls:alpha#" KEY,
                "unix:",
                "inproc:",
                "shm:x",
                "fabric:x",
        };
        char text[ADDRESS_MAX], longer[600];
        for (size_t i = 0; i < array_size(bad); i++) {
                struct address a;
                if (!address_parse(bad[i], &a))
                        print_error("%s\n", bad[i]);
                assert_int_not_equal(address_parse(bad[i], &a), 0);
                address_show(bad[i], text);
                assert_string_equal(text, bad[i]);
        }
        memset(longer, 'a', sizeof(longer));
        longer[sizeof(longer) - 1] = 0;
        memcpy(longer, "unix:", 5);
        assert_int_equal(address_parse(longer, &(struct address){ 0 }), SP_E_INVAL);
        assert_int_equal(address_of_path(longer, &(struct address){ 0 }), SP_E_INVAL);
        memcpy(longer, "tcp:", 4);
        memcpy(longer + sizeof(longer) - 3, ":1", 3);
        assert_int_equal(address_parse(longer, &(struct address){ 0 }), SP_E_INVAL);
        assert_int_equal(address_of_peer(longer, 1, &(struct address){ 0 }), SP_E_INVAL);
        address_show(longer, text);
        assert_int_equal(strlen(text), ADDRESS_MAX - 1);
}

static void peer_without_scheme_is_encrypted_unless_it_is_loopback(void **state)
{
        (void)state;
        static const struct {
                const char *host, *text;
        } cases[] = {
                { "alpha", "tls:alpha:7" },
                { "alpha#" KEY, "tls:alpha:7#" KEY },
                { "fd00::1#" KEY, "tls:[fd00::1]:7#" KEY },
                { "127.0.0.1#" KEY, "loopback:127.0.0.1:7#" KEY },
                { "localhost", "loopback:localhost:7" },
                { "::1", "loopback:[::1]:7" },
                { "tls:::1", "tls:[::1]:7" },
                { "tcp:alpha#" KEY, "tcp:alpha:7" },
                { "unix:/run/s", "unix:/run/s" },
                { "", NULL },
                { "tls:", NULL },
                { "#" KEY, NULL },
                { "vsock:2", NULL }, /* a client must not lead one server to another there */
                { "vsock-plain:2", NULL },
                { "alpha#00", NULL },
                { "alpha#" KEY "+", NULL }, /* only a user shows a key of its own */
                { "tls:alpha#" KEY "+", NULL },
                { "unix:", NULL },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct address a;
                char text[ADDRESS_MAX];
                int r = address_of_peer(cases[i].host, 7, &a);
                assert_int_equal(r, cases[i].text ? 0 : SP_E_INVAL);
                if (r < 0)
                        continue;
                address_put(&a, text);
                assert_string_equal(text, cases[i].text);
        }
}

static void peer_with_a_key_is_never_in_the_clear(void **state)
{
        (void)state;
        static const struct {
                const char *host, *key;
                bool plain;
                const char *text;
        } cases[] = {
                { "alpha", "", false, "alpha" },
                { "alpha", "", true, "tcp:alpha" },
                { "alpha", KEY, true, "alpha#" KEY },
                { "tls:alpha", "", true, "tls:alpha" },
                { "tls:alpha", KEY, false, "tls:alpha#" KEY },
                { "unix:/run/s", KEY, true, "unix:/run/s" },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                char text[200];
                address_put_peer(cases[i].host, cases[i].key, cases[i].plain, text, sizeof(text));
                assert_string_equal(text, cases[i].text);
        }
}

static void listening_takes_hosts_only(void **state)
{
        (void)state;
        static const struct {
                const char *text, *address;
        } cases[] = {
                { "alpha", "tcp:alpha:9" },
                { "alpha:0", "tcp:alpha:0" },
                { "*:1", "tcp:*:1" },
                { "[::1]", "tcp:[::1]:9" },
                { "[::1]:5", "tcp:[::1]:5" },
                { "tls:alpha", "tls:alpha:9" },
                { "tls:[::1]:5", "tls:[::1]:5" },
                { "vsock:any:5", "vsock:any:5" },
                { "", NULL },
                { "::1", NULL },
                { "alpha:x", NULL },
                { "alpha:65536", NULL },
                { "[::1", NULL },
                { "tls:", NULL },
                { "unix:/run/s", NULL },
                { "inproc:x", NULL },
                { "alpha:1#" KEY, NULL },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct address a;
                char text[ADDRESS_MAX];
                int r = address_of_listen(cases[i].text, 9, &a);
                assert_int_equal(r, cases[i].address ? 0 : SP_E_INVAL);
                if (r < 0)
                        continue;
                address_put(&a, text);
                assert_string_equal(text, cases[i].address);
        }
        struct address at;
        struct listener *l;
        assert_int_equal(address_parse("loopback:127.0.0.1:0", &at), 0);
        assert_int_equal(address_listen(&at, &l), SP_E_INVAL);
}

/* The conn's server writes where its client came from; here the client asks, so the listener's address is known. */
static void an_end_is_known_as_people_write_it(void **state)
{
        (void)state;
        char path[64], uid[32], shown[ADDRESS_MAX], text[ADDRESS_MAX];
        snprintf(path, sizeof(path), "unix:/tmp/spancl-test-from-%d.sock", (int)getpid());
        snprintf(uid, sizeof(uid), "uid %u", (unsigned)geteuid());
        const char *const places[] = { "tcp:127.0.0.1:0", "tcp:[::1]:0", "vsock-plain:1:0", path };
        for (size_t i = 0; i < array_size(places); i++) {
                struct address at;
                struct listener *listener;
                struct conn *c;
                assert_int_equal(address_parse(places[i], &at), 0);
                if (address_listen(&at, &listener) < 0) {
                        assert_true(i == 1 || i == 2); /* this host may lack them */
                        continue;
                }
                assert_int_equal(address_parse(listener->address, &at), 0);
                assert_int_equal(address_connect(&at, 1000, &c), 0);
                if (i == 2)
                        snprintf(shown, sizeof(shown), "vsock:1:%u", at.port);
                else
                        address_show(listener->address, shown);
                conn_from(c, text);
                assert_string_equal(text, places[i] == path ? uid : shown);
                conn_close(c);
                listener_close(listener);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_come_back_as_they_were_written),
                cmocka_unit_test(the_encrypted_transport_of_an_address_has_the_same_host),
                cmocka_unit_test(other_texts_are_no_addresses),
                cmocka_unit_test(peer_without_scheme_is_encrypted_unless_it_is_loopback),
                cmocka_unit_test(peer_with_a_key_is_never_in_the_clear),
                cmocka_unit_test(listening_takes_hosts_only),
                cmocka_unit_test(an_end_is_known_as_people_write_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
