/* TLS links: the peers that are trusted, the rules for a folder of keys, and records that are
 * damaged. test_transport.c tests that bytes cross unchanged. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "transport/tls.h"

static char folder[64], text[KEYS_TEXT_MAX];
static char client_keys[128], server_keys[128];
static const struct crypto_ops *crypto;

/* ---- a server that answers one handshake ---------------------------------------------------- */

struct server {
        struct tls_server *tls;
        struct listener *listener;
        pthread_t thread;
        struct conn *conn; /* the handshake's; NULL: it failed */
        struct tls_peer peer;
        struct crypto_psk psk; /* that it has; name "": none */
};

static bool find(void *user, struct crypto_psk *psk)
{
        struct server *s = user;
        if (strcmp(psk->name, s->psk.name) != 0)
                return false;
        memcpy(psk->secret, s->psk.secret, CRYPTO_SECRET);
        return true;
}

static void *serve(void *arg)
{
        struct server *s = arg;
        struct conn *plain, *c;
        uint8_t byte;
        struct iovec iov = { &byte, 1 };
        struct pollfd p = { .fd = s->listener->fd, .events = POLLIN };
        poll(&p, 1, 20000);
        if (transport_tcp.accept(s->listener, &plain) < 0 || tls_accept(s->tls, plain, &c) < 0)
                return NULL;
        ssize_t r;
        while ((r = c->ops->recvv(c, &iov, 1)) == SP_E_AGAIN) {
                p = (struct pollfd){ .fd = c->fd, .events = POLLIN };
                poll(&p, 1, 20000);
        }
        s->peer = *tls_peer(c);
        if (r == 1)
                s->conn = c; /* the byte says that the client is content */
        else
                conn_close(c);
        return NULL;
}

