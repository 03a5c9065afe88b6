/* Shared memory with a bounce buffer: what lies there, or belongs there, arrives like everything else, and in order. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "os/passing.h"
#include "transport/bounce.h"
#include "transport/shm.h"
#include "transport/transport.h"

enum { RING = 64 << 10, BOUNCE = 4 << 20, HEADER = 4096 };

struct fixture {
        struct conn *a, *b;
        uint8_t *here, *there; /* the bounce buffer, as each maps it */
};

static uint8_t *map(int fd)
{
        void *at = mmap(NULL, BOUNCE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        return at;
}

static int setup(void **state)
{
        struct fixture *f = mem_zalloc(sizeof(*f));
        int fds[2], memory = memfd_create("stage", MFD_CLOEXEC);
        assert_int_equal(ftruncate(memory, BOUNCE), 0);
        f->here = map(memory);
        f->there = map(memory);
        close(memory);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        assert_int_equal(conn_from_fd(fds[0], &f->a), 0);
        assert_int_equal(conn_from_fd(fds[1], &f->b), 0);
        assert_int_equal(shm_offer(&f->a, RING, 0), 0);
        assert_int_equal(shm_accept(&f->b), 0);
        assert_int_equal(conn_wait(f->a, false, true, 20000), 0);
        conn_bounce(f->a, f->here, BOUNCE);
        conn_bounce(f->b, f->there, BOUNCE);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;
        conn_close(f->a);
        conn_close(f->b);
        munmap(f->here, BOUNCE);
        munmap(f->there, BOUNCE);
        mem_free(f);
        return 0;
}

static void fill(uint8_t *to, size_t size, uint64_t at)
{
        for (size_t i = 0; i < size; i++, at++)
                to[i] = (uint8_t)(at * 2654435761u >> 13);
}

static ssize_t sendv(struct conn *c, const void *data, size_t size)
{
        struct iovec iov = { (void *)(uintptr_t)data, size };
        return c->ops->sendv(c, &iov, 1);
}

static ssize_t recvv(struct conn *c, void *data, size_t size)
{
        struct iovec iov = { data, size };
        return c->ops->recvv(c, &iov, 1);
}

/* The receiver has said that it takes bytes there. */
static void expect_places(struct fixture *f)
{
        assert_int_equal(recvv(f->b, f->there, BOUNCE_PIECE), SP_E_AGAIN);
}

static void the_sender_writes_into_the_place(void **state)
{
        struct fixture *f = *state;
        enum { SIZE = 1 << 20 };
        static uint8_t data[SIZE];
        uint8_t *place = f->there + 4096;
        fill(data, SIZE, 0);
        expect_places(f);
        assert_int_equal(sendv(f->a, data, 24), 24); /* small: not asked about */
        assert_int_equal(sendv(f->a, data, SIZE), SP_E_AGAIN);
        assert_int_equal(sendv(f->a, data, SIZE), SP_E_AGAIN);
        assert_int_equal(recvv(f->b, place, 24), 24);
        assert_int_equal(conn_wait(f->b, true, false, 0), 0); /* the question */
        assert_int_equal(recvv(f->b, place, SIZE - 100), SP_E_AGAIN);
        assert_int_equal(conn_wait(f->b, true, false, 0), SP_E_AGAIN);
        assert_true(conn_is_engaged(f->b));
        assert_int_equal(conn_wait(f->a, false, true, 0), 0); /* the answer */
        assert_int_equal(sendv(f->a, data, SIZE), SIZE - 100);
        assert_memory_equal(f->here + 4096, data, SIZE - 100); /* there already */
        assert_int_equal(sendv(f->a, data + SIZE - 100, 100), 100);
        assert_int_equal(conn_wait(f->b, true, false, 0), 0);
        assert_int_equal(recvv(f->b, place, SIZE - 100), SIZE - 100);
        assert_false(conn_is_engaged(f->b));
        assert_int_equal(recvv(f->b, place + SIZE - 100, 1000), 100);
        assert_memory_equal(place, data, SIZE);
}

/* Also when only a part of it has come, the sender having no more. */
static void a_place_is_filled_before_anything_else_comes(void **state)
{
        struct fixture *f = *state;
        enum { SIZE = 300 << 10, FIRST = 200 << 10 };
        static uint8_t data[SIZE];
        uint8_t tail[8];
        fill(data, SIZE, 7);
        expect_places(f);
        assert_int_equal(sendv(f->a, data, FIRST), SP_E_AGAIN);
        assert_int_equal(recvv(f->b, f->there, SIZE - 8), SP_E_AGAIN);
        assert_int_equal(sendv(f->a, data, FIRST), FIRST);
        assert_int_equal(recvv(f->b, f->there, SIZE - 8), FIRST);
        assert_int_equal(recvv(f->b, f->there + FIRST, SIZE - 8 - FIRST), SP_E_AGAIN);
        for (size_t at = FIRST; at < SIZE;) {
                ssize_t r = sendv(f->a, data + at, SIZE - at < 1000 ? SIZE - at : 1000);
                assert_true(r > 0);
                at += (size_t)r;
        }
        for (size_t at = FIRST; at < SIZE - 8;) {
                ssize_t r = recvv(f->b, f->there + at, SIZE - 8 - at);
                assert_true(r > 0);
                at += (size_t)r;
        }
        assert_int_equal(recvv(f->b, tail, 8), 8);
        assert_memory_equal(f->there, data, SIZE - 8);
        assert_memory_equal(tail, data + SIZE - 8, 8);
}

static void data_for_other_memory_takes_the_ring(void **state)
{
        struct fixture *f = *state;
        enum { SIZE = BOUNCE_PIECE };
        static uint8_t data[SIZE], got[SIZE];
        fill(data, SIZE, 3);
        expect_places(f);
        assert_int_equal(sendv(f->a, data, SIZE), SP_E_AGAIN);
        assert_int_equal(recvv(f->b, got, SIZE), SP_E_AGAIN);
        for (size_t sent = 0, at = 0; at < SIZE;) {
                ssize_t r = sendv(f->a, data + sent, SIZE - sent);
                assert_true(r > 0 || r == SP_E_AGAIN || sent == SIZE);
                sent += r > 0 ? (size_t)r : 0;
                r = recvv(f->b, got + at, SIZE - at);
                assert_true(r > 0);
                at += (size_t)r;
        }
        assert_memory_equal(got, data, SIZE);
        /* And the next one is not asked about. */
        assert_true(sendv(f->a, data, SIZE) > 0);
}

static void a_piece_of_the_bounce_is_copied_by_the_receiver(void **state)
{
        struct fixture *f = *state;
        enum { SIZE = 1 << 20 };
        static uint8_t got[SIZE];
        uint8_t small[24] = { 1 };
        fill(f->there, SIZE, 5);
        struct iovec iov[2] = { { small, sizeof(small) }, { f->there, SIZE } };
        assert_int_equal(f->b->ops->sendv(f->b, iov, 2), 24);
        assert_int_equal(sendv(f->b, f->there, SIZE), SP_E_AGAIN);
        assert_int_equal(sendv(f->b, f->there, SIZE), SP_E_AGAIN);
        assert_int_equal(recvv(f->a, small, 24), 24);
        assert_int_equal(conn_wait(f->a, true, false, 0), 0);
        assert_int_equal(recvv(f->a, got, 1000), 1000);
        assert_int_equal(conn_wait(f->b, false, true, 0), 0);
        assert_int_equal(sendv(f->b, f->there, SIZE), 1000);
        assert_int_equal(sendv(f->b, f->there + 1000, SIZE - 1000), SP_E_AGAIN);
        assert_true(conn_is_engaged(f->b));
        assert_int_equal(recvv(f->a, got + 1000, SIZE), SIZE - 1000);
        assert_int_equal(sendv(f->b, f->there + 1000, SIZE - 1000), SIZE - 1000);
        assert_false(conn_is_engaged(f->b));
        assert_memory_equal(got, f->here, SIZE);
        assert_int_equal(sendv(f->b, small, 24), 24);
        assert_int_equal(recvv(f->a, small, 24), 24);
}

/* The memory may hold something else from then on. */
static void nothing_is_taken_from_who_has_closed(void **state)
{
        struct fixture *f = *state;
        static uint8_t data[BOUNCE_PIECE], got[BOUNCE_PIECE];
        assert_int_equal(sendv(f->b, f->there, BOUNCE_PIECE), SP_E_AGAIN);
        expect_places(f);
        assert_int_equal(sendv(f->a, data, sizeof(data)), SP_E_AGAIN);
        assert_int_equal(recvv(f->b, f->there, sizeof(data)), SP_E_AGAIN);
        f->b = conn_close(f->b);
        assert_int_equal(recvv(f->a, got, sizeof(got)), SP_E_LINK);
        assert_int_equal(sendv(f->a, data, sizeof(data)), SP_E_LINK);
}

/* ---- anything ------------------------------------------------------------------------------- */

enum { STREAM = 48 << 20, PIECES = 3, HALF = BOUNCE / 2 };

/* One side, which sends and receives. */
struct end {
        struct conn *conn;
        uint8_t *bounce; /* NULL: it uses memory of its own */
        unsigned seed;
        size_t sent, received;
        uint8_t *out, *in, *want;
        struct iovec pieces[PIECES];
        int first, count;  /* of `pieces`: those that are not sent */
        uint8_t *place;    /* of bytes that come; NULL: to be chosen */
        size_t size, have; /* of it */
};

static unsigned next(unsigned *seed)
{
        *seed = *seed * 1664525 + 1013904223;
        return *seed >> 8;
}

/* Small ones, and such as are worth a bounce buffer. */
static size_t some(unsigned *seed, size_t left)
{
        static const size_t sizes[] = { 24, 5000, BOUNCE_PIECE, 400 << 10 };
        size_t size = 1 + next(seed) % sizes[next(seed) % array_size(sizes)] +
                      (next(seed) % 4 ? 0 : BOUNCE_PIECE);
        return size < left ? size : left;
}

/* 0: nothing can be sent now. */
static ssize_t send_some(struct end *e)
{
        if (e->first == e->count) {
                uint8_t *from = e->bounce && next(&e->seed) % 2 ? e->bounce : e->out;
                e->first = e->count = 0;
                for (size_t at = 0; e->count < PIECES && e->sent < STREAM; e->count++) {
                        size_t size = some(&e->seed, STREAM - e->sent);
                        fill(from + at, size, e->sent);
                        e->pieces[e->count] = (struct iovec){ from + at, size };
                        at += size;
                        e->sent += size;
                }
        }
        if (e->first == e->count)
                return 0;
        ssize_t r = e->conn->ops->sendv(e->conn, e->pieces + e->first, e->count - e->first);
        if (r < 0)
                return r == SP_E_AGAIN ? 0 : r;
        for (size_t left = (size_t)r; left;) {
                struct iovec *v = &e->pieces[e->first];
                size_t step = left < v->iov_len ? left : v->iov_len;
                v->iov_base = (uint8_t *)v->iov_base + step;
                v->iov_len -= step;
                left -= step;
                e->first += !v->iov_len;
        }
        return r;
}

static ssize_t receive_some(struct end *e)
{
        if (e->received == STREAM)
                return 0;
        if (!e->place) {
                e->place = e->bounce && next(&e->seed) % 3 ? e->bounce + HALF : e->in;
                e->size = some(&e->seed, STREAM - e->received);
                e->have = 0;
        }
        ssize_t r = recvv(e->conn, e->place + e->have, e->size - e->have);
        if (r < 0)
                return r == SP_E_AGAIN ? 0 : r;
        e->have += (size_t)r;
        if (e->have < e->size)
                return r;
        fill(e->want, e->size, e->received);
        if (memcmp(e->place, e->want, e->size)) {
                fprintf(stderr, "of %zu bytes from %zu on some are wrong\n", e->size, e->received);
                abort();
        }
        e->received += e->size;
        e->place = NULL;
        return r;
}

static void *move(void *arg)
{
        struct end *e = arg;
        e->out = malloc(HALF);
        e->in = malloc(HALF);
        e->want = malloc(HALF);
        while (e->sent < STREAM || e->first < e->count || e->received < STREAM) {
                ssize_t sent = send_some(e), received = receive_some(e);
                if (sent < 0 || received < 0)
                        abort(); /* cmocka would end the process without a word */
                if (!sent && !received)
                        (void)conn_wait(e->conn, e->received < STREAM, e->first < e->count, 20000);
        }
        free(e->out);
        free(e->in);
        free(e->want);
        return NULL;
}

/* Both ways, as between a server, which uses the bounce buffer, and its client. */
static void every_byte_comes_once_and_in_order(void **state)
{
        struct fixture *f = *state;
        for (unsigned seed = 1; seed <= 3; seed++) {
                struct end client = { .conn = f->a, .seed = seed },
                           server = { .conn = f->b, .seed = seed + 10, .bounce = f->there };
                pthread_t t;
                assert_int_equal(pthread_create(&t, NULL, move, &client), 0);
                move(&server);
                pthread_join(t, NULL);
        }
}

/* One side writes what it likes into the memory of both. */
static void nothing_that_is_said_of_the_bounce_is_believed(void **state)
{
        (void)state;
        uint64_t random = 88172645463325252ull;
        uint8_t *data = mem_zalloc(2 * BOUNCE_PIECE), *bounce = mem_zalloc(BOUNCE);
        for (int round = 0; round < 2000; round++) {
                struct conn *c;
                int fds[2], fd;
                char what;
                struct iovec told = { &what, 1 };
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
                assert_int_equal(conn_from_fd(fds[0], &c), 0);
                assert_int_equal(shm_offer(&c, 4096, 0), 0);
                assert_int_equal(passing_receive(fds[1], &told, 1, &fd, 1), 1);
                uint64_t *shared = mmap(NULL, HEADER, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                assert_ptr_not_equal(shared, MAP_FAILED);
                close(fd);
                assert_int_equal(send(fds[1], "Y", 1, 0), 1);
                conn_bounce(c, bounce, BOUNCE);
                for (int step = 0; step < 20; step++) {
                        for (int k = 0; k < 12; k++) {
                                random ^= random << 13;
                                random ^= random >> 7;
                                random ^= random << 17;
                                uint64_t value = random >> 8;
                                if (round % 2) /* as a position or a number may be */
                                        value %= step % 3 ? 3 : BOUNCE;
                                shared[random % (HEADER / 3 / sizeof(*shared))] = value;
                        }
                        struct iovec iov[2] = { { data, BOUNCE_PIECE }, { data, 100 } };
                        if (round % 3 == 0)
                                iov[0].iov_base = bounce + 4096;
                        ssize_t r = step % 2 ? c->ops->sendv(c, iov, 2) : c->ops->recvv(c, iov, 2);
                        assert_true(r > 0 ? r <= BOUNCE_PIECE + 100
                                          : r == SP_E_AGAIN || r == SP_E_LINK);
                        (void)conn_wait(c, true, step % 3, 0);
                }
                munmap(shared, HEADER);
                conn_close(c);
                close(fds[1]);
        }
        mem_free(data);
        mem_free(bounce);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                CASE(the_sender_writes_into_the_place),
                CASE(a_place_is_filled_before_anything_else_comes),
                CASE(data_for_other_memory_takes_the_ring),
                CASE(a_piece_of_the_bounce_is_copied_by_the_receiver),
                CASE(nothing_is_taken_from_who_has_closed),
                CASE(every_byte_comes_once_and_in_order),
                cmocka_unit_test(nothing_that_is_said_of_the_bounce_is_believed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
