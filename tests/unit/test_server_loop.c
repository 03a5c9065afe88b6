/* The loop that runs an engine, inside this process, over the in-process transport and over sockets. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "base/mem.h"
#include "loop/server_loop.h"
#include "loop/spin.h"
#include "os/clock.h"
#include "proto/object_id.h"
#include "session/hello.h"
#include "support/probe.h"
#include "transport/other_end.h"

struct watch {
        pthread_mutex_t lock;
        pthread_cond_t cond;
        bool over;
        int status;
        struct server_loop *loop;
        int greeted_fd; /* the loop's end of the last pair of sockets, which the loop closes */
};

static void on_ended(void *user, int status, const char *text)
{
        struct watch *w = user;
        (void)text;
        pthread_mutex_lock(&w->lock);
        w->over = true;
        w->status = status;
        pthread_cond_signal(&w->cond);
        pthread_mutex_unlock(&w->lock);
}

/* It spins where there are cores for it. */
static struct config_options options = { .values = { [CONFIG_spin] = "2000" } };

static void start(struct watch *w, const char *linger)
{
        options.values[CONFIG_linger] = linger;
        *w = (struct watch){ .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
        assert_int_equal(
                server_loop_new(&(struct server_loop_params){ .options = &options,
                                                              .backend = &backend_reference,
                                                              .output_fd = -1,
                                                              .ended = on_ended,
                                                              .user = w },
                                &w->loop),
                0);
}

static int wait_ended(struct watch *w)
{
        pthread_mutex_lock(&w->lock);
        while (!w->over)
                pthread_cond_wait(&w->cond, &w->lock);
        int status = w->status;
        pthread_mutex_unlock(&w->lock);
        return status;
}

static void stop(struct watch *w)
{
        w->loop = server_loop_free(w->loop);
        assert_true(w->over);
}

static void open_probe(struct watch *w, struct probe *p)
{
        probe_init(p, NULL);
        p->local = w->loop;
        assert_int_equal(probe_attach(p, 0), 0);
}

static void a_client_in_the_same_process_is_answered(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        assert_int_equal(server_loop_devices(w.loop), 2);
        open_probe(&w, &p);
        for (int i = 0; i < 200; i++)
                assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&w);
}

static void bulk_data_goes_straight_between_the_two_memories(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        open_probe(&w, &p);
        assert_true(probe_echo(&p, 1000, 0)); /* inline */
        assert_int_equal(probe_attach(&p, 1), 0);
        static const size_t sizes[] = { 20000, 65536, 1 << 20, (9 << 20) + 13, 32 << 20 };
        for (unsigned i = 0; i < array_size(sizes); i++)
                assert_true(probe_echo(&p, sizes[i], i + 1));
        assert_true(session_get_stats(p.session)->bulk_sent > 32 << 20);
        probe_fini(&p);
        stop(&w);
}

static void a_close_message_ends_the_session_at_once(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        open_probe(&w, &p);
        assert_int_equal(session_send(p.session, close, .status = 0), 0);
        assert_int_equal(link_flush(&p.lanes[0], SIZE_MAX, NULL), 0);
        assert_int_equal(wait_ended(&w), 0);
        assert_int_equal(probe_attach(&p, 0), SP_E_GONE);
        probe_fini(&p);
        stop(&w);
}

static void a_lost_client_comes_back_with_the_right_key_alone(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        open_probe(&w, &p);
        assert_int_equal(probe_ping(&p), 0);
        link_down(&p.lanes[0]);

        p.key[1] ^= 1;
        assert_int_equal(probe_attach(&p, 0), SP_E_AUTH);
        p.key[1] ^= 1;
        p.id[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), SP_E_GONE);
        p.id[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);

        /* and also before the server has noticed the loss */
        struct conn *old = p.lanes[0].conn;
        p.lanes[0].conn = NULL;
        session_lane_down(p.session, 0);
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        conn_close(old);
        probe_fini(&p);
        stop(&w);
}

