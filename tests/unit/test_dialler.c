/* The dialler: the requests that a worker may make, and the bytes that go to each address. Also
 * one session does not keep others waiting. The last claims are about the process itself. */
#include "support/check.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/dialler/dial_message.h"
#include "daemon/dialler/reach.h"
#include "daemon/worker/dialling.h"
#include "session/hello.h"

enum { WAIT_MS = 60000, SEEN = 4 };

/* Words that a worker that was taken over might send to a service that reads lines. */
static const char evil[] = "\r\nFLUSHALL\r\nFLUSHALL\r\n\r\n\r\nSET\r\n";

static struct dial_params params_of(const char *address)
{
        struct dial_params p = { .address = address,
                                 .role = DIAL_PEER,
                                 .lane = 1,
                                 .next_seq = 7,
                                 .generation = 8,
                                 .share = true,
                                 .packs = true };
        memcpy(p.session_id, evil, sizeof(p.session_id));
        memcpy(p.key, evil + sizeof(p.session_id), sizeof(p.key));
        return p;
}

/* ---- requests and answers ------------------------------------------------------------------- */

TEST(a_request_says_what_a_hello_of_a_peer_says)
{
        (void)state;
        const struct fabric_choice fabric = { .names = "verbs;ofi_rxm,efa", .named = true };
        struct dial_params p = params_of("tls:host.example:7777#00");
        struct dial_request q;
        struct buf b = { 0 };
        p.fabric = &fabric;
        p.role = DIAL_LOOK; /* these are not the worker's to choose */
        p.name = "another";
        assert_int_equal(dial_request_put(&b, 5, &p), 0);
        assert_int_equal(dial_request_get(bytes_of(b.data, b.size), &q), 0);
        assert_int_equal(q.number, 5);
        assert_string_equal(q.params.address, p.address);
        assert_string_equal(q.params.name, "peer");
        assert_string_equal(q.params.fabric->names, fabric.names);
        assert_true(q.params.fabric->named && q.params.share && q.params.packs);
        assert_int_equal(q.params.role, DIAL_PEER);
        assert_int_equal(q.params.lane, 1);
        assert_memory_equal(q.params.session_id, p.session_id, sizeof(p.session_id));
        assert_memory_equal(q.params.key, p.key, sizeof(p.key));
        assert_int_equal(q.params.next_seq, 7);
        assert_int_equal(q.params.generation, 8);
        assert_false(q.params.own_user);
        buf_fini(&b);
}

static int get(const struct buf *b)
{
        static struct dial_request q;
        return dial_request_get(bytes_of(b->data, b->size), &q);
}

