/* Sessions of a spancld that runs: their links, workers, limits, and links to other servers. */
#include "support/check.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CL/cl.h>

#include "base/mem.h"
#include "support/daemon.h"
#include "support/probe.h"

static void sessions_are_served_over_both_ip_versions_and_unix_sockets(void **state)
{
        (void)state;
        struct daemon d;
        static char socket_option[] = "--socket", path[64];
        snprintf(path, sizeof(path), "/tmp/spancl-daemon-%d.sock", (int)getpid());
        daemon_start(&d, (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, path,
                                     NULL });
        daemon_assert_serves(&d);
        snprintf(d.address, sizeof(d.address), "tcp:127.0.0.1:%u", d.port);
        daemon_assert_serves(&d);
        snprintf(d.address, sizeof(d.address), "unix:%s", path);
        daemon_assert_serves(&d);
        for (int share = 0; share < 2; share++) {
                struct probe p;
                probe_init(&p, d.address);
                p.share = share;
                assert_int_equal(probe_attach(&p, 0), 0);
                assert_int_equal(probe_attach(&p, 1), 0);
                for (unsigned i = 0; i < 2; i++)
                        assert_ptr_equal(p.lanes[i].conn->ops,
                                         share ? &transport_shm : &transport_unix);
                assert_true(probe_echo(&p, (5 << 20) + 3, 1));
                assert_true(probe_echo(&p, 100, 2));
                probe_fini(&p);
        }
        daemon_stop(&d);
        assert_int_not_equal(access(path, F_OK), 0);
}

static bool never(const struct probe *p)
{
        (void)p;
        return false;
}

static void a_killed_worker_ends_its_session_alone(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        daemon_start(&d, NULL);
        pid_t first = daemon_warm_worker(&d);
        daemon_join(&d, &a);
        assert_int_equal(probe_attach(&a, 1), 0);
        daemon_warm_worker(&d);
        daemon_join(&d, &b);
        assert_int_equal(probe_ping(&a), 0);

        assert_int_equal(kill(first, SIGKILL), 0);
        assert_int_equal(probe_drive(&a, never, 10000), SP_E_LINK);
        probe_drop(&a, 0);
        /* The bytes received are gone: the session can't be had back. A connection that is handed to the
         * dying process is closed. */
        int r;
        while ((r = probe_attach(&a, 0)) == SP_E_LINK)
                usleep(20000);
        assert_int_equal(r, SP_E_GONE);
        assert_int_equal(probe_ping(&b), 0);
        daemon_assert_serves(&d);
        assert_true(daemon_comes_to_log(&d, "its session is lost"));
        probe_fini(&a);
        probe_fini(&b);
        daemon_stop(&d);
}

/* Its alarm is set when the session has ended. */
static void a_worker_that_does_not_end_in_time_lost_nothing(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a;
        daemon_start(&d, NULL);
        pid_t pid = daemon_warm_worker(&d);
        daemon_join(&d, &a);
        assert_int_equal(probe_ping(&a), 0);
        assert_int_equal(kill(pid, SIGALRM), 0);
        assert_true(daemon_comes_to_log(&d, "its session, which is over, goes on"));
        probe_fini(&a);
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

static bool closed(const struct probe *p)
{
        return p->closed;
}

static void sigterm_says_goodbye_to_sessions(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, NULL);
        daemon_join(&d, &p);
        assert_int_equal(probe_ping(&p), 0);
        kill(d.pid, SIGTERM);
        assert_int_equal(probe_drive(&p, closed, 10000), 0);
        assert_non_null(strstr(p.close_text, "shut down"));
        int status = daemon_wait_end(&d);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
        assert_true(daemon_has_scratch(&d, 0));
        probe_drop(&p, 0);
        assert_int_equal(probe_attach(&p, 0), SP_E_REFUSED);
        probe_fini(&p);
        daemon_forget(&d);
}