static void start(struct server *s, const char *keys)
{
        assert_int_equal(tls_server_new(keys, find, s, &s->tls, text), 0);
        assert_int_equal(transport_tcp.listen("tcp:127.0.0.1:0", &s->listener), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static const char *name_of(const struct server *s)
{
        return s->listener->address + 4;
}

/* Connect: what it returns. */
static int reach(struct server *s, const char *pin, const struct crypto_psk *psk, struct conn **ret)
{
        char address[400];
        uint8_t byte = 1;
        struct iovec iov = { &byte, 1 };
        snprintf(address, sizeof(address), "tls:%s%s%s", name_of(s), pin ? "#" : "",
                 pin ? pin : "");
        struct conn *c = NULL;
        int r = psk ? tls_connect_psk(address, psk, 20000, &c)
                    : transport_tls.connect(address, 20000, &c);
        if (!r)
                assert_int_equal(c->ops->sendv(c, &iov, 1), 1);
        pthread_join(s->thread, NULL);
        if (ret)
                *ret = c;
        else
                conn_close(c);
        return r;
}

static void end(struct server *s)
{
        conn_close(s->conn);
        tls_server_free(s->tls);
        listener_close(s->listener);
}

static void put(const char *keys, const char *file, const char *name, const uint8_t *fingerprint)
{
        struct keys_entry e = { 0 };
        snprintf(e.name, sizeof(e.name), "%s", name);
        memcpy(e.fingerprint, fingerprint, CRYPTO_FINGERPRINT);
        assert_int_equal(keys_put(keys, file, &e, true, text), 0);
}

/* ---- claims --------------------------------------------------------------------------------- */

static void a_server_that_nobody_told_of_is_not_believed(void **state)
{
        (void)state;
        struct server s = { 0 };
        start(&s, server_keys);
        assert_int_equal(reach(&s, NULL, NULL, NULL), SP_E_AUTH);
        assert_non_null(strstr(tls_reason(), "spancl pair"));
        assert_null(s.conn);
        end(&s);
}

static void a_known_server_learns_who_the_client_is(void **state)
{
        (void)state;
        struct server s = { 0 };
        char *pem;
        uint8_t own[CRYPTO_FINGERPRINT];
        start(&s, server_keys);
        put(client_keys, KEYS_SERVERS, name_of(&s), tls_server_fingerprint(s.tls));
        assert_int_equal(reach(&s, NULL, NULL, NULL), 0);
        assert_non_null(s.conn);
        assert_int_equal(keys_identity(crypto, client_keys, &pem, own, text), 0);
        mem_free(pem);
        assert_true(s.peer.known);
        assert_memory_equal(s.peer.fingerprint, own, sizeof(own));
        end(&s);
}

static void another_key_under_a_known_name_is_refused(void **state)
{
        (void)state;
        struct server s = { 0 };
        uint8_t other[CRYPTO_FINGERPRINT] = { 1 };
        start(&s, server_keys);
        put(client_keys, KEYS_SERVERS, name_of(&s), other);
        assert_int_equal(reach(&s, NULL, NULL, NULL), SP_E_AUTH);
        assert_non_null(strstr(tls_reason(), "not the one it was paired with"));
        end(&s);
}

static void a_pinned_key_is_the_only_one_believed(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct server s = { 0 };
                char hex[KEYS_HEX + 1];
                start(&s, server_keys);
                keys_hex(tls_server_fingerprint(s.tls), hex);
                if (i)
                        hex[0] = hex[0] == '0' ? '1' : '0';
                assert_int_equal(reach(&s, hex, NULL, NULL), i ? SP_E_AUTH : 0);
                assert_false(s.peer.known); /* nothing is shown to it */
                end(&s);
        }
}

static void a_user_shows_the_own_key_to_a_server_with_a_pinned_one(void **state)
{
        (void)state;
        for (int i = 0; i < 3; i++) {
                struct server s = { 0 };
                char pin[KEYS_HEX + 2];
                start(&s, server_keys);
                keys_hex(tls_server_fingerprint(s.tls), pin);
                strcat(pin, "+");
                if (i == 1)
                        pin[0] = pin[0] == '0' ? '1' : '0';
                tls_for_others = i == 2; /* then the key is not this process's to show */
                assert_int_equal(reach(&s, pin, NULL, NULL), i == 1 ? SP_E_AUTH : 0);
                tls_for_others = false;
                if (i != 1)
                        assert_int_equal(s.peer.known, i == 0);
                end(&s);
        }
}

static void hosts_with_the_same_keys_know_each_other(void **state)
{
        (void)state;
        struct server s = { 0 };
        start(&s, client_keys);
        assert_int_equal(reach(&s, NULL, NULL, NULL), 0);
        assert_memory_equal(s.peer.fingerprint, tls_server_fingerprint(s.tls), CRYPTO_FINGERPRINT);
        end(&s);
}

static void a_secret_authenticates_both_sides(void **state)
{
        (void)state;
        static const struct {
                const char *name;
                uint8_t first;
                int status;
        } cases[] = { { "pair", 7, 0 }, { "pair", 8, SP_E_AUTH }, { "other", 7, SP_E_AUTH } };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct server s = { .psk = { "pair", { 7 } } };
                struct crypto_psk psk = { .secret = { cases[i].first } };
                strcpy(psk.name, cases[i].name);
                start(&s, server_keys);
                assert_int_equal(reach(&s, NULL, &psk, NULL), cases[i].status);
                assert_string_equal(s.peer.psk, cases[i].status ? "" : "pair");
                end(&s);
        }
}

static void a_token_in_both_folders_is_enough(void **state)
{
        (void)state;
        struct server s = { 0 };
        struct conn *c;
        assert_int_equal(keys_write(client_keys, KEYS_TOKEN, "too short\n", false, text), 0);
        assert_int_equal(keys_token(crypto, client_keys, &s.psk, text), SP_E_INVAL);
        assert_int_equal(
                keys_write(client_keys, KEYS_TOKEN, "0123456789abcdefghijklmn\n", false, text), 0);
        assert_int_equal(keys_token(crypto, client_keys, &s.psk, text), 0);
        start(&s, server_keys);
        assert_int_equal(reach(&s, NULL, NULL, &c), 0);
        assert_string_equal(s.peer.psk, KEYS_PSK_TOKEN);
        assert_string_equal(tls_peer(c)->psk, KEYS_PSK_TOKEN);
        conn_close(c);
        end(&s);
        keys_remove(client_keys, KEYS_TOKEN);
}