TEST(requests_out_of_bounds_are_refused)
{
        (void)state;
        static const char *const bad[] = { "", "tcp:a b:1", "tcp:a\r\nb:1", "tcp:\x7f:1",
                                           "tcp:\xc3\xa4:1" };
        char longer[DIAL_ADDRESS_MAX + 1];
        struct buf b = { 0 };
        struct dial_params p = params_of("tcp:x");
        memset(longer, 'a', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = 0;
        for (size_t i = 0; i < array_size(bad); i++) {
                b.size = 0;
                p.address = bad[i];
                assert_int_equal(dial_request_put(&b, 1, &p), 0);
                assert_int_equal(get(&b), SP_E_PROTO);
        }
        p.address = longer;
        assert_int_equal(dial_request_put(&b, 1, &p), SP_E_INVAL);
        p.address = "tcp:x";
        b.size = 0;
        assert_int_equal(dial_request_put(&b, 1, &p), 0);
        assert_int_equal(get(&b), 0);
        size_t whole = b.size;
        for (b.size = 0; b.size < whole - 4; b.size++)
                assert_int_equal(get(&b), SP_E_PROTO);
        b.size = whole;
        b.data[8] = 12; /* checks that there are not */
        assert_int_equal(get(&b), SP_E_PROTO);
        b.data[8] = 0;
        assert_int_equal(buf_put(&b, "\0", 1), 0);
        assert_int_equal(get(&b), SP_E_PROTO);
        const struct fabric_choice fabric = { .names = "a b" };
        p.fabric = &fabric;
        b.size = 0;
        assert_int_equal(dial_request_put(&b, 1, &p), 0);
        assert_int_equal(get(&b), SP_E_PROTO);
        buf_fini(&b);
}

/* ---- what is sent to whom ------------------------------------------------------------------- */

/* A listener that answers each connection in the same way, and keeps what the connections said. */
struct service {
        struct listener *listener;
        const char *says; /* NULL: SpanCL, which takes each hello */
        pthread_t thread;
        atomic_bool over;
        struct buf seen[SEEN]; /* by the last one, too, what came later */
        atomic_uint count;
};

static void answer_hello(struct conn *c)
{
        struct buf out = { 0 };
        struct wire_hello_reply m = { .version = WIRE_VERSION, .next_seq = 77 };
        assert_int_equal(hello_put_reply(&out, &m), 0);
        struct iovec iov = { out.data, out.size };
        assert_int_equal(c->ops->sendv(c, &iov, 1), out.size);
        buf_fini(&out);
}

static void attend(struct service *s, struct conn *c)
{
        struct buf *b = &s->seen[s->count < SEEN ? (int)s->count : SEEN - 1];
        b->size = 0;
        uint8_t data[4096];
        struct iovec iov = { data, sizeof(data) };
        if (s->says) {
                struct iovec text = { (void *)(uintptr_t)s->says, strlen(s->says) };
                if (text.iov_len)
                        (void)!c->ops->sendv(c, &text, 1);
        }
        for (bool answered = false; !atomic_load(&s->over);) {
                (void)conn_wait(c, true, false, 20);
                ssize_t n = c->ops->recvv(c, &iov, 1);
                if (n == SP_E_LINK)
                        break;
                if (n < 0)
                        continue;
                assert_int_equal(buf_put(b, data, (size_t)n), 0);
                if (!s->says && !answered &&
                    hello_size(bytes_of(b->data, b->size)) == (int)b->size) {
                        answer_hello(c);
                        answered = true;
                }
        }
        s->count++;
        conn_close(c);
}

static void *listen_thread(void *arg)
{
        struct service *s = arg;
        while (!atomic_load(&s->over)) {
                struct conn *c;
                struct pollfd p = { .fd = s->listener->fd, .events = POLLIN };
                if (poll(&p, 1, 20) > 0 && s->listener->ops->accept(s->listener, &c) == 0)
                        attend(s, c);
        }
        return NULL;
}

static void open_service(struct service *s, const char *address, const char *says)
{
        *s = (struct service){ .says = says };
        assert_int_equal(transport_of(address)->listen(address, &s->listener), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, listen_thread, s), 0);
}

static void close_service(struct service *s)
{
        atomic_store(&s->over, true);
        pthread_join(s->thread, NULL);
        listener_close(s->listener);
        for (size_t i = 0; i < array_size(s->seen); i++)
                buf_fini(&s->seen[i]);
}

static int reach(const struct dial_params *p, bool local, struct dial_reply *reply)
{
        struct buf b = { 0 }, hello = { 0 };
        struct dial_request q;
        struct conn *conn;
        assert_int_equal(dial_request_put(&b, 1, p), 0);
        assert_int_equal(dial_request_get(bytes_of(b.data, b.size), &q), 0);
        q.params.timeout_ms = p->timeout_ms ? p->timeout_ms : q.params.timeout_ms;
        int r = reach_peer(&q, local, &conn, &hello, reply);
        assert_true((r == 0) == (hello.size > 0) && (r == 0) == !reply->text[0]);
        if (!r)
                conn_close(conn);
        buf_fini(&b);
        buf_fini(&hello);
        return r;
}

static bool has(const struct buf *b, const void *what, size_t size)
{
        return b->size && memmem(b->data, b->size, what, size);
}

TEST(other_programs_receive_no_bytes_that_a_worker_chose)
{
        (void)state;
        static const char *const says[] = { "", "HTTP/1.1 400 Bad Request\r\n\r\n", "220 ready\r\n",
                                            "SPANCL\r\n1234567890123456" };
        for (size_t i = 0; i < array_size(says); i++) {
                struct service s;
                struct dial_reply reply;
                open_service(&s, "tcp:127.0.0.1:0", says[i]);
                struct dial_params p = params_of(s.listener->address);
                p.timeout_ms = 500; /* some say nothing */
                assert_true(reach(&p, false, &reply) < 0);
                atomic_store(&s.over, true);
                pthread_join(s.thread, NULL);
                assert_true(s.count <= 1);
                assert_false(has(&s.seen[0], "FLUSHALL", 8));
                assert_false(has(&s.seen[0], evil, 8));
                listener_close(s.listener);
                buf_fini(&s.seen[0]);
        }
}

