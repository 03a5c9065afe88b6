/* Only a link to a loopback address goes unencrypted, whatever the host is called. Names are resolved here. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/loopback.h"
#include "base/mem.h"
#include "transport/tls.h"

enum { CLEAR = 'S', TLS = 0x16, NOTHING = 0 };

/* ---- a resolver ----------------------------------------------------------------------------- */

/* "localhost" has these addresses, separated by blanks; NULL: those of the system. */
static const char *localhost;
static int asked; /* how often */

/* Replaces the C library's in this program. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
        int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        if (strcmp(name, "localhost") != 0 || !localhost)
                return real(name, service, hints, ret);
        asked++;
        char text[200], *rest = text;
        snprintf(text, sizeof(text), "%s", localhost);
        for (char *one; (one = strsep(&rest, " ")); ret = &(*ret)->ai_next)
                assert_int_equal(real(one, service, hints, ret), 0);
        return 0;
}

/* ---- a server ------------------------------------------------------------------------------- */

struct server {
        struct listener *listener;
        int stop;
        uint8_t first; /* the first byte that came */
};

/* Take connections, and close each when its first byte has come. */
static void *serve(void *arg)
{
        struct server *s = arg;
        struct pollfd p[] = { { .fd = s->listener->fd, .events = POLLIN },
                              { .fd = s->stop, .events = POLLIN } };
        while (poll(p, 2, -1) > 0 && !p[1].revents) {
                int fd = accept(p[0].fd, NULL, NULL);
                if (fd < 0)
                        continue;
                if (recv(fd, &s->first, 1, 0) != 1)
                        s->first = NOTHING;
                close(fd);
        }
        return NULL;
}

/* Connect as the configuration does to `host`, and greet. Returns the first byte that the server gets. */
static int say_hello(const char *host)
{
        struct server s = { .stop = eventfd(0, 0) };
        struct conn *c = NULL;
        char address[200], key[65];
        pthread_t thread;
        assert_int_equal(transport_tcp.listen("tcp:127.0.0.1:0", &s.listener), 0);
        assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
        memset(key, 'a', sizeof(key) - 1);
        key[sizeof(key) - 1] = 0;
        snprintf(address, sizeof(address), "loopback:%s:%s#%s", host,
                 strrchr(s.listener->address, ':') + 1, key);
        int r = transport_of(address)->connect(address, 20000, &c);
        if (!r) {
                uint8_t hello = CLEAR;
                struct iovec iov = { &hello, 1 };
                assert_ptr_equal(c->ops, &transport_tcp);
                assert_int_equal(c->ops->sendv(c, &iov, 1), 1);
                iov.iov_base = &(uint8_t){ 0 };
                while (c->ops->recvv(c, &iov, 1) == SP_E_AGAIN) /* until the server has closed it */
                        (void)conn_wait(c, true, false, 20000);
        }
        conn_close(c);
        uint64_t one = 1;
        assert_int_equal(write(s.stop, &one, sizeof(one)), sizeof(one));
        pthread_join(thread, NULL);
        close(s.stop);
        listener_close(s.listener);
        assert_true(r == 0 ? s.first == CLEAR : s.first != CLEAR);
        return s.first;
}

/* A build without the module for TLS does not connect at all. */
static bool is_safe(int first)
{
        char text[KEYS_TEXT_MAX];
        return first == TLS || (first == NOTHING && !tls_crypto(text));
}

/* ---- claims --------------------------------------------------------------------------------- */

static void loopback_is_127_and_1_and_nothing_else(void **state)
{
        (void)state;
        static const struct {
                const char *address;
                bool is_loopback;
        } cases[] = {
                { "127.0.0.1", true },
                { "127.255.255.254", true },
                { "128.0.0.1", false },
                { "126.255.255.255", false },
                { "0.0.0.0", false },
                { "10.0.0.127", false },
                { "::1", true },
                { "::", false },
                { "::ffff:127.0.0.1", true },
                { "::ffff:127.9.9.9", true },
                { "::ffff:10.0.0.1", false },
                { "::ffff:0.0.0.0", false },
                { "::127.0.0.1", false },
                { "fe80::1", false },
                { "7f00::1", false },
                { "64:ff9b::127.0.0.1", false },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                const char *text = cases[i].address;
                struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };
                struct sockaddr_in a4 = { .sin_family = AF_INET };
                bool v4 = inet_pton(AF_INET, text, &a4.sin_addr) == 1;
                assert_true(v4 || inet_pton(AF_INET6, text, &a6.sin6_addr) == 1);
                if (loopback_address(v4 ? (void *)&a4 : (void *)&a6) != cases[i].is_loopback ||
                    loopback_host(text) != cases[i].is_loopback)
                        fail_msg("%s", text);
        }
}

static void names_are_not_taken_for_numbers(void **state)
{
        (void)state;
        static const char *const loopback[] = { "localhost", "LocalHost", "[::1]", "127.1",
                                                "[::ffff:127.0.0.1]" };
        static const char *const other[] = { "127.example.org",
                                             "127.0.0.1.example.org",
                                             "localhost.example.org",
                                             "localhosts",
                                             "::1.example.org",
                                             "",
                                             "[]",
                                             "[::1",
                                             "gpu1" };
        for (size_t i = 0; i < array_size(loopback); i++)
                assert_string_equal(loopback_scheme(loopback[i]), "loopback:");
        for (size_t i = 0; i < array_size(other); i++)
                assert_string_equal(loopback_scheme(other[i]), "tls:");
}

static void links_to_loopback_addresses_are_not_encrypted(void **state)
{
        (void)state;
        static const char *const numbers[] = { "127.0.0.1", "[::ffff:127.0.0.1]" };
        static const char *const names[] = { "127.0.0.1", "127.0.0.1 ::1", "::ffff:127.0.0.1" };
        for (size_t i = 0; i < array_size(numbers); i++)
                assert_int_equal(say_hello(numbers[i]), CLEAR);
        for (size_t i = 0; i < array_size(names); i++) {
                localhost = names[i];
                asked = 0;
                assert_int_equal(say_hello("localhost"), CLEAR);
                assert_int_equal(asked, 1); /* the addresses that were looked at are connected to */
        }
        localhost = NULL;
}

static void one_address_beyond_loopback_is_enough_to_encrypt(void **state)
{
        (void)state;
        /* Linux connects to 0.0.0.0 as to 127.0.0.1: so the server sees it. */
        static const char *const names[] = { "0.0.0.0", "127.0.0.1 192.0.2.1",
                                             "127.0.0.1 ::ffff:192.0.2.1" };
        assert_true(is_safe(say_hello("0.0.0.0")));
        for (size_t i = 0; i < array_size(names); i++) {
                localhost = names[i];
                assert_true(is_safe(say_hello("localhost")));
        }
        localhost = NULL;
}

static void each_connection_resolves_the_name_again(void **state)
{
        (void)state;
        localhost = "127.0.0.1";
        assert_int_equal(say_hello("localhost"), CLEAR);
        localhost = "0.0.0.0";
        assert_true(is_safe(say_hello("localhost")));
        localhost = "127.0.0.1";
        assert_int_equal(say_hello("localhost"), CLEAR);
        localhost = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(loopback_is_127_and_1_and_nothing_else),
                cmocka_unit_test(names_are_not_taken_for_numbers),
                cmocka_unit_test(links_to_loopback_addresses_are_not_encrypted),
                cmocka_unit_test(one_address_beyond_loopback_is_enough_to_encrypt),
                cmocka_unit_test(each_connection_resolves_the_name_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
