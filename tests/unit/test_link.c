/* src/loop/link, lanes: what a thread that looks again and again receives without the lock, records that
 * come slowly, and the silence of hosts. */
#include "support/check.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/lanes.h"
#include "loop/link.h"
#include "session/session.h"
#include "transport/checked.h"
#include "transport/shm.h"

enum { MESSAGES = 3 };

/* One side of a session over a socket. */
struct end {
        struct session *session;
        struct link link;
        unsigned heard; /* messages */
};

static int on_message(void *user, struct bytes message)
{
        struct end *e = user;
        (void)message;
        e->heard++;
        return 0;
}

static void ends_init(struct end ends[2], bool shared)
{
        static const struct session_ops ops = { .message = on_message };
        int fds[2];
        struct conn *conns[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(conn_from_fd(fds[i], &conns[i]), 0);
        if (shared) {
                assert_int_equal(shm_offer(&conns[0], 64 << 10, 0), 0);
                assert_int_equal(shm_accept(&conns[1]), 0);
        }
        for (int i = 0; i < 2; i++) {
                ends[i] = (struct end){ 0 };
                const struct session_params p = { .ops = &ops, .user = &ends[i] };
                assert_int_equal(session_new(&p, &ends[i].session), 0);
                assert_int_equal(link_up(&ends[i].link, ends[i].session, 0, conns[i], 0), 0);
        }
}

static void ends_fini(struct end ends[2])
{
        for (int i = 0; i < 2; i++) {
                link_down(&ends[i].link);
                session_free(ends[i].session);
        }
}

static void say(struct end *e)
{
        assert_int_equal(session_send(e->session, queue_flush, .queue = 1), 0);
        assert_int_equal(link_flush(&e->link, SIZE_MAX, NULL), 0);
}

/* It may do so on the way to something else, after which it looks again. */
TEST(messages_tried_and_not_received_are_not_lost)
{
        struct end ends[2];
        struct link *l = &ends[0].link;
        ends_init(ends, false);
        assert_true(link_try_begin(l));
        assert_false(link_try(l));
        assert_false(link_is_due(l));
        say(&ends[1]);
        assert_true(link_try(l));
        link_try_end(l);
        assert_true(link_is_due(l));
        assert_int_equal(link_polled(l, NULL, 0) & CONN_IN, CONN_IN);

        say(&ends[1]);
        assert_false(link_try_begin(l));
        assert_int_equal(ends[0].heard, 0);
        assert_int_equal(link_receive(l, SIZE_MAX, NULL), 0);
        assert_false(link_is_due(l));
        assert_int_equal(link_receive(l, SIZE_MAX, NULL), 0);
        assert_int_equal(ends[0].heard, 2);
        assert_true(link_try_begin(l));
        link_try_end(l);
        ends_fini(ends);
}

/* ---- the other side's last message ----------------------------------------------------------- */

/* The last message may be the other side's reason to close the session. */
static void last_message_is_received(struct end ends[2])
{
        struct link *l = &ends[0].link;
        for (int i = 0; i < MESSAGES; i++)
                say(&ends[1]);
        link_down(&ends[1].link);
        assert_int_equal(session_send(ends[0].session, queue_flush, .queue = 1), 0);
        assert_int_equal(link_flush(l, SIZE_MAX, NULL), SP_E_AGAIN);
        /* The thread that drives the link does not sleep, nor send again, before it has
         * received. */
        assert_true(link_is_due(l));
        assert_int_equal(link_polled(l, NULL, 0) & CONN_IN, CONN_IN);
        assert_false(link_try_begin(l));
        l->blocked = false;
        assert_false(link_can_send(l));
        assert_int_equal(link_flush(l, SIZE_MAX, NULL), SP_E_AGAIN);

        assert_int_equal(ends[0].heard, 0);
        assert_int_equal(link_receive(l, SIZE_MAX, NULL), SP_E_LINK);
        assert_int_equal(ends[0].heard, MESSAGES);
        link_down(l);
        assert_false(link_is_due(l));
        ends_fini(ends);
}

TEST(a_link_that_fails_to_send_receives_what_has_come)
{
        struct end ends[2];
        ends_init(ends, false);
        last_message_is_received(ends);
}

TEST(so_does_one_through_shared_memory)
{
        struct end ends[2];
        ends_init(ends, true);
        last_message_is_received(ends);
}

/* ---- a record that arrives slowly ------------------------------------------------------------ */

enum { RECORD = 100 << 10, STEP = 1500 };

static uint8_t place[RECORD];

static int place_of(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        assert_true(offset + *len <= RECORD);
        *ret = place + offset;
        return 0;
}

static int arrived(void *user, uint64_t transfer, uint64_t offset, size_t len, uint64_t *ret_below)
{
        *ret_below = offset + len;
        return 1;
}

/* A bulk frame as a checked connection sends it. */
static struct buf sent_frame(void)
{
        int fds[2];
        struct conn *conn;
        struct buf all = { 0 };
        uint8_t header[FRAME_HEADER_SIZE], *payload = calloc(1, RECORD);
        assert_non_null(payload);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(conn_from_fd(fds[0], &conn), 0);
        assert_int_equal(checked_begin(&conn, true), 0);
        frame_put(header, &(struct frame){ .type = FRAME_BULK, .size = RECORD, .seq = 1 });
        struct iovec iov[2] = { { header, sizeof(header) }, { payload, RECORD } };
        for (int first = 0; first < 2;) {
                ssize_t n = conn->ops->sendv(conn, iov + first, 2 - first);
                assert_true(n > 0 || n == SP_E_AGAIN);
                for (; n > 0 && first < 2; first += !iov[first].iov_len) {
                        size_t len =
                                iov[first].iov_len < (size_t)n ? iov[first].iov_len : (size_t)n;
                        iov[first].iov_base = (uint8_t *)iov[first].iov_base + len;
                        iov[first].iov_len -= len;
                        n -= (ssize_t)len;
                }
                assert_int_equal(buf_reserve(&all, RECORD), 0);
                n = recv(fds[1], all.data + all.size, all.cap - all.size, MSG_DONTWAIT);
                all.size += n > 0 ? (size_t)n : 0;
        }
        conn_close(conn);
        close(fds[1]);
        free(payload);
        return all;
}

/* Though nothing of it is handed out, the session's clock for the rest of the frame hears that it comes. */
TEST(a_checked_record_that_comes_slowly_is_no_silence)
{
        static const struct session_ops ops = { .message = on_message,
                                                .bulk_place = place_of,
                                                .bulk_arrived = arrived };
        const uint64_t limit = 1000000000;
        struct session *s;
        struct link link = { 0 };
        struct conn *conn;
        int fds[2];
        struct buf all = sent_frame();
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(session_new(&(struct session_params){ .ops = &ops }, &s), 0);
        assert_int_equal(conn_from_fd(fds[0], &conn), 0);
        assert_int_equal(checked_begin(&conn, true), 0);
        assert_int_equal(link_up(&link, s, 1, conn, 0), 0);
        uint64_t now = 1;
        for (size_t at = 0; at < all.size; now += limit / 16) {
                size_t n = all.size - at < STEP ? all.size - at : STEP;
                assert_int_equal(send(fds[1], all.data + at, n, 0), n);
                at += n;
                assert_true(link_receive(&link, SIZE_MAX, NULL) >= 0);
                assert_int_equal(session_tick(s, SESSION_EXPECTS_NOTHING, limit, now), 0);
        }
        assert_int_equal(session_get_stats(s)->bulk_received, FRAME_HEADER_SIZE + RECORD);
        link_down(&link);
        session_free(s);
        close(fds[1]);
        buf_fini(&all);
}

/* ---- silence -------------------------------------------------------------------------------- */

/* A connection over TCP within this host. */
static void tcp_pair(int fds[2])
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(a);
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(listener >= 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&a, size), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
        fds[0] = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(fds[0] >= 0);
        assert_int_equal(connect(fds[0], (struct sockaddr *)&a, size), 0);
        fds[1] = accept(listener, NULL, NULL);
        assert_true(fds[1] >= 0);
        close(listener);
}