/* Keys that others can read are not used. */
static void a_folder_or_file_that_others_may_read_is_refused(void **state)
{
        (void)state;
        char path[200], *pem;
        uint8_t own[CRYPTO_FINGERPRINT];
        snprintf(path, sizeof(path), "%s/%s", client_keys, KEYS_IDENTITY);
        assert_int_equal(keys_identity(crypto, client_keys, &pem, own, text), 0);
        mem_free(pem);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(stat(client_keys, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);

        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(keys_identity(crypto, client_keys, &pem, own, text), SP_E_AUTH);
        assert_non_null(strstr(text, "chmod 600"));
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(chmod(client_keys, 0750), 0);
        assert_int_equal(keys_identity(crypto, client_keys, &pem, own, text), SP_E_AUTH);
        assert_non_null(strstr(text, "chmod 700"));
        assert_int_equal(chmod(client_keys, 0700), 0);
}

static void an_entry_replaces_that_of_its_name_or_its_key(void **state)
{
        (void)state;
        struct keys_entry e, a = { .fingerprint = { 1 }, .name = "a:1" },
                             b = { .fingerprint = { 2 }, .name = "b:1", .devices = "gpu" };
        char *list;
        assert_int_equal(keys_write(server_keys, KEYS_CLIENTS, "# mine\nrubbish\n", false, text),
                         0);
        assert_int_equal(keys_put(server_keys, KEYS_CLIENTS, &a, false, text), 0);
        assert_int_equal(keys_put(server_keys, KEYS_CLIENTS, &b, false, text), 0);
        strcpy(a.name, "c:1");
        assert_int_equal(keys_put(server_keys, KEYS_CLIENTS, &a, false, text), 0);
        assert_int_equal(keys_read(server_keys, KEYS_CLIENTS, &list, text), 0);
        assert_non_null(strstr(list, "# mine\nrubbish\n"));
        assert_false(keys_knows(list, "a:1"));
        assert_true(keys_find(list, b.fingerprint, NULL, &e));
        assert_string_equal(e.devices, "gpu");
        assert_true(keys_find(list, a.fingerprint, "C:1", &e));
        unsigned bad = 0, count = 0;
        const char *p = list;
        while (keys_next(&p, &e, &bad))
                count++;
        assert_int_equal(count, 2);
        assert_int_equal(bad, 1);
        mem_free(list);
        keys_remove(server_keys, KEYS_CLIENTS);
}

static void settings_stay_as_they_are(void **state)
{
        (void)state;
        static const char line[] = "%064d alice x=1 devices=gpu y-z=a=b own user=al host=h\n";
        struct keys_entry e;
        char old[256], *list;
        snprintf(old, sizeof(old), line, 0);
        assert_int_equal(keys_write(server_keys, KEYS_CLIENTS, old, false, text), 0);
        assert_true(keys_find(old, (uint8_t[CRYPTO_FINGERPRINT]){ 0 }, NULL, &e));
        assert_string_equal(e.settings, "x=1 y-z=a=b");
        assert_string_equal(e.host, "h");
        strcpy(e.name, "bob");
        assert_int_equal(keys_put(server_keys, KEYS_CLIENTS, &e, false, text), 0);
        assert_int_equal(keys_read(server_keys, KEYS_CLIENTS, &list, text), 0);
        assert_string_equal(list + KEYS_HEX, " bob devices=gpu user=al host=h x=1 y-z=a=b own\n");
        mem_free(list);
        static const char *const bad[] = {
                "x=1 x=2", "x=", "=1", "X=1", "own own", "user=a user=b"
        };
        for (size_t i = 0; i < array_size(bad); i++) {
                unsigned count = 0;
                snprintf(old, sizeof(old), "%064d alice %s\n", 0, bad[i]);
                const char *p = old;
                assert_false(keys_next(&p, &e, &count));
                assert_int_equal(count, 1);
        }
        assert_true(keys_is_name("\303\244lice"));
        assert_false(keys_is_name("a b") || keys_is_name("") || keys_is_name("a\033[2J") ||
                     keys_is_name("a\n"));
        assert_int_equal(
                keys_drop(server_keys, KEYS_CLIENTS, (uint8_t[CRYPTO_FINGERPRINT]){ 0 }, text), 0);
        assert_int_equal(
                keys_drop(server_keys, KEYS_CLIENTS, (uint8_t[CRYPTO_FINGERPRINT]){ 0 }, text),
                SP_E_NOENT);
        keys_remove(server_keys, KEYS_CLIENTS);
}

static void codes_are_read_as_people_write_them(void **state)
{
        (void)state;
        char code[KEYS_CODE_MAX], letters[KEYS_CODE_MAX], again[KEYS_CODE_MAX];
        uint8_t random[KEYS_CODE_LETTERS];
        for (unsigned i = 0; i < sizeof(random); i++)
                random[i] = (uint8_t)(i * 37);
        keys_code_new(random, code);
        assert_int_equal(strlen(code), 14);
        assert_true(keys_code_parse(code, letters));
        for (char *p = code; *p; p++)
                *p = *p == '-' ? ' ' : *p == '0' ? 'o' : *p == '1' ? 'l' : *p;
        assert_true(keys_code_parse(code, again));
        assert_string_equal(letters, again);
        assert_false(keys_code_parse("ABCD-EFGH", again));
        assert_false(keys_code_parse("ABCD-EFGH-JKMN-P", again));
        assert_false(keys_code_parse("ABCD-EFGH-JKM!", again));

        struct keys_pairing p = { .secret = { 9 }, .until_s = 1234567890123, .tries = 5 }, q;
        char *file;
        assert_int_equal(keys_pairing_write(server_keys, &p, text), 0);
        assert_int_equal(keys_read(server_keys, KEYS_PAIRING, &file, text), 0);
        assert_true(keys_pairing_parse(file, &q));
        assert_memory_equal(p.secret, q.secret, sizeof(p.secret));
        assert_true(p.until_s == q.until_s && p.tries == q.tries);
        file[3] = 'x';
        assert_false(keys_pairing_parse(file, &q));
        mem_free(file);
        keys_remove(server_keys, KEYS_PAIRING);
}

/* ---- records -------------------------------------------------------------------------------- */

/* A client and a server's conn that know each other. */
static struct conn *pair_up(struct server *s)
{
        struct conn *c;
        start(s, client_keys);
        assert_int_equal(reach(s, NULL, NULL, &c), 0);
        return c;
}

static void cross(struct conn *from, struct conn *to, uint8_t value, size_t size)
{
        uint8_t *data = mem_alloc(size), *got = mem_zalloc(size);
        memset(data, value, size);
        for (size_t sent = 0, came = 0; came < size;) {
                struct iovec out = { data + sent, size - sent }, in = { got + came, size - came };
                ssize_t n = sent < size ? from->ops->sendv(from, &out, 1) : 0;
                assert_true(n >= 0 || n == SP_E_AGAIN);
                sent += n > 0 ? (size_t)n : 0;
                n = to->ops->recvv(to, &in, 1);
                assert_true(n > 0 || n == SP_E_AGAIN);
                came += n > 0 ? (size_t)n : 0;
        }
        assert_memory_equal(data, got, size);
        mem_free(data);
        mem_free(got);
}

static void keys_are_renewed_and_nothing_is_lost(void **state)
{
        (void)state;
        struct server s = { 0 };
        struct conn *c = pair_up(&s);
        tls_records_per_key = 3;
        for (unsigned i = 0; i < 20; i++) {
                cross(c, s.conn, (uint8_t)i, 100 + i);
                cross(s.conn, c, (uint8_t)~i, 70000);
        }
        tls_records_per_key = 1 << 24;
        conn_close(c);
        end(&s);
}

static void data_left_in_memory_is_polled_for(void **state)
{
        (void)state;
        struct server s = { 0 };
        struct conn *c = pair_up(&s);
        uint8_t data[3000] = { 5 }, got[1000];
        struct iovec out = { data, sizeof(data) }, in = { got, sizeof(got) };
        assert_int_equal(c->ops->sendv(c, &out, 1), sizeof(data));
        for (int i = 0; i < 3; i++) {
                struct pollfd p = { .fd = s.conn->fd, .events = POLLIN };
                assert_int_equal(poll(&p, 1, 20000), 1);
                assert_int_equal(s.conn->ops->recvv(s.conn, &in, 1), sizeof(got));
        }
        struct pollfd p = { .fd = s.conn->fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, 0), 0);
        conn_close(c);
        end(&s);
}