static void a_lost_client_is_waited_for_no_longer_than_linger(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "0");
        open_probe(&w, &p);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        stop(&w);
}

static bool closed(const struct probe *p)
{
        return p->closed;
}

static void a_server_that_stops_says_why(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        open_probe(&w, &p);
        server_loop_stop(w.loop, "time to go");
        assert_int_equal(probe_drive(&p, closed, 20000), 0);
        assert_string_equal(p.close_text, "time to go");
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        probe_fini(&p);
        stop(&w);
}

static void a_server_without_a_client_stops_too(void **state)
{
        (void)state;
        struct watch w;
        start(&w, "60");
        server_loop_stop(w.loop, "time to go");
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        stop(&w);
        start(&w, "60");
        stop(&w);
}

static void a_client_that_breaks_the_protocol_ends_its_session(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        open_probe(&w, &p);
        uint8_t rubbish[64];
        memset(rubbish, 0xee, sizeof(rubbish));
        struct iovec iov = { rubbish, sizeof(rubbish) };
        assert_int_equal(p.lanes[0].conn->ops->sendv(p.lanes[0].conn, &iov, 1), sizeof(rubbish));
        assert_int_equal(wait_ended(&w), SP_E_PROTO);
        probe_fini(&p);
        stop(&w);
}

struct greeting {
        const struct dial_params *params;
        struct conn *ours, *conn;
        struct dial_reply *reply;
        int status;
};

static void *say_hello(void *arg)
{
        struct greeting *g = arg;
        g->status = loop_hello(g->params, g->ours, &g->conn, g->reply);
        return NULL;
}

static bool over_tcp; /* else Unix sockets */

static void make_pair(struct conn *ret[2])
{
        int fds[2];
        struct listener *l;
        if (!over_tcp) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
                assert_int_equal(conn_from_fd(fds[0], &ret[0]), 0);
                assert_int_equal(conn_from_fd(fds[1], &ret[1]), 0);
                return;
        }
        assert_int_equal(transport_tcp.listen("tcp:127.0.0.1:0", &l), 0);
        assert_int_equal(transport_tcp.connect(l->address, 20000, &ret[0]), 0);
        struct pollfd p = { .fd = l->fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, -1), 1);
        assert_int_equal(l->ops->accept(l, &ret[1]), 0);
        listener_close(l);
}

/* Over a pair of sockets: one side says hello, on `ret_thread`. The other's is read, as a supervisor
 * does, and handed to the loop. `g` says how it is answered when the thread has ended. */
static void hand_over(struct watch *w, struct greeting *g, pthread_t *ret_thread)
{
        struct conn *pair[2];
        make_pair(pair);
        struct conn *theirs = pair[1];
        g->ours = pair[0];
        assert_int_equal(pthread_create(ret_thread, NULL, say_hello, g), 0);

        uint8_t hello[HELLO_PREFIX + FRAME_HELLO_MAX];
        size_t have = 0;
        while (have < (size_t)hello_size(bytes_of(hello, have))) {
                struct iovec iov = { hello + have,
                                     (size_t)hello_size(bytes_of(hello, have)) - have };
                struct pollfd p = { .fd = theirs->fd, .events = POLLIN };
                ssize_t n = theirs->ops->recvv(theirs, &iov, 1);
                if (n == SP_E_AGAIN)
                        assert_int_equal(poll(&p, 1, 20000), 1);
                else
                        have += (size_t)n;
        }
        w->greeted_fd = theirs->fd;
        assert_int_equal(server_loop_attach(w->loop, theirs, bytes_of(hello, have)), 0);
}

static int greet(struct watch *w, const struct dial_params *d, struct conn **ret,
                 struct dial_reply *reply)
{
        pthread_t thread;
        struct greeting g = { .params = d, .reply = reply };
        hand_over(w, &g, &thread);
        pthread_join(thread, NULL);
        *ret = g.conn;
        return g.status;
}