TEST(a_server_is_asked_for_the_link_once_it_is_known_to_be_one)
{
        (void)state;
        struct service s;
        struct dial_reply reply;
        open_service(&s, "tcp:127.0.0.1:0", NULL);
        struct dial_params p = params_of(s.listener->address);
        assert_int_equal(reach(&p, false, &reply), 0);
        assert_int_equal(reply.next_seq, 77);
        assert_int_equal(reach(&p, false, &reply), 0);
        atomic_store(&s.over, true);
        pthread_join(s.thread, NULL);
        assert_int_equal(s.count, 3);
        assert_false(has(&s.seen[0], "FLUSHALL", 8));
        assert_true(has(&s.seen[1], evil, sizeof(p.session_id) + sizeof(p.key)));
        assert_true(has(&s.seen[2], evil, sizeof(p.session_id) + sizeof(p.key)));
        listener_close(s.listener);
        for (size_t i = 0; i < array_size(s.seen); i++)
                buf_fini(&s.seen[i]);
}

TEST(unix_sockets_are_connected_to_only_where_that_is_told)
{
        (void)state;
        struct service s;
        struct dial_reply reply;
        char address[64];
        snprintf(address, sizeof(address), "unix:/tmp/spancl-test-dialler-%d", (int)getpid());
        open_service(&s, address, NULL);
        struct dial_params p = params_of(address);
        assert_int_equal(reach(&p, false, &reply), SP_E_INVAL);
        p.own_user = true; /* this socket is no server's for those of its host */
        assert_int_equal(reach(&p, true, &reply), SP_E_REFUSED);
        p.own_user = false;
        assert_int_equal(s.count, 0);
        assert_int_equal(reach(&p, true, &reply), 0);
        close_service(&s);
}

TEST(other_addresses_are_none)
{
        (void)state;
        static const char *const bad[] = { "inproc:x",
                                           "vsock:2:1",
                                           "vsock-plain:1:7777",
                                           "shm:x",
                                           "file:/etc/hosts",
                                           "x",
                                           "unix:",
                                           "tcp:",
                                           "tcp:127.0.0.1",
                                           "tcp:127.0.0.1:70000",
                                           "tls:",
                                           "loopback:127.0.0.1:1#",
                                           "/etc/hosts" };
        struct dial_reply reply;
        for (size_t i = 0; i < array_size(bad); i++) {
                struct dial_params p = params_of(bad[i]);
                assert_true(reach(&p, false, &reply) < 0);
                p.own_user = true;
                assert_true(reach(&p, true, &reply) < 0);
        }
}

/* ---- the worker's side ---------------------------------------------------------------------- */

enum does { ANSWERS, REFUSES, NO_DESCRIPTOR, OTHER_NUMBER, GARBAGE, ENDS };

struct other_side {
        int socket;
        enum does does;
        int keep; /* the other end of the link */
};