static void a_connection_moves_with_its_keys(void **state)
{
        (void)state;
        struct server s = { 0 };
        struct conn *c = pair_up(&s), *moved;
        struct buf b = { 0 };
        cross(c, s.conn, 1, 50000);
        cross(s.conn, c, 2, 50);
        assert_int_equal(conn_export(s.conn, &b), 0);
        int fd = fcntl(s.conn->fd, F_DUPFD_CLOEXEC, 0);
        s.conn = conn_close(s.conn);
        assert_int_equal(conn_import(fd, bytes_of(b.data, b.size), &moved), 0);
        cross(c, moved, 3, 50000);
        cross(moved, c, 4, 50000);
        conn_close(moved);
        buf_fini(&b);
        conn_close(c);
        end(&s);
}

/* Records that the other side sends without waiting are still there for the process that takes
 * the connection over. */
static void a_careful_reader_leaves_what_it_was_not_asked_for(void **state)
{
        (void)state;
        struct server s = { 0 };
        struct conn *c = pair_up(&s), *moved;
        struct buf b = { 0 };
        uint8_t data[3][600] = { { 1 }, { 2 }, { 3 } }, got[600];
        tls_be_careful(s.conn);
        for (int i = 0; i < 3; i++) {
                struct iovec out = { data[i], sizeof(data[i]) };
                assert_int_equal(c->ops->sendv(c, &out, 1), sizeof(data[i]));
        }
        for (size_t at = 0; at < sizeof(got); at += 200) { /* in pieces, as a hello is read */
                struct iovec in = { got + at, 200 };
                assert_int_equal(s.conn->ops->recvv(s.conn, &in, 1), 200);
        }
        assert_memory_equal(got, data[0], sizeof(got));
        assert_int_equal(conn_export(s.conn, &b), 0);
        int fd = fcntl(s.conn->room_fd, F_DUPFD_CLOEXEC, 0);
        s.conn = conn_close(s.conn);
        assert_int_equal(conn_import(fd, bytes_of(b.data, b.size), &moved), 0);
        for (int i = 1; i < 3; i++) {
                struct iovec in = { got, sizeof(got) };
                assert_int_equal(moved->ops->recvv(moved, &in, 1), sizeof(got));
                assert_memory_equal(got, data[i], sizeof(got));
        }
        cross(moved, c, 4, 50000);
        conn_close(moved);
        buf_fini(&b);
        conn_close(c);
        end(&s);
}