static void connections_from_elsewhere_are_answered(void **state)
{
        (void)state;
        struct watch w;
        struct conn *conn = NULL;
        struct dial_reply reply;
        struct dial_params d = { .session_id = { 1, 2 }, .key = { 3, 4 }, .lane = 1 };
        start(&w, "60");
        assert_int_equal(greet(&w, &d, &conn, &reply), SP_E_GONE); /* lane 1 comes after lane 0 */
        assert_non_null(strstr(reply.text, "no such session"));
        d.lane = 7;
        assert_int_equal(greet(&w, &d, &conn, &reply), SP_E_UNSUPP);
        d.lane = 0;
        d.role = DIAL_PEER;
        assert_int_equal(greet(&w, &d, &conn, &reply), SP_E_GONE);
        assert_null(conn);
        d.role = DIAL_CLIENT;
        uint64_t before = clock_now_ns();
        assert_int_equal(greet(&w, &d, &conn, &reply), 0);
        assert_true(reply.time_ns >= before && reply.time_ns <= clock_now_ns());
        assert_int_equal(reply.version, WIRE_VERSION);
        conn_close(conn);
        stop(&w);
}

static void greet_probe(struct watch *w, struct probe *p, bool again)
{
        struct conn *conn = NULL;
        struct dial_params d = { .session_id = { p->id[0], p->id[1] },
                                 .key = { p->key[0], p->key[1] },
                                 .next_seq = session_next_seq(p->session),
                                 .generation = session_generation(p->session) + again };
        assert_int_equal(greet(w, &d, &conn, &p->reply), 0);
        assert_int_equal(link_up(&p->lanes[0], p->session, 0, conn, p->reply.next_seq), 0);
        if (again)
                assert_int_equal(session_resume(p->session, d.generation), 0);
}

static void a_client_over_a_socket_is_answered_and_may_come_again(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "60");
        probe_init(&p, NULL);
        for (unsigned times = 0; times < 5; times++) {
                greet_probe(&w, &p, times != 0);
                for (unsigned i = 0; i < 100; i++)
                        assert_int_equal(probe_ping(&p), 0);
                assert_true(times || probe_echo(&p, 1000, times));
                link_down(&p.lanes[0]);
        }
        greet_probe(&w, &p, true);
        assert_int_equal(session_send(p.session, close, .status = 0), 0);
        assert_int_equal(link_flush(&p.lanes[0], SIZE_MAX, NULL), 0);
        assert_int_equal(wait_ended(&w), 0);
        probe_fini(&p);
        stop(&w);
}

/* A peer's hello comes, and later the client's announcement of it. Return how it is answered. */
static int greet_early(struct watch *w, struct probe *p, unsigned peer)
{
        pthread_t thread;
        struct dial_reply reply;
        struct dial_params d = { .session_id = { p->id[0], p->id[1] },
                                 .key = { 7, peer },
                                 .generation = 1,
                                 .role = DIAL_PEER };
        struct greeting g = { .params = &d, .reply = &reply };
        hand_over(w, &g, &thread);
        for (int i = 0; i < 3; i++) /* the loop has seen it */
                assert_int_equal(probe_ping(p), 0);
        assert_int_equal(session_send(p->session, peer_expect, .peer = object_id(OBJECT_PEER, peer),
                                      .token_hi = 7, .token_lo = peer),
                         0);
        assert_int_equal(link_flush(&p->lanes[0], SIZE_MAX, NULL), 0);
        pthread_join(thread, NULL);
        conn_close(g.conn);
        return g.status;
}