static void workers_end_with_their_supervisor(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        pid_t all[DAEMON_CHILDREN_MAX];
        daemon_start(&d, NULL);
        daemon_join(&d, &p);
        for (int i = 0; i < 500 && daemon_children(&d, all) < 2;
             i++) /* the session's and a warm one */
                usleep(20000);
        daemon_warm_worker(&d);
        assert_true(daemon_children(&d, all) >= 2);
        kill(d.pid, SIGKILL);
        waitpid(d.pid, NULL, 0);
        assert_int_equal(probe_drive(&p, never, 15000), SP_E_LINK);
        probe_fini(&p);
        /* A worker cannot remove its folder, which is left to the next one, and so is the supervisor's own. */
        struct daemon next;
        daemon_start_in(&next, d.folder, NULL);
        daemon_warm_worker(&next);
        assert_true(daemon_has_scratch(&next, 2));
        daemon_stop(&next);
}

static void a_lost_session_can_be_attached_again_with_its_key(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, NULL);
        daemon_join(&d, &p);
        assert_int_equal(probe_ping(&p), 0);
        probe_drop(&p, 0);
        p.key[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), SP_E_AUTH);
        assert_non_null(strstr(p.reply.text, "key"));
        assert_int_equal(probe_attach(&p, 1), SP_E_AUTH);
        p.key[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        daemon_stop(&d);
}

static void a_lost_session_lingers_for_the_time_given(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, (char *[]){ (char[]){ "--linger" }, (char[]){ "0" }, NULL });
        daemon_join(&d, &p);
        assert_int_equal(probe_ping(&p), 0);
        probe_drop(&p, 0);
        int r = 0;
        for (int i = 0; i < 300 && r != SP_E_GONE; i++) {
                usleep(20000);
                r = probe_attach(&p, 1); /* never makes a session */
                probe_drop(&p, 1);
        }
        assert_int_equal(r, SP_E_GONE);
        probe_fini(&p);
        daemon_stop(&d);
}

static bool event_came(const struct probe *p)
{
        return p->event != 0;
}

static bool peer_lost(const struct probe *p)
{
        return p->peers_lost > 0;
}

/* a's server is told to reach b's under `host`. */
static void introduce(struct probe *a, struct probe *b, const char *host, unsigned port)
{
        assert_int_equal(session_send(b->session, peer_expect, .peer = object_id(OBJECT_PEER, 1),
                                      .token_hi = 5, .token_lo = 6),
                         0);
        assert_int_equal(session_send(a->session, peer_open, .peer = object_id(OBJECT_PEER, 2),
                                      .host = bytes_str(host), .port = port, .session_hi = b->id[0],
                                      .session_lo = b->id[1], .token_hi = 5, .token_lo = 6),
                         0);
        assert_int_equal(probe_ping(a), 0);
        assert_int_equal(probe_ping(b), 0);
}

static void hand_on(struct probe *a, struct probe *b, unsigned n, size_t size)
{
        uint64_t event = object_id(OBJECT_EVENT, 100 * n);
        assert_int_equal(probe_create(a, n, size), 0);
        assert_int_equal(probe_create(b, n, size), 0);
        assert_int_equal(probe_write(a, n, event, size, n), 0);
        assert_int_equal(session_send(a->session, buffer_read, .event = event + 1,
                                      .queue = object_id(OBJECT_QUEUE, n),
                                      .buffer = object_id(OBJECT_BUFFER, n), .size = size,
                                      .peer = object_id(OBJECT_PEER, 2), .transfer = event + 1),
                         0);
        assert_int_equal(session_send(b->session, buffer_write, .event = event + 2,
                                      .queue = object_id(OBJECT_QUEUE, n), .flags = COMMAND_NOTIFY,
                                      .buffer = object_id(OBJECT_BUFFER, n), .size = size,
                                      .peer = object_id(OBJECT_PEER, 1), .transfer = event + 1),
                         0);
        assert_int_equal(probe_ping(a), 0);
        b->event = 0;
        assert_int_equal(probe_drive(b, event_came, 20000), 0);
        assert_int_equal(b->event_status, 0);
        assert_true(probe_read(b, n, event + 3, size, n));
}

