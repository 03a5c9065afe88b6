/* TLS whose records the kernel makes. The kernel is a played one (support/ktls.h), of the old
 * kind and the new. The test also uses this host's kernel, if it has TLS. */
#include <arpa/inet.h>
#include <linux/tls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/check.h"
#include "support/ktls.h"
#include "transport/tls.h"

enum { TYPE_ALERT = 21, TYPE_HANDSHAKE = 22, TYPE_DATA = 23 };

static const struct crypto_ops *crypto;

/* ---- two sides ------------------------------------------------------------------------------ */

/* A state in the sense of tls.h. */
struct moved {
        uint64_t cipher, tx_seq, rx_seq;
        uint8_t tx_secret[CRYPTO_SECRET], rx_secret[CRYPTO_SECRET];
};

struct pair {
        struct conn *kernel, *process;
};

static struct conn *side(int fd, struct moved m, bool by_kernel)
{
        uint8_t state[TLS_STATE_SIZE];
        struct conn *c;
        memcpy(state, &m, sizeof(state));
        tls_by_kernel = by_kernel;
        assert_int_equal(tls_import(fd, state, &c), 0);
        tls_by_kernel = true;
        return c;
}

static void socket_pair(int ret[2])
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(a);
        int l = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(l, (struct sockaddr *)&a, size), 0);
        assert_int_equal(listen(l, 1), 0);
        assert_int_equal(getsockname(l, (struct sockaddr *)&a, &size), 0);
        ret[0] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(ret[0], (struct sockaddr *)&a, size), 0);
        ret[1] = accept(l, NULL, NULL);
        assert_true(ret[1] >= 0);
        close(l);
}

static struct moved mirrored(struct moved m)
{
        struct moved o = { m.cipher, m.rx_seq, m.tx_seq };
        memcpy(o.tx_secret, m.rx_secret, CRYPTO_SECRET);
        memcpy(o.rx_secret, m.tx_secret, CRYPTO_SECRET);
        return o;
}

static struct pair pair_up(enum crypto_cipher cipher)
{
        struct moved m = { cipher, 5, (1u << 16) + 7, { 1 }, { 2 } };
        int fds[2];
        socket_pair(fds);
        return (struct pair){ side(fds[0], m, true), side(fds[1], mirrored(m), false) };
}

static void end(struct pair *p)
{
        conn_close(p->kernel);
        conn_close(p->process);
        ktls_kernel_reset();
        ktls_kernel = (struct ktls_kernel){ .offered = true };
        tls_records_per_key = 1 << 24;
}

/* Move bytes until one side reports an error, which `*ret` gets. Return how many came. */
static size_t cross_some(struct conn *from, struct conn *to, size_t size, ssize_t *ret)
{
        uint8_t *data = mem_alloc(size), *got = mem_zalloc(size);
        size_t sent = 0, came = 0;
        for (size_t i = 0; i < size; i++)
                data[i] = (uint8_t)(i * 2654435761u >> 13);
        *ret = 0;
        while (came < size) {
                size_t half = (size - sent) / 2;
                struct iovec out[3] = { { data + sent, half },
                                        { NULL, 0 },
                                        { data + sent + half, size - sent - half } };
                ssize_t n = *ret || sent == size ? 0 : from->ops->sendv(from, out, 3);
                if (n < 0 && n != SP_E_AGAIN)
                        *ret = n;
                sent += n > 0 ? (size_t)n : 0;
                half = (size - came) / 3;
                struct iovec in[2] = { { got + came, half },
                                       { got + came + half, size - came - half } };
                n = to->ops->recvv(to, in, 2);
                if (n < 0 && n != SP_E_AGAIN)
                        *ret = n;
                came += n > 0 ? (size_t)n : 0;
                if (*ret && n <= 0)
                        break;
                if (n == SP_E_AGAIN && (sent == size || *ret))
                        (void)conn_wait(to, true, false, 1000);
        }
        assert_memory_equal(data, got, came);
        mem_free(data);
        mem_free(got);
        return came;
}

static void cross(struct conn *from, struct conn *to, size_t size)
{
        ssize_t said;
        assert_int_equal(cross_some(from, to, size, &said), size);
        assert_int_equal(said, 0);
}