static void a_peer_that_comes_before_the_client_announced_it_waits(void **state)
{
        enum { WAITS_NS = 2000000000 }; /* the loop waits longer */
        (void)state;
        struct watch w;
        struct probe p;
        int r;
        uint64_t began;
        unsigned peer = 0;
        start(&w, "60");
        probe_init(&p, NULL);
        greet_probe(&w, &p, false);
        do { /* again if this host was slow */
                began = clock_now_ns();
                r = greet_early(&w, &p, ++peer);
        } while (r == SP_E_AUTH && clock_now_ns() - began > WAITS_NS);
        assert_int_equal(r, 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&w);
}

/* Fill a socket until poll(2) reports no room, though a send still finds some. */
static bool has_ended(struct watch *w)
{
        pthread_mutex_lock(&w->lock);
        bool over = w->over;
        pthread_mutex_unlock(&w->lock);
        return over;
}

/* Its system resets lane 0 because of bytes that it has not read, and closes lane 1 in order a little later. */
static void a_client_that_ends_in_the_midst_of_messages_is_known_by_its_other_lane(void **state)
{
        enum { CLOSES_MS = 5, WAIT_MS = 2000 };
        (void)state;
        struct watch w;
        struct probe p;
        over_tcp = true;
        start(&w, "86400");
        probe_init(&p, NULL);
        for (bool again = false; !has_ended(&w); again = true) { /* if it was slow itself */
                struct conn *lane_1;
                struct dial_reply reply;
                greet_probe(&w, &p, again);
                struct dial_params d = { .session_id = { p.id[0], p.id[1] },
                                         .key = { p.key[0], p.key[1] },
                                         .generation = session_generation(p.session),
                                         .lane = 1 };
                assert_int_equal(greet(&w, &d, &lane_1, &reply), 0);
                conn_reset(p.lanes[0].conn);
                link_down(&p.lanes[0]);
                usleep(CLOSES_MS * 1000);
                conn_close(lane_1);
                for (int ms = 0; ms < WAIT_MS && !has_ended(&w); ms++)
                        usleep(1000);
        }
        over_tcp = false;
        probe_fini(&p);
        stop(&w);
}

static void fill(int fd)
{
        static const uint8_t rubbish[4096];
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        while (poll(&p, 1, 0) == 1)
                assert_int_equal(send(fd, rubbish, sizeof(rubbish), MSG_NOSIGNAL | MSG_DONTWAIT),
                                 sizeof(rubbish));
}

static void a_link_that_fails_to_send_is_lost_though_nothing_arrives(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        start(&w, "0");
        probe_init(&p, NULL);
        greet_probe(&w, &p, false);
        assert_int_equal(probe_ping(&p), 0);

        /* The server reads the query, fails to send its answer, and then poll(2) finds nothing. */
        fill(w.greeted_fd);
        assert_int_equal(shutdown(p.lanes[0].conn->fd, SHUT_RD), 0);
        assert_int_equal(session_send(p.session, clock_query), 0);
        assert_int_equal(link_flush(&p.lanes[0], SIZE_MAX, NULL), 0);
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        probe_fini(&p);
        stop(&w);
}

static bool answered(const struct probe *p)
{
        return p->clocks == 1;
}

static void messages_behind_a_hello_are_read_once_the_session_is_resumed(void **state)
{
        (void)state;
        struct watch w;
        struct probe p;
        auto_clean(buf_fini) struct buf early = { 0 };
        start(&w, "60");
        open_probe(&w, &p);
        assert_int_equal(probe_ping(&p), 0);
        link_down(&p.lanes[0]);

        assert_int_equal(session_send(p.session, clock_query), 0);
        assert_int_equal(session_early(p.session, 1000, &early), 0);
        p.clocks = 0;
        struct conn *conn = NULL;
        struct dial_params d = { .session_id = { p.id[0], p.id[1] },
                                 .key = { p.key[0], p.key[1] ^ 1 },
                                 .next_seq = session_next_seq(p.session),
                                 .generation = 1,
                                 .early = bytes_of(early.data, early.size) };
        assert_true(greet(&w, &d, &conn, &p.reply) < 0); /* nothing of it is looked at */
        d.key[1] ^= 1;
        assert_int_equal(greet(&w, &d, &conn, &p.reply), 0);
        assert_true(p.reply.early);
        assert_int_equal(link_up(&p.lanes[0], p.session, 0, conn, p.reply.next_seq), 0);
        session_early_sent(p.session);
        assert_int_equal(session_unsent(p.session), 0);
        assert_int_equal(session_resume(p.session, d.generation), 0);
        assert_int_equal(probe_drive(&p, answered, 20000), 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&w);
}