static void servers_hand_data_to_each_other(void **state)
{
        (void)state;
        struct daemon d, e;
        struct probe a, b;
        static char socket_option[] = "--socket", path[64], other[64];
        snprintf(path, sizeof(path), "/tmp/spancl-peer-%d.sock", (int)getpid());
        snprintf(other, sizeof(other), "/tmp/spancl-other-%d.sock", (int)getpid());
        /* One without a socket of its own is not let to those of others. */
        daemon_start(&d, (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, other,
                                     NULL });
        daemon_start(&e, (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, path,
                                     NULL });
        for (int round = 0; round < 2; round++) {
                pid_t worker = daemon_warm_worker(&e);
                probe_init(&a, d.address);
                probe_init(&b, e.address);
                for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                        assert_int_equal(probe_attach(&a, lane), 0);
                        assert_int_equal(probe_attach(&b, lane), 0);
                }
                char host[128];
                snprintf(host, sizeof(host), "%s%s", round ? "unix:" : "localhost",
                         round ? path : "");
                introduce(&a, &b, host, round ? 0 : e.port);
                hand_on(&a, &b, 1, 100);
                hand_on(&a, &b, 2, (3 << 20) + 5);
                assert_int_equal(a.peers_lost, 0);
                assert_int_equal(b.peers_lost, 0);
                if (round) {
                        kill(worker, SIGKILL);
                        /* The server that dialled dials again, and hears that there is no such session any more. */
                        assert_int_equal(probe_drive(&a, peer_lost, 20000), 0);
                        assert_int_equal(probe_ping(&a), 0);
                } else {
                        probe_drop(&a, 0); /* its session lingers, and so does the link */
                        assert_int_equal(probe_ping(&b), 0);
                }
                probe_fini(&a);
                probe_fini(&b);
        }
        daemon_stop(&d);
        daemon_stop(&e);
}

/* The first transfer goes through the host's memory, and the memory of the device is offered meanwhile. */
static void servers_of_one_host_share_memory_of_a_device(void **state)
{
        (void)state;
        static char sockets[2][64];
        struct daemon d[2];
        struct probe a, b;
        for (int i = 0; i < 2; i++) {
                snprintf(sockets[i], sizeof(sockets[i]), "/tmp/spancl-near%d-%d.sock", i,
                         (int)getpid());
                daemon_start(&d[i], (char *[]){ (char[]){ "--linger" }, (char[]){ "5" },
                                                (char[]){ "--socket" }, sockets[i], NULL });
                daemon_join(&d[i], i ? &b : &a);
                assert_int_equal(probe_attach(i ? &b : &a, 1), 0);
        }
        char host[80];
        snprintf(host, sizeof(host), "unix:%s", sockets[1]);
        introduce(&a, &b, host, 0);
        for (unsigned n = 1; n <= 3; n++)
                hand_on(&a, &b, n, (17 << 20) + 16 * n);
        assert_true(daemon_comes_to_log(&d[1], "256 MiB of device memory are shared with a peer"));
        assert_int_equal(a.peers_lost + b.peers_lost, 0);
        probe_fini(&a);
        probe_fini(&b);
        daemon_stop(&d[0]);
        daemon_stop(&d[1]);
}

static void a_peer_that_cannot_be_reached_is_reported(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        daemon_start(&d, NULL);
        daemon_join(&d, &a);
        daemon_join(&d, &b);
        introduce(&a, &b, "127.0.0.1", 1);
        assert_int_equal(probe_drive(&a, peer_lost, 20000), 0);
        assert_int_equal(probe_ping(&a), 0);
        probe_fini(&a);
        probe_fini(&b);
        daemon_stop(&d);
}

/* Linux connects to 0.0.0.0 as to 127.0.0.1, but it is no loopback address. */
static void servers_go_encrypted_to_what_is_not_loopback(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        struct listener *there;
        char host[80] = "0.0.0.0#";
        memset(host + strlen(host), 'a', 64);
        assert_int_equal(transport_tcp.listen("tcp:127.0.0.1:0", &there), 0);
        unsigned port = (unsigned)atoi(strrchr(there->address, ':') + 1);
        struct pollfd p = { .fd = there->fd, .events = POLLIN };
        daemon_start(&d, NULL);
        for (int keyed = 0; keyed < 2; keyed++) {
                probe_init(&a, d.address);
                probe_init(&b, d.address);
                assert_int_equal(probe_attach(&a, 0), 0);
                assert_int_equal(probe_attach(&b, 0), 0);
                host[7] = keyed ? '#' : 0;
                introduce(&a, &b, host, port);
                uint8_t first = 0;
                while (!a.peers_lost && !first) {
                        while (poll(&p, 1, 0) > 0) {
                                int fd = accept(there->fd, NULL, NULL);
                                if (recv(fd, &first, 1, 0) == 1)
                                        assert_int_equal(first, 0x16); /* TLS; ours is 'S' */
                                close(fd);
                        }
                        assert_int_equal(probe_ping(&a), 0);
                }
                probe_fini(&a);
                probe_fini(&b);
        }
        daemon_stop(&d);
        listener_close(there);
}