/* A thread that sends while the owner sleeps learns that nobody will look, once until all is acknowledged. */
TEST(bytes_that_anyone_sent_are_watched_once_the_owner_has_looked)
{
        static const struct session_ops ops = { .message = on_message };
        const unsigned limit_ms = transport_timeout_ms;
        struct lanes lanes = { 0 };
        struct conn *conn;
        int fds[2];
        transport_timeout_ms = 1000;
        tcp_pair(fds);
        assert_int_equal(session_new(&(struct session_params){ .ops = &ops }, &lanes.session), 0);
        assert_int_equal(conn_from_fd(fds[0], &conn), 0);
        assert_int_equal(link_up(&lanes.links[0], lanes.session, 0, conn, 0), 0);
        for (uint64_t now = 1000; now < 10000000000; now += 1000000000) {
                assert_int_equal(lanes_silent(&lanes, now), -1);
                assert_int_equal(lanes.silence_ns, 0);
                assert_false(lanes_unwatched(&lanes));
                assert_int_equal(session_send(lanes.session, queue_flush, .queue = 1), 0);
                assert_int_equal(link_flush(&lanes.links[0], SIZE_MAX, NULL), 0);
                assert_true(lanes_unwatched(&lanes));
                assert_int_equal(lanes_silent(&lanes, now), -1);
                assert_int_equal(lanes.silence_ns, now + 250000000);
                assert_false(lanes_unwatched(&lanes));
        }
        transport_timeout_ms = 0;
        lanes.silence_ns = 0;
        assert_false(lanes_unwatched(&lanes));
        transport_timeout_ms = limit_ms;
        lanes_down(&lanes);
        session_free(lanes.session);
        close(fds[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_tried_and_not_received_are_not_lost),
                cmocka_unit_test(a_link_that_fails_to_send_receives_what_has_come),
                cmocka_unit_test(so_does_one_through_shared_memory),
                cmocka_unit_test(a_checked_record_that_comes_slowly_is_no_silence),
                cmocka_unit_test(bytes_that_anyone_sent_are_watched_once_the_owner_has_looked),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