/* A relay in the middle changes one bit. */
static void a_changed_byte_ends_the_connection(void **state)
{
        (void)state;
        for (int i = 0; i < 3; i++) {
                struct server s = { 0 };
                struct conn *c = pair_up(&s);
                int fds[2];
                struct buf b = { 0 };
                struct conn *relayed;
                uint8_t data[2000] = { 7 }, wire[2100], got[2000];
                struct iovec out = { data, sizeof(data) }, in = { got, sizeof(got) };
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
                assert_int_equal(c->ops->sendv(c, &out, 1), sizeof(data));
                ssize_t n = recv(s.conn->fd, wire, sizeof(wire), 0);
                assert_true(n > 2000);
                wire[i == 0 ? 1 : i == 1 ? 100 : n - 1] ^= 4;
                assert_int_equal(send(fds[0], wire, (size_t)n, 0), n);
                assert_int_equal(conn_export(s.conn, &b), 0);
                assert_int_equal(conn_import(fds[1], bytes_of(b.data, b.size), &relayed), 0);
                assert_int_equal(relayed->ops->recvv(relayed, &in, 1), SP_E_LINK);
                assert_int_equal(relayed->ops->recvv(relayed, &in, 1), SP_E_LINK);
                conn_close(relayed);
                buf_fini(&b);
                close(fds[0]);
                conn_close(c);
                end(&s);
        }
}