static void sessions_have_a_limit(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        daemon_start(&d, (char *[]){ (char[]){ "--sessions" }, (char[]){ "1" }, NULL });
        probe_init(&a, d.address);
        probe_init(&b, d.address);
        assert_int_equal(probe_attach(&a, 0), 0);
        assert_int_equal(probe_attach(&b, 0), SP_E_LIMIT);
        assert_int_equal(probe_ping(&a), 0);
        probe_fini(&a);
        probe_fini(&b);
        daemon_stop(&d);
}

static void a_session_has_the_memory_and_objects_given(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, (char *[]){ (char[]){ "--session-buffers" }, (char[]){ "1" },
                                     (char[]){ "--session-objects" }, (char[]){ "16" }, NULL });
        probe_init(&p, d.address);
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                assert_int_equal(probe_attach(&p, lane), 0);
        assert_int_equal(probe_create(&p, 1, 700 << 10), 0);
        assert_int_equal(probe_write(&p, 1, object_id(OBJECT_EVENT, 10), 700 << 10, 1), 0);
        assert_true(probe_read(&p, 1, object_id(OBJECT_EVENT, 11), 700 << 10, 1));
        assert_int_equal(probe_create(&p, 2, 700 << 10), 0);
        assert_int_not_equal(probe_write(&p, 2, object_id(OBJECT_EVENT, 20), 100, 2), 0);
        assert_int_equal(p.event_status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_true(daemon_comes_to_log(&d, "MiB of buffers and images"));
        for (unsigned n = 3; n < 20; n++)
                assert_int_equal(probe_create(&p, n, 8), 0);
        assert_int_equal(probe_write(&p, 8, object_id(OBJECT_EVENT, 30), 8, 2), 0);
        assert_int_not_equal(probe_write(&p, 9, object_id(OBJECT_EVENT, 31), 8, 2), 0);
        assert_int_equal(p.event_status, CL_OUT_OF_RESOURCES);
        assert_true(daemon_comes_to_log(&d, "the session has 16 objects, and may have 16"));
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        daemon_stop(&d);
}

static void many_sessions_may_begin_at_once(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p[8];
        daemon_start(&d, NULL);
        for (size_t i = 0; i < array_size(p); i++) {
                probe_init(&p[i], d.address);
                assert_int_equal(probe_attach(&p[i], 0), 0);
        }
        for (size_t i = 0; i < array_size(p); i++)
                assert_int_equal(probe_ping(&p[i]), 0);
        for (size_t i = 0; i < array_size(p); i++)
                probe_fini(&p[i]);
        daemon_stop(&d);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sessions_are_served_over_both_ip_versions_and_unix_sockets),
                cmocka_unit_test(a_killed_worker_ends_its_session_alone),
                cmocka_unit_test(a_worker_that_does_not_end_in_time_lost_nothing),
                cmocka_unit_test(sigterm_says_goodbye_to_sessions),
                cmocka_unit_test(workers_end_with_their_supervisor),
                cmocka_unit_test(a_lost_session_can_be_attached_again_with_its_key),
                cmocka_unit_test(a_lost_session_lingers_for_the_time_given),
                cmocka_unit_test(servers_hand_data_to_each_other),
                cmocka_unit_test(servers_of_one_host_share_memory_of_a_device),
                cmocka_unit_test(a_peer_that_cannot_be_reached_is_reported),
                cmocka_unit_test(servers_go_encrypted_to_what_is_not_loopback),
                cmocka_unit_test(sessions_have_a_limit),
                cmocka_unit_test(a_session_has_the_memory_and_objects_given),
                cmocka_unit_test(many_sessions_may_begin_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