static void cross_all(struct pair *p)
{
        static const size_t sizes[] = { 1, 2, 100, 16384, 16385, 300000 };
        for (size_t i = 0; i < array_size(sizes); i++) {
                cross(p->kernel, p->process, sizes[i]);
                cross(p->process, p->kernel, sizes[i]);
        }
}

/* Send a record of any type, which the other side's kernel or process would not send. */
static void send_record(struct pair *p, uint8_t type, const void *data, size_t size)
{
        struct crypto_key *key = crypto->key_new(CRYPTO_AES_128_GCM, true, (uint8_t[32]){ 2 });
        uint8_t out[5 + 64 + 1 + CRYPTO_TAG] = { TYPE_DATA, 3, 3, 0,
                                                 (uint8_t)(size + 1 + CRYPTO_TAG) };
        struct iovec iov = { (void *)(uintptr_t)data, size };
        static uint64_t seq;
        seq = type == TYPE_DATA ? (1u << 16) + 7 : seq + 1;
        assert_true(crypto->seal(key, seq, out, &iov, 1, type, out + 5));
        crypto->key_free(key);
        assert_int_equal(send(p->process->fd, out, 5 + size + 1 + CRYPTO_TAG, 0),
                         5 + size + 1 + CRYPTO_TAG);
}

static int wait_one(struct conn *c, uint8_t *ret)
{
        struct iovec iov = { ret, 1 };
        ssize_t r;
        while ((r = c->ops->recvv(c, &iov, 1)) == SP_E_AGAIN)
                (void)conn_wait(c, true, false, 1000);
        return (int)r;
}

/* ---- claims --------------------------------------------------------------------------------- */

static void a_kernel_seals_and_opens_tls_records(void **state)
{
        (void)state;
        static const struct {
                bool no_tx, no_rx;
                const char *name;
        } cases[] = { { false, false, "ktls" },
                      { false, true, "ktls sends" },
                      { true, false, "ktls receives" },
                      { true, true, "tls" } };
        for (size_t i = 0; i < 2 * array_size(cases); i++) {
                ktls_kernel.no_tx = cases[i / 2].no_tx;
                ktls_kernel.no_rx = cases[i / 2].no_rx;
                struct pair p = pair_up(i % 2 ? CRYPTO_AES_128_GCM : CRYPTO_CHACHA20_POLY1305);
                assert_string_equal(conn_name(p.kernel), cases[i / 2].name);
                assert_string_equal(conn_name(p.process), "tls");
                cross_all(&p);
                end(&p);
        }
}

static void this_hosts_kernel_does_so_too(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                ktls_kernel.real = true;
                struct pair p = pair_up(i ? CRYPTO_AES_128_GCM : CRYPTO_CHACHA20_POLY1305);
                bool has = !strcmp(conn_name(p.kernel), "ktls");
                printf("this kernel: %s\n", conn_name(p.kernel));
                if (has) {
                        cross_all(&p);
                        tls_records_per_key = 1000; /* is not reached, but asked about */
                        for (int k = 0; k < 500; k++)
                                cross(p.kernel, p.process, 100);
                }
                end(&p);
                if (!has && i)
                        skip();
        }
}

static void without_its_offer_or_our_wish_all_is_as_before(void **state)
{
        (void)state;
        ktls_kernel.offered = false;
        struct pair p = pair_up(CRYPTO_AES_128_GCM);
        assert_string_equal(conn_name(p.kernel), "tls");
        assert_int_equal(ktls_kernel.asked, 1); /* the other side was told not to */
        assert_int_equal(ktls_kernel.keys_taken, 0);
        cross_all(&p);
        end(&p);
}

static void a_connection_of_the_kernels_does_not_move(void **state)
{
        (void)state;
        struct pair p = pair_up(CRYPTO_AES_128_GCM);
        struct buf b = { 0 };
        assert_int_equal(conn_export(p.kernel, &b), SP_E_BUSY);
        assert_int_equal(conn_export(p.process, &b), 0);
        buf_fini(&b);
        end(&p);
}

