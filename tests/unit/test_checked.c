/* Connections with checksums: bytes that are altered, lost or added on their way are never handed out. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "support/random.h"
#include "transport/checked.h"

TEST(crc32c_is_that_of_rfc_3720)
{
        uint8_t b[32];
        assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
        memset(b, 0, sizeof(b));
        assert_int_equal(crc32c(0, b, sizeof(b)), 0x8a9136aa);
        memset(b, 0xff, sizeof(b));
        assert_int_equal(crc32c(0, b, sizeof(b)), 0x62a8ab43);
        for (size_t i = 0; i < sizeof(b); i++)
                b[i] = (uint8_t)i;
        assert_int_equal(crc32c(0, b, sizeof(b)), 0x46dd794e);
        assert_int_equal(crc32c(0, NULL, 0), 0);
}

TEST(the_instruction_and_the_tables_agree_in_any_pieces)
{
        enum { SIZE = 100000 };
        struct rng rng = { 5 };
        uint8_t *b = malloc(SIZE);
        assert_non_null(b);
        for (size_t i = 0; i < SIZE; i++)
                b[i] = (uint8_t)rng_u64(&rng);
        for (int round = 0; round < 300; round++) {
                size_t from = rng_below(&rng, 64), size = rng_below(&rng, SIZE - from);
                size_t cut = rng_below(&rng, size + 1);
                uint32_t whole = crc32c_by_tables(0, b + from, size);
                assert_int_equal(crc32c(0, b + from, size), whole);
                assert_int_equal(crc32c(crc32c(0, b + from, cut), b + from + cut, size - cut),
                                 whole);
        }
        free(b);
}

enum { TOTAL = 300 << 10 };

/* Between the two sides somebody alters what goes from one to the other. */
struct way {
        struct conn *from, *to;
        int out, in; /* the sockets of that somebody */
        struct buf bytes;
};

static struct conn *conn_of(int fd)
{
        struct conn *c;
        assert_int_equal(conn_from_fd(fd, &c), 0);
        return c;
}