/* A connection that is handed to the loop with a whole hello, and whose other side is closed already. */
static void hand_over_dead(struct watch *w, const struct wire_hello *m)
{
        int fds[2];
        struct conn *theirs;
        auto_clean(buf_fini) struct buf hello = { 0 };
        assert_int_equal(hello_put(&hello, m), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(conn_from_fd(fds[1], &theirs), 0);
        close(fds[0]);
        assert_int_equal(server_loop_attach(w->loop, theirs, bytes_of(hello.data, hello.size)), 0);
}

static const struct wire_hello first_hello = {
        .version_min = WIRE_VERSION,
        .version_max = WIRE_VERSION,
        .session_hi = 1,
        .session_lo = 2,
        .key_hi = 3,
        .key_lo = 4,
        .name = { "dead", 4 },
};

static void a_client_that_is_gone_before_its_first_answer_ends_the_session(void **state)
{
        (void)state;
        struct watch w;
        start(&w, "0");
        hand_over_dead(&w, &first_hello);
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        stop(&w);
        start(&w, "0");
        struct wire_hello refused = first_hello;
        refused.lane = 1; /* of no session */
        hand_over_dead(&w, &refused);
        assert_int_equal(wait_ended(&w), SP_E_GONE);
        stop(&w);
}

static void a_client_that_is_gone_before_its_answer_may_come_again(void **state)
{
        (void)state;
        struct watch w;
        struct conn *conn = NULL;
        struct dial_reply reply;
        struct dial_params d = { .session_id = { 1, 2 }, .key = { 3, 4 }, .generation = 2 };
        start(&w, "60");
        hand_over_dead(&w, &first_hello);
        struct wire_hello again = first_hello;
        again.generation = 1;
        hand_over_dead(&w, &again);
        assert_int_equal(greet(&w, &d, &conn, &reply), 0);
        conn_close(conn);
        stop(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_in_the_same_process_is_answered),
                cmocka_unit_test(bulk_data_goes_straight_between_the_two_memories),
                cmocka_unit_test(a_close_message_ends_the_session_at_once),
                cmocka_unit_test(a_lost_client_comes_back_with_the_right_key_alone),
                cmocka_unit_test(a_lost_client_is_waited_for_no_longer_than_linger),
                cmocka_unit_test(a_server_that_stops_says_why),
                cmocka_unit_test(a_server_without_a_client_stops_too),
                cmocka_unit_test(a_client_that_breaks_the_protocol_ends_its_session),
                cmocka_unit_test(connections_from_elsewhere_are_answered),
                cmocka_unit_test(a_client_over_a_socket_is_answered_and_may_come_again),
                cmocka_unit_test(a_peer_that_comes_before_the_client_announced_it_waits),
                cmocka_unit_test(
                        a_client_that_ends_in_the_midst_of_messages_is_known_by_its_other_lane),
                cmocka_unit_test(a_link_that_fails_to_send_is_lost_though_nothing_arrives),
                cmocka_unit_test(messages_behind_a_hello_are_read_once_the_session_is_resumed),
                cmocka_unit_test(a_client_that_is_gone_before_its_first_answer_ends_the_session),
                cmocka_unit_test(a_client_that_is_gone_before_its_answer_may_come_again),
        };
        int failed = cmocka_run_group_tests_name("asleep", tests, NULL, NULL);
        spin_cores = 8;
        return failed + cmocka_run_group_tests_name("spinning", tests, NULL, NULL);
}