static void bytes_that_are_no_handshake_fail(void **state)
{
        (void)state;
        static const char *const rubbish[] = { "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x40\x01",
                                               "\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", "\x80" };
        for (size_t i = 0; i < array_size(rubbish); i++) {
                struct server s = { 0 };
                struct conn *c;
                start(&s, server_keys);
                assert_int_equal(transport_tcp.connect(s.listener->address, 20000, &c), 0);
                assert_true(send(c->fd, rubbish[i], strlen(rubbish[i]) + 1, MSG_NOSIGNAL) > 0);
                shutdown(c->fd, SHUT_WR);
                pthread_join(s.thread, NULL);
                assert_null(s.conn);
                conn_close(c);
                end(&s);
        }
}

int main(void)
{
        if (!tls_crypto(text)) {
                printf("%s\n", text);
                return 0;
        }
        crypto = tls_crypto(text);
        strcpy(folder, "/tmp/spancl-test-tls.XXXXXX");
        if (!mkdtemp(folder))
                return 1;
        snprintf(client_keys, sizeof(client_keys), "%s/client/keys", folder);
        snprintf(server_keys, sizeof(server_keys), "%s/server", folder);
        setenv("SPANCL_KEYS", client_keys, 1);
        tls_by_kernel = false; /* unit/ktls is about the kernel's */
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_server_that_nobody_told_of_is_not_believed),
                cmocka_unit_test(a_known_server_learns_who_the_client_is),
                cmocka_unit_test(another_key_under_a_known_name_is_refused),
                cmocka_unit_test(a_pinned_key_is_the_only_one_believed),
                cmocka_unit_test(a_user_shows_the_own_key_to_a_server_with_a_pinned_one),
                cmocka_unit_test(hosts_with_the_same_keys_know_each_other),
                cmocka_unit_test(a_secret_authenticates_both_sides),
                cmocka_unit_test(a_token_in_both_folders_is_enough),
                cmocka_unit_test(a_folder_or_file_that_others_may_read_is_refused),
                cmocka_unit_test(an_entry_replaces_that_of_its_name_or_its_key),
                cmocka_unit_test(settings_stay_as_they_are),
                cmocka_unit_test(codes_are_read_as_people_write_them),
                cmocka_unit_test(keys_are_renewed_and_nothing_is_lost),
                cmocka_unit_test(data_left_in_memory_is_polled_for),
                cmocka_unit_test(a_connection_moves_with_its_keys),
                cmocka_unit_test(a_careful_reader_leaves_what_it_was_not_asked_for),
                cmocka_unit_test(a_changed_byte_ends_the_connection),
                cmocka_unit_test(bytes_that_are_no_handshake_fail),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        const char *const folders[] = { client_keys, server_keys };
        for (size_t i = 0; i < array_size(folders); i++) {
                keys_remove(folders[i], KEYS_IDENTITY);
                keys_remove(folders[i], KEYS_SERVERS);
                rmdir(folders[i]);
        }
        *strrchr(client_keys, '/') = 0;
        rmdir(client_keys);
        rmdir(folder);
        return r;
}