/* Answer one request as the dialler does, or as an impostor. */
static void *answer_request(void *arg)
{
        struct other_side *o = arg;
        static struct control c;
        struct dial_request q;
        struct buf out = { 0 };
        int pair[2], r;
        while ((r = control_receive(o->socket, &c)) == SP_E_AGAIN)
                usleep(1000);
        assert_int_equal(r, 0);
        assert_int_equal(dial_request_get(bytes_of(c.data, c.size), &q), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        o->keep = pair[1];
        switch (o->does) {
        case REFUSES:
                assert_int_equal(dial_answer_put(&out, q.number, SP_E_TIMEOUT, "no\nline"), 0);
                break;
        case GARBAGE:
                assert_int_equal(buf_put(&out, "garbage", 7), 0);
                break;
        case ENDS:
                break;
        default:
                assert_int_equal(
                        dial_answer_put(&out, q.number + (o->does == OTHER_NUMBER), 0, NULL), 0);
                assert_int_equal(
                        hello_put_reply(&out, &(struct wire_hello_reply){ .version = WIRE_VERSION,
                                                                          .next_seq = 77 }),
                        0);
        }
        if (o->does != ENDS)
                assert_int_equal(control_send(o->socket, CONTROL_DIAL, bytes_of(out.data, out.size),
                                              o->does == NO_DESCRIPTOR ? -1 : pair[0]),
                                 0);
        /* Then it ends: nobody waits for ever for what was not answered. */
        shutdown(o->socket, SHUT_RDWR);
        close(pair[0]);
        buf_fini(&out);
        return NULL;
}

static void *hear(void *arg)
{
        (void)arg;
        while (dialling_socket() >= 0) {
                struct pollfd p = { .fd = dialling_socket(), .events = POLLIN };
                if (poll(&p, 1, WAIT_MS) > 0)
                        dialling_receive();
        }
        return NULL;
}

TEST(a_worker_gets_a_link_or_an_error)
{
        (void)state;
        static const int expected[] = {
                0, SP_E_TIMEOUT, SP_E_LINK, SP_E_LINK, SP_E_LINK, SP_E_LINK
        };
        struct dial_params p = params_of("tcp:127.0.0.1:1");
        struct dial_reply reply;
        p.share = false;
        for (int i = ANSWERS; i <= ENDS; i++) {
                struct other_side o = { .does = (enum does)i };
                pthread_t answers, hears;
                struct conn *conn = NULL;
                int pair[2];
                assert_int_equal(
                        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                        0);
                o.socket = pair[1];
                dialling_begin(pair[0]);
                assert_int_equal(pthread_create(&answers, NULL, answer_request, &o), 0);
                assert_int_equal(pthread_create(&hears, NULL, hear, NULL), 0);
                assert_int_equal(dialling_connect(NULL, &p, &conn, &reply), expected[i]);
                assert_true(!expected[i] == !reply.text[0] && !strchr(reply.text, '\n'));
                pthread_join(answers, NULL);
                pthread_join(hears, NULL);
                if (!expected[i]) {
                        assert_int_equal(reply.next_seq, 77);
                        assert_int_equal(send(conn->fd, "x", 1, 0), 1);
                        assert_int_equal(read(o.keep, &(char){ 0 }, 1), 1);
                        conn_close(conn);
                }
                close(o.keep);
                close(pair[1]);
        }
        assert_int_equal(dialling_connect(NULL, &p, &(struct conn *){ NULL }, &reply), SP_E_LINK);
        assert_true(reply.text[0]);
}

/* ---- the process ---------------------------------------------------------------------------- */

static pid_t dialler;
static int control;

static int start_dialler(void **state)
{
        (void)state;
        char path[512];
        int pair[2];
        snprintf(path, sizeof(path), "%s/bin/spancld", getenv("SPANCL_BUILD_DIR"));
        char *const argv[] = { path, (char[]){ "--dialler" }, (char[]){ "0" }, NULL };
        posix_spawn_file_actions_t files;
        assert_int_equal(
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, pair[1], CONTROL_FD);
        posix_spawn_file_actions_addclosefrom_np(&files, CONTROL_FD + 1);
        assert_int_equal(posix_spawn(&dialler, path, &files, NULL, argv, environ), 0);
        posix_spawn_file_actions_destroy(&files);
        close(pair[1]);
        control = pair[0];
        return 0;
}

/* It ends when its supervisor is gone, and only then. */
static int end_dialler(void **state)
{
        (void)state;
        int status;
        assert_int_equal(waitpid(dialler, &status, WNOHANG), 0);
        close(control);
        assert_int_equal(waitpid(dialler, &status, 0), dialler);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
        return 0;
}

/* A worker's end of a socket with the dialler. */
static int be_worker(void)
{
        int pair[2];
        assert_int_equal(
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        assert_int_equal(control_send(control, CONTROL_DIALLER, bytes_of(NULL, 0), pair[0]), 0);
        close(pair[0]);
        return pair[1];
}

static int ask(int worker, uint64_t number, const char *address)
{
        struct buf b = { 0 };
        struct dial_params p = params_of(address);
        assert_int_equal(dial_request_put(&b, number, &p), 0);
        int r = control_send(worker, CONTROL_DIAL, bytes_of(b.data, b.size), -1);
        buf_fini(&b);
        return r;
}

/* The status of the next answer, and its descriptor. */
static int answered(int worker, uint64_t number, int *ret_fd)
{
        static struct control c;
        struct dial_answer m;
        struct pollfd p = { .fd = worker, .events = POLLIN };
        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        assert_int_equal(control_receive(worker, &c), 0);
        assert_int_equal(c.kind, CONTROL_DIAL);
        assert_int_equal(dial_answer_get(bytes_of(c.data, c.size), &m), 0);
        assert_int_equal(m.number, number);
        assert_int_equal(c.fd >= 0, !m.status);
        assert_int_equal(m.text.size > 0, m.status < 0);
        *ret_fd = c.fd;
        return m.status;
}

TEST(a_worker_is_handed_a_link_to_a_server_and_nothing_else)
{
        (void)state;
        struct service s, other;
        int worker = be_worker(), fd;
        open_service(&s, "tcp:127.0.0.1:0", NULL);
        open_service(&other, "tcp:127.0.0.1:0", "220 ready\r\n");
        assert_int_equal(ask(worker, 1, s.listener->address), 0);
        assert_int_equal(answered(worker, 1, &fd), 0);
        close(fd);
        assert_int_equal(ask(worker, 2, other.listener->address), 0);
        assert_int_equal(answered(worker, 2, &fd), SP_E_PROTO);
        assert_int_equal(ask(worker, 3, "tls:127.0.0.1:1"), 0); /* without a key */
        assert_int_equal(answered(worker, 3, &fd), SP_E_AUTH);
        assert_int_equal(ask(worker, 4, "tcp:no-such-host.invalid:1"), 0);
        assert_int_equal(answered(worker, 4, &fd), SP_E_HOST);
        close(worker);
        close_service(&s);
        close_service(&other);
}

TEST(a_session_that_asks_for_much_does_not_keep_another_waiting)
{
        (void)state;
        struct listener *silent;
        struct service s;
        int greedy = be_worker(), worker = be_worker(), fd;
        assert_int_equal(transport_tcp.listen("tcp:127.0.0.1:0", &silent), 0);
        open_service(&s, "tcp:127.0.0.1:0", NULL);
        uint64_t asked = 0;
        while (asked < 100000 && ask(greedy, asked, silent->address) == 0)
                asked++;
        assert_true(asked > 16 && asked < 100000); /* what it is not heard with stays its own */
        for (uint64_t i = 0; i < 20; i++) {
                assert_int_equal(ask(worker, i, s.listener->address), 0);
                assert_int_equal(answered(worker, i, &fd), 0);
                close(fd);
        }
        close(greedy);
        close(worker);
        listener_close(silent);
        close_service(&s);
}

TEST(garbage_ends_nothing)
{
        (void)state;
        static const uint8_t junk[CONTROL_MAX] = { 0xff };
        struct service s;
        int hostile = be_worker(), worker = be_worker(), fd;
        open_service(&s, "tcp:127.0.0.1:0", NULL);
        for (size_t size = 0; size < sizeof(junk); size += 97) {
                (void)!control_send(hostile, CONTROL_DIAL, bytes_of(junk, size), STDERR_FILENO);
                (void)!control_send(hostile, CONTROL_DIALLER, bytes_of(junk, size), STDERR_FILENO);
                usleep(1000);
        }
        close(hostile);
        assert_int_equal(ask(worker, 1, s.listener->address), 0);
        assert_int_equal(answered(worker, 1, &fd), 0);
        close(fd);
        close(worker);
        close_service(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_request_says_what_a_hello_of_a_peer_says),
                cmocka_unit_test(requests_out_of_bounds_are_refused),
                cmocka_unit_test(other_programs_receive_no_bytes_that_a_worker_chose),
                cmocka_unit_test(a_server_is_asked_for_the_link_once_it_is_known_to_be_one),
                cmocka_unit_test(unix_sockets_are_connected_to_only_where_that_is_told),
                cmocka_unit_test(other_addresses_are_none),
                cmocka_unit_test(a_worker_gets_a_link_or_an_error),
                cmocka_unit_test_setup_teardown(
                        a_worker_is_handed_a_link_to_a_server_and_nothing_else, start_dialler,
                        end_dialler),
                cmocka_unit_test_setup_teardown(
                        a_session_that_asks_for_much_does_not_keep_another_waiting, start_dialler,
                        end_dialler),
                cmocka_unit_test_setup_teardown(garbage_ends_nothing, start_dialler, end_dialler),
        };
        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
