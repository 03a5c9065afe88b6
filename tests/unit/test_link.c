/* src/loop/link: what a thread that looks again and again receives without the lock. */
#include "support/check.h"

#include <sys/socket.h>

#include "loop/link.h"
#include "session/session.h"

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

static void ends_init(struct end ends[2])
{
        static const struct session_ops ops = { .message = on_message };
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        for (int i = 0; i < 2; i++) {
                struct conn *conn;
                ends[i] = (struct end){ 0 };
                const struct session_params p = { .ops = &ops, .user = &ends[i] };
                assert_int_equal(conn_from_fd(fds[i], &conn), 0);
                assert_int_equal(session_new(&p, &ends[i].session), 0);
                assert_int_equal(link_up(&ends[i].link, ends[i].session, 0, conn, 0), 0);
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
TEST(what_was_tried_and_not_received_is_not_lost)
{
        struct end ends[2];
        struct link *l = &ends[0].link;
        ends_init(ends);
        assert_true(link_try_begin(l));
        assert_false(link_try(l));
        assert_false(link_has_tried(l));
        say(&ends[1]);
        assert_true(link_try(l));
        link_try_end(l);
        assert_true(link_has_tried(l));
        assert_int_equal(link_polled(l, NULL, 0) & CONN_IN, CONN_IN);

        say(&ends[1]);
        assert_false(link_try_begin(l));
        assert_int_equal(ends[0].heard, 0);
        assert_int_equal(link_receive(l, SIZE_MAX, NULL), 0);
        assert_false(link_has_tried(l));
        assert_int_equal(link_receive(l, SIZE_MAX, NULL), 0);
        assert_int_equal(ends[0].heard, 2);
        assert_true(link_try_begin(l));
        link_try_end(l);
        ends_fini(ends);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_tried_and_not_received_is_not_lost),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