static void open_way(struct way *w, bool places)
{
        int a[2], b[2], room = 4 << 20;
        *w = (struct way){ 0 };
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
        setsockopt(a[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
        setsockopt(b[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
        w->from = conn_of(a[0]);
        w->out = a[1];
        w->to = conn_of(b[0]);
        w->in = b[1];
        assert_int_equal(checked_begin(&w->from, places), 0);
        assert_int_equal(checked_begin(&w->to, places), 0);
}

static void close_way(struct way *w)
{
        conn_close(w->from);
        conn_close(w->to);
        close(w->out);
        if (w->in >= 0)
                close(w->in);
        buf_fini(&w->bytes);
}

/* Collect the bytes that the sender has sent. */
static void collect(struct way *w)
{
        uint8_t chunk[8192];
        ssize_t n;
        while ((n = recv(w->out, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
                assert_int_equal(buf_put(&w->bytes, chunk, (size_t)n), 0);
}

static void send_all(struct way *w, const uint8_t *data, struct rng *rng)
{
        for (size_t at = 0; at < TOTAL;) {
                size_t size =
                        rng_chance(rng, 50) ? rng_range(rng, 1, 200) : rng_range(rng, 1, TOTAL);
                size = size < TOTAL - at ? size : TOTAL - at;
                size_t head = size < 24 ? size : 24;
                struct iovec iov[2] = { { (void *)(uintptr_t)(data + at), head },
                                        { (void *)(uintptr_t)(data + at + head), size - head } };
                ssize_t n = w->from->ops->sendv(w->from, iov, size > head ? 2 : 1);
                assert_true(n > 0 || n == SP_E_AGAIN);
                at += n > 0 ? (size_t)n : 0;
                collect(w);
        }
}

/* The bytes arrive in any portions. Returns what recvv said last; in *ret_got how many bytes it has given. */
static ssize_t receive_all(struct way *w, uint8_t *data, struct rng *rng, size_t *ret_got)
{
        size_t passed = 0, got = 0;
        ssize_t n = 0;
        for (;;) {
                size_t part = rng_range(rng, 1, 50000);
                part = part < w->bytes.size - passed ? part : w->bytes.size - passed;
                if (part)
                        assert_int_equal(send(w->in, w->bytes.data + passed, part, 0), part);
                passed += part;
                /* The same first place while nothing comes, as sessions have it. */
                struct iovec iov[2] = { { data + got, TOTAL - got } };
                n = got < TOTAL ? w->to->ops->recvv(w->to, iov, 1) : SP_E_AGAIN;
                got += n > 0 ? (size_t)n : 0;
                if (n < 0 && n != SP_E_AGAIN)
                        break;
                if (n == SP_E_AGAIN && passed == w->bytes.size)
                        break;
        }
        *ret_got = got;
        return n;
}

/* At least one thing is done to them. */
static void alter(struct buf *b, struct rng *rng)
{
        size_t at = rng_below(rng, b->size), n = rng_range(rng, 1, rng_chance(rng, 50) ? 4 : 5000);
        n = n < b->size - at ? n : b->size - at;
        switch (rng_below(rng, 4)) {
        case 0:
                b->data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
                break;
        case 1: /* lost */
                memmove(b->data + at, b->data + at + n, b->size - at - n);
                b->size -= n;
                break;
        case 2: /* twice */
                assert_int_equal(buf_reserve(b, n), 0);
                memmove(b->data + at + n, b->data + at, b->size - at);
                b->size += n;
                break;
        default: /* the end never comes */
                b->size = at;
        }
}

TEST(altered_data_is_never_delivered)
{
        uint8_t *sent = malloc(TOTAL), *came = malloc(TOTAL);
        assert_true(sent && came);
        unsigned found = 0, incomplete = 0;
        for (unsigned seed = 0; seed < 600; seed++) {
                struct rng rng = { seed };
                struct way w;
                size_t got;
                open_way(&w, seed & 1);
                for (size_t i = 0; i < TOTAL; i++)
                        sent[i] = (uint8_t)(rng_mix(i ^ seed) >> 9);
                send_all(&w, sent, &rng);
                bool altered = seed % 8 != 7;
                if (altered)
                        alter(&w.bytes, &rng);
                log_threshold = LOG_ERROR;
                ssize_t r = receive_all(&w, came, &rng, &got);
                assert_memory_equal(came, sent, got);
                if (altered)
                        assert_true(got < TOTAL || w.bytes.size);
                else
                        assert_int_equal(got, TOTAL);
                assert_true(r == SP_E_LINK || r == SP_E_AGAIN);
                found += r == SP_E_LINK;
                incomplete += r == SP_E_AGAIN && altered;
                /* From then on it is of no use. */
                struct iovec iov = { came, 1 };
                if (r == SP_E_LINK)
                        assert_int_equal(w.to->ops->recvv(w.to, &iov, 1), SP_E_LINK);
                close_way(&w);
        }
        assert_true(found > 300);
        assert_true(incomplete > 50); /* the clocks' business (session/owed.h) */
        free(sent);
        free(came);
}

/* recvv gives the rest of a record without asking the socket again, and poll(2) tells of it. */
TEST(a_rest_is_told_of)
{
        struct way w;
        uint8_t data[100] = { 1, 2, 3 }, out[10];
        open_way(&w, false);
        struct iovec iov = { data, sizeof(data) }, some = { out, sizeof(out) };
        assert_int_equal(w.from->ops->sendv(w.from, &iov, 1), sizeof(data));
        collect(&w);
        assert_int_equal(send(w.in, w.bytes.data, w.bytes.size, 0), w.bytes.size);
        for (size_t i = 0; i < sizeof(data) / sizeof(out); i++) {
                assert_int_equal(conn_wait(w.to, true, false, 1000), 0);
                assert_int_equal(w.to->ops->recvv(w.to, &some, 1), sizeof(out));
                assert_memory_equal(out, data + i * sizeof(out), sizeof(out));
        }
        assert_int_equal(conn_wait(w.to, true, false, 0), SP_E_AGAIN);
        assert_int_equal(w.to->ops->recvv(w.to, &some, 1), SP_E_AGAIN);
        close_way(&w);
}

/* A record arrives slowly: nothing of it is handed out, and the clocks hear that it comes. */
TEST(held_messages_are_counted)
{
        enum { SIZE = 100 << 10, STEP = 1000 };
        struct way w;
        uint8_t *data = calloc(1, SIZE), *out = malloc(SIZE);
        assert_true(data && out);
        open_way(&w, true);
        struct iovec iov = { data, SIZE }, place = { out, SIZE };
        assert_int_equal(w.from->ops->sendv(w.from, &iov, 1), SIZE);
        collect(&w);
        assert_int_equal(w.bytes.size, CHECKED_HEADER + SIZE);
        for (size_t at = 0; at < w.bytes.size; at += STEP) {
                size_t n = w.bytes.size - at < STEP ? w.bytes.size - at : STEP;
                bool last = at + n == w.bytes.size;
                assert_int_equal(w.to->came, at);
                assert_int_equal(send(w.in, w.bytes.data + at, n, 0), n);
                assert_int_equal(w.to->ops->recvv(w.to, &place, 1), last ? SIZE : SP_E_AGAIN);
        }
        assert_int_equal(w.to->came, w.bytes.size);
        close_way(&w);
        free(data);
        free(out);
}

/* Where messages come, probes would count as bytes of a record that was cut: so there records are small. */
TEST(without_places_little_is_held_back)
{
        enum { SIZE = 100 << 10, STEP = CHECKED_HEADER + CHECKED_RECORD_SMALL };
        struct way w;
        uint8_t *data = calloc(1, SIZE), *out = malloc(SIZE);
        assert_true(data && out);
        open_way(&w, false);
        for (size_t at = 0; at < SIZE;) {
                struct iovec iov = { data + at, SIZE - at };
                ssize_t n = w.from->ops->sendv(w.from, &iov, 1);
                assert_true(n > 0);
                at += (size_t)n;
        }
        collect(&w);
        struct iovec place = { out, SIZE };
        for (size_t at = 0; at < w.bytes.size; at += STEP) {
                assert_int_equal(send(w.in, w.bytes.data + at, STEP, 0), STEP);
                assert_int_equal(w.to->ops->recvv(w.to, &place, 1), CHECKED_RECORD_SMALL);
        }
        close_way(&w);
        free(data);
        free(out);
}

/* A header may claim what it likes: no memory beyond one record's. */
TEST(a_record_that_is_too_large_or_empty_ends_it)
{
        static const uint32_t sizes[] = { 0, CHECKED_RECORD_MAX + 1, UINT32_MAX };
        for (size_t i = 0; i < array_size(sizes); i++) {
                struct way w;
                uint8_t b[16] = { 0 }, header[CHECKED_HEADER];
                open_way(&w, false);
                bytes_put_u32(b + 8, sizes[i]);
                memcpy(header, b + 8, 8);
                bytes_put_u32(header + 8, crc32c(0, b, sizeof(b)));
                assert_int_equal(send(w.in, header, sizeof(header), 0), sizeof(header));
                struct iovec iov = { b, sizeof(b) };
                log_threshold = LOG_ERROR;
                assert_int_equal(w.to->ops->recvv(w.to, &iov, 1), SP_E_LINK);
                close_way(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(crc32c_is_that_of_rfc_3720),
                cmocka_unit_test(the_instruction_and_the_tables_agree_in_any_pieces),
                cmocka_unit_test(altered_data_is_never_delivered),
                cmocka_unit_test(a_rest_is_told_of),
                cmocka_unit_test(held_messages_are_counted),
                cmocka_unit_test(without_places_little_is_held_back),
                cmocka_unit_test(a_record_that_is_too_large_or_empty_ends_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
