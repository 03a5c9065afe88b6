/* src/loop/client_loop: a server's last message is heard, however the link is lost; children of a fork keep no
 * connection. The server is this test's own. */
#include "support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/server_spec.h"
#include "core/link/io.h"
#include "loop/dial.h"
#include "loop/link.h"
#include "os/net/socket.h"
#include "session/hello.h"

enum { GONE_BY_MS = 50 };

struct server {
        int listener;
        pthread_t thread;
};

static int on_close(void *user, const struct wire_close *m)
{
        (void)m;
        *(bool *)user = true;
        return 0;
}

static int on_message(void *user, struct bytes message)
{
        static const struct wire_handlers handlers = { .close = on_close };
        return wire_dispatch(&handlers, user, message);
}

static const struct session_ops ops = { .message = on_message };

static void write_all(int fd, const struct buf *b)
{
        assert_int_equal(send(fd, b->data, b->size, MSG_NOSIGNAL), b->size);
}

/* Take a connection and its hello, which asks for this lane. */
static int take(const struct server *s, unsigned lane)
{
        _Alignas(8) uint8_t hello[HELLO_PREFIX + FRAME_HELLO_MAX];
        struct wire_hello m;
        int fd = accept(s->listener, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(recv(fd, hello, HELLO_PREFIX, MSG_WAITALL), HELLO_PREFIX);
        int size = hello_size(bytes_of(hello, HELLO_PREFIX));
        assert_in_range(size, HELLO_PREFIX, sizeof(hello));
        assert_int_equal(recv(fd, hello + HELLO_PREFIX, (size_t)size - HELLO_PREFIX, MSG_WAITALL),
                         size - HELLO_PREFIX);
        assert_int_equal(hello_get(bytes_of(hello, (size_t)size), &m), 0);
        assert_int_equal(m.lane, lane);
        return fd;
}

static void answer(int fd, int status)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = { .version = WIRE_VERSION,
                                            .status = status,
                                            .text = bytes_str("no such session") };
        assert_int_equal(hello_put_reply(&out, &m), 0);
        write_all(fd, &out);
}

/* It says why it ends its session, and then has none for the client's next lane. */
static void *serve(void *arg)
{
        const struct server *s = arg;
        struct session *session;
        struct link link = { 0 };
        struct conn *conn;
        bool unused;
        char byte;
        int first = take(s, 0);
        answer(first, 0);
        int second = take(s, 1);
        assert_int_equal(
                session_new(&(struct session_params){ .ops = &ops, .user = &unused }, &session), 0);
        assert_int_equal(conn_from_fd(first, &conn), 0);
        assert_int_equal(link_up(&link, session, 0, conn, 0), 0);
        assert_int_equal(
                session_send(session, close, .status = SP_E_GONE, .text = bytes_str("because")), 0);
        assert_int_equal(link_flush(&link, SIZE_MAX, NULL), 0);
        answer(second, SP_E_GONE);
        assert_int_equal(recv(second, &byte, 1, 0), 0); /* the client has read that */
        close(second);
        usleep(GONE_BY_MS * 1000); /* it has also taken note of it */
        link_down(&link);
        session_free(session);
        return NULL;
}

static void server_init(struct server *s, const char *path)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
        s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(s->listener, 2), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

TEST(last_message_is_heard_when_a_lane_is_refused)
{
        char folder[] = "/tmp/spancl-test-XXXXXX", path[64], address[72];
        const struct client_io *io = &client_io_loop;
        struct session *session;
        struct server server;
        bool closed = false;
        void *user;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/socket", folder);
        snprintf(address, sizeof(address), "unix:%s", path);
        server_init(&server, path);

        struct server_spec spec = { .name = address, .address = address };
        assert_int_equal(
                session_new(&(struct session_params){ .ops = &ops, .user = &closed }, &session), 0);
        assert_int_equal(client_io_loop_new(&user), 0);
        struct io_connect at = { .spec = &spec, .session = session, .id = { 1, 2 } };
        io->connect(user, &at, 1);
        assert_int_equal(at.status, 0);
        assert_int_equal(io->attach(user, at.link, 1), 0);
        pthread_join(server.thread, NULL);
        int r;
        while ((r = io->receive(user, at.link)) >= 0)
                usleep(1000);
        assert_int_equal(r, SP_E_GONE);
        assert_true(closed);

        io->close(user, at.link, false);
        client_io_loop_free(user);
        session_free(session);
        close(server.listener);
        unlink(path);
        rmdir(folder);
}

TEST(a_big_endian_server_is_named)
{
        uint8_t answered[HELLO_PREFIX] = FRAME_MAGIC;
        const struct dial_params p = { .address = "127.0.0.1:7", .timeout_ms = 60000 };
        struct dial_reply reply;
        struct conn *conn, *unused;
        int ends[2];
        answered[11] = 120; /* the size of its hello, from the other end */
        answered[12] = FRAME_HELLO;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        assert_int_equal(conn_from_fd(ends[0], &conn), 0);
        assert_int_equal(write(ends[1], answered, sizeof(answered)), sizeof(answered));
        assert_int_equal(loop_hello(&p, conn, &unused, &reply), SP_E_VERSION);
        assert_non_null(strstr(reply.text, "big-endian"));
        assert_non_null(strstr(reply.text, "127.0.0.1"));
        close(ends[1]);
}

/* Its server would take the parent for alive as long as the child is. */
TEST(a_child_of_a_fork_has_no_connection_that_a_thread_is_making)
{
        const struct sockaddr_un a = { .sun_family = AF_UNIX };
        struct socket_address like;
        int other[2], status;
        memset(&like, 0, sizeof(like));
        memcpy(&like.at, &a, sizeof(a));
        int open = socket_new(&like), gone = socket_new(&like);
        assert_true(open >= 0 && gone >= 0);
        close(gone);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
        assert_int_equal(other[0], gone); /* of the application */
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
                socket_close_new();
                _exit(fcntl(open, F_GETFD) >= 0 || fcntl(gone, F_GETFD) < 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(fcntl(open, F_GETFD) >= 0);
        close(open);
        close(other[0]);
        close(other[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(last_message_is_heard_when_a_lane_is_refused),
                cmocka_unit_test(a_big_endian_server_is_named),
                cmocka_unit_test(a_child_of_a_fork_has_no_connection_that_a_thread_is_making),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