static void keys_are_renewed_by_kernels_that_can(void **state)
{
        (void)state;
        for (int real = 0; real < 2; real++) {
                ktls_kernel.rekeys = true;
                ktls_kernel.real = real;
                struct pair p = pair_up(CRYPTO_AES_128_GCM);
                tls_records_per_key = 20;
                ssize_t said = 0;
                for (int i = 0; i < 60 && !said; i++) {
                        struct conn *from = i % 2 ? p.process : p.kernel;
                        size_t got = cross_some(from, i % 2 ? p.kernel : p.process, 300000, &said);
                        assert_true(got == 300000 || real);
                }
                if (real)
                        printf("this kernel: %s, %s new keys\n", conn_name(p.kernel),
                               said ? "takes no" : "takes");
                else
                        assert_true(ktls_kernel.keys_taken > 30);
                end(&p);
        }
}

static void a_worn_key_that_the_kernel_cannot_renew_ends_the_link(void **state)
{
        (void)state;
        for (int way = 0; way < 2; way++) {
                struct pair p = pair_up(CRYPTO_AES_128_GCM);
                ssize_t said;
                cross(p.kernel, p.process, 1);
                tls_records_per_key = (1u << 16) + 20;
                if (!way)
                        tls_records_per_key = 20;
                size_t came = way ? cross_some(p.process, p.kernel, 3000000, &said)
                                  : cross_some(p.kernel, p.process, 3000000, &said);
                assert_int_equal(said, SP_E_LINK);
                assert_true(came >= 10 * 16384 && came < 3000000);
                end(&p);
        }
}

static void a_key_update_is_understood_in_the_smallest_places(void **state)
{
        (void)state;
        static const uint8_t update[] = { 24, 0, 0, 1, 0 };
        ktls_kernel.rekeys = true;
        struct pair p = pair_up(CRYPTO_AES_128_GCM);
        uint8_t got = 0;
        send_record(&p, TYPE_DATA, "x", 1);
        assert_int_equal(wait_one(p.kernel, &got), 1);
        assert_int_equal(got, 'x');
        unsigned keys = ktls_kernel.keys_taken;
        send_record(&p, TYPE_HANDSHAKE, update, sizeof(update));
        struct iovec iov = { &got, 1 };
        ssize_t r;
        while ((r = p.kernel->ops->recvv(p.kernel, &iov, 1)) == SP_E_AGAIN &&
               ktls_kernel.keys_taken == keys)
                (void)conn_wait(p.kernel, true, false, 1000);
        assert_int_equal(r, SP_E_AGAIN);
        assert_int_equal(ktls_kernel.keys_taken, keys + 1);
        end(&p);
}

static void an_alert_or_anything_else_ends_the_link(void **state)
{
        (void)state;
        static const struct {
                uint8_t type, size, data[6];
        } cases[] = { { TYPE_ALERT, 2, { 1, 0 } },
                      { TYPE_HANDSHAKE, 5, { 24, 0, 0, 1, 1 } }, /* which asks for another */
                      { TYPE_HANDSHAKE, 4, { 4, 0, 0, 0 } },
                      { 99, 1, { 0 } } };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct pair p = pair_up(CRYPTO_AES_128_GCM);
                uint8_t got;
                send_record(&p, TYPE_DATA, "x", 1);
                send_record(&p, cases[i].type, cases[i].data, cases[i].size);
                assert_int_equal(wait_one(p.kernel, &got), 1);
                assert_int_equal(wait_one(p.kernel, &got), SP_E_LINK);
                assert_int_equal(wait_one(p.kernel, &got), SP_E_LINK);
                end(&p);
        }
}

int main(void)
{
        char text[KEYS_TEXT_MAX] = "";
        crypto = tls_crypto(text);
        if (!crypto) {
                fprintf(stderr, "%s\n", text);
                return 1;
        }
        ktls_kernel.offered = true;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kernel_seals_and_opens_tls_records),
                cmocka_unit_test(without_its_offer_or_our_wish_all_is_as_before),
                cmocka_unit_test(a_connection_of_the_kernels_does_not_move),
                cmocka_unit_test(keys_are_renewed_by_kernels_that_can),
                cmocka_unit_test(a_worn_key_that_the_kernel_cannot_renew_ends_the_link),
                cmocka_unit_test(a_key_update_is_understood_in_the_smallest_places),
                cmocka_unit_test(an_alert_or_anything_else_ends_the_link),
                cmocka_unit_test(this_hosts_kernel_does_so_too),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
