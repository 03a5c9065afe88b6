/* spancld as a process: its start and end, hostile and unlucky connections, and its warm worker. */
#include "support/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/clock.h"
#include "session/hello.h"
#include "support/daemon.h"
#include "support/probe.h"

static struct conn *dial(const struct daemon *d)
{
        struct conn *c;
        assert_int_equal(transport_of(d->address)->connect(d->address, 10000, &c), 0);
        return c;
}

static void send_bytes(struct conn *c, const void *data, size_t size)
{
        struct iovec iov = { (void *)(uintptr_t)data, size };
        (void)!c->ops->sendv(c, &iov, 1);
}

/* The other side closes within some seconds, whatever it says before. */
static void assert_dropped(struct conn *c)
{
        for (;;) {
                char text[512];
                struct iovec iov = { text, sizeof(text) };
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                assert_int_equal(poll(&p, 1, 20000), 1);
                if (c->ops->recvv(c, &iov, 1) == SP_E_LINK)
                        return;
        }
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void rubbish_is_dropped_and_others_are_served(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, NULL);
        daemon_join(&d, &p);
        for (int i = 0; i < 64; i++) {
                uint8_t bytes[4096];
                struct conn *c = dial(&d);
                assert_int_equal(getrandom(bytes, sizeof(bytes), 0), sizeof(bytes));
                if (i % 2)
                        memcpy(bytes, FRAME_MAGIC, FRAME_MAGIC_SIZE); /* then a random frame */
                send_bytes(c, bytes, sizeof(bytes));
                assert_dropped(c);
                conn_close(c);
        }
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

static void a_frame_of_a_huge_length_is_dropped(void **state)
{
        (void)state;
        struct daemon d;
        uint8_t hello[FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE] = FRAME_MAGIC;
        daemon_start(&d, NULL);
        hello[8] = hello[9] = hello[10] = 0xf8;
        hello[11] = 0x7f;
        hello[12] = FRAME_HELLO;
        struct conn *c = dial(&d);
        send_bytes(c, hello, sizeof(hello));
        assert_dropped(c);
        conn_close(c);

        /* The same inside a session ends that session only. */
        struct probe p, other;
        daemon_join(&d, &other);
        daemon_join(&d, &p);
        uint8_t frame[FRAME_HEADER_SIZE] = { 0xf8, 0xff, 0xff, 0xff, FRAME_DATA, 0, 1 };
        send_bytes(p.lanes[0].conn, frame, sizeof(frame));
        assert_dropped(p.lanes[0].conn);
        assert_int_equal(probe_ping(&other), 0);
        probe_fini(&p);
        probe_fini(&other);
        daemon_stop(&d);
}

/* Send bytes that are refused, and return the status of the refusal. */
static int64_t bytes_refused(const struct daemon *d, const void *data, size_t size)
{
        struct conn *c = dial(d);
        send_bytes(c, data, size);
        _Alignas(8) uint8_t in[HELLO_PREFIX + FRAME_HELLO_MAX];
        size_t have = 0;
        while (have < HELLO_PREFIX || have < (size_t)hello_size(bytes_of(in, have))) {
                struct iovec iov = { in + have, sizeof(in) - have };
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                assert_int_equal(poll(&p, 1, 20000), 1);
                ssize_t n = c->ops->recvv(c, &iov, 1);
                assert_true(n > 0);
                have += (size_t)n;
        }
        struct wire_hello_reply reply;
        assert_int_equal(hello_get_reply(bytes_of(in, have), &reply), 0);
        assert_true(reply.text.size > 10);
        assert_dropped(c);
        conn_close(c);
        return reply.status;
}

static int64_t refused(const struct daemon *d, const struct wire_hello *m)
{
        auto_clean(buf_fini) struct buf hello = { 0 };
        assert_int_equal(hello_put(&hello, m), 0);
        return bytes_refused(d, hello.data, hello.size);
}

static void a_big_endian_client_is_told_so(void **state)
{
        (void)state;
        struct daemon d;
        daemon_start(&d, NULL);
        uint8_t hello[HELLO_PREFIX] = FRAME_MAGIC;
        hello[11] = 120;
        hello[12] = FRAME_HELLO;
        assert_int_equal(bytes_refused(&d, hello, sizeof(hello)), SP_E_VERSION);
        assert_true(daemon_logged(&d, "big-endian"));
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

static void another_version_is_told_so(void **state)
{
        (void)state;
        struct daemon d;
        daemon_start(&d, NULL);
        const struct wire_hello m = {
                .version_min = WIRE_VERSION + 1,
                .version_max = WIRE_VERSION + 5,
                .session_hi = 1,
                .name = bytes_str("from the future"),
        };
        assert_int_equal(refused(&d, &m), SP_E_VERSION);
        daemon_stop(&d);
}

/* Any user of this host can connect to loopback: such a connection proves nothing, also with --insecure. */
static void a_loopback_connection_does_not_drain_the_server(void **state)
{
        (void)state;
        char *insecure[] = { "--insecure", NULL };
        const struct wire_hello m = {
                .version_min = WIRE_VERSION,
                .version_max = WIRE_VERSION,
                .role = HELLO_ROLE_DRAIN,
                .name = bytes_str("anybody"),
        };
        for (unsigned i = 0; i < 2; i++) {
                struct daemon d;
                daemon_start(&d, i ? insecure : NULL);
                assert_int_equal(refused(&d, &m), SP_E_AUTH);
                assert_false(daemon_logged(&d, "spancld drains"));
                daemon_assert_serves(&d);
                daemon_stop(&d);
        }
}

static void a_hello_may_come_byte_by_byte(void **state)
{
        (void)state;
        struct daemon d;
        auto_clean(buf_fini) struct buf hello = { 0 };
        daemon_start(&d, NULL);
        const struct wire_hello m = {
                .version_min = WIRE_VERSION,
                .version_max = WIRE_VERSION,
                .session_hi = 77,
                .name = bytes_str("slow"),
        };
        assert_int_equal(hello_put(&hello, &m), 0);
        struct conn *c = dial(&d);
        for (size_t i = 0; i < hello.size; i++) {
                send_bytes(c, hello.data + i, 1);
                if (i % 50 == 0)
                        daemon_assert_serves(&d);
        }
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, 20000), 1);
        uint8_t in[8];
        struct iovec iov = { in, sizeof(in) };
        assert_int_equal(c->ops->recvv(c, &iov, 1), sizeof(in));
        assert_memory_equal(in, FRAME_MAGIC, sizeof(in));
        conn_close(c);
        daemon_stop(&d);
}

static void thousands_of_silent_connections_keep_nobody_out(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        struct rlimit r;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
        rlim_t old = r.rlim_cur;
        r.rlim_cur = r.rlim_max < 4096 ? r.rlim_max : 4096;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
        int count = r.rlim_cur >= 2300 ? 2000 : (int)r.rlim_cur / 2;

        daemon_start(&d, NULL);
        daemon_join(&d, &p);
        struct conn **silent = mem_zalloc((size_t)count * sizeof(*silent));
        for (int i = 0; i < count; i++)
                silent[i] = dial(&d);
        assert_int_equal(probe_ping(&p), 0);
        uint64_t begin = clock_now_ns();
        daemon_assert_serves(&d);
        assert_true(clock_now_ns() - begin < 8000000000ull); /* not when they have timed out */
        if (count > 1500)
                assert_dropped(silent[0]); /* the oldest made room */
        for (int i = 0; i < count; i++)
                conn_close(silent[i]);
        mem_free(silent);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        daemon_stop(&d);
        r.rlim_cur = old;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static void few_descriptors_keep_nobody_out_either(void **state)
{
        (void)state;
        struct daemon d;
        struct conn *silent[200];
        struct rlimit low = { 64, 64 };
        daemon_start(&d, NULL);
        if (prlimit(d.pid, RLIMIT_NOFILE, &low, NULL) < 0)
                skip();
        for (size_t i = 0; i < array_size(silent); i++)
                silent[i] = dial(&d);
        for (int i = 0; i < 3; i++) /* each takes a worker, which is started meanwhile */
                daemon_assert_serves(&d);
        assert_true(daemon_has_scratch(&d, 6));
        for (size_t i = 0; i < array_size(silent); i++)
                conn_close(silent[i]);
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

static void a_killed_warm_worker_is_replaced(void **state)
{
        (void)state;
        struct daemon d;
        daemon_start(&d, NULL);
        for (int i = 0; i < 3; i++) {
                char ended[64];
                pid_t pid = daemon_warm_worker(&d);
                assert_int_equal(kill(pid, SIGKILL), 0);
                snprintf(ended, sizeof(ended), "worker %d ended by signal 9", (int)pid);
                assert_true(daemon_comes_to_log(&d, ended));
        }
        daemon_assert_serves(&d);
        daemon_stop(&d);
}

/* A folder as a worker has it, with something in it; whoever makes it holds it if told. */
static int make_scratch(const struct daemon *d, const char *name, bool hold)
{
        char path[128], file[160];
        snprintf(path, sizeof(path), "%s/%s", d->folder, name);
        snprintf(file, sizeof(file), "%s/file", path);
        assert_int_equal(mkdir(path, 0700), 0);
        int fd = open(file, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        close(fd);
        fd = open(path, O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0);
        assert_int_equal(flock(fd, hold ? LOCK_EX : LOCK_UN), 0);
        return fd;
}

static void the_next_server_removes_the_files_of_a_killed_one(void **state)
{
        (void)state;
        struct daemon d, next;
        pid_t all[DAEMON_CHILDREN_MAX];
        daemon_start(&d, NULL);
        daemon_warm_worker(&d);
        /* All at once, so that nobody cleans up. */
        int n = daemon_children(&d, all);
        kill(d.pid, SIGSTOP);
        for (int i = 0; i < n; i++)
                kill(all[i], SIGKILL);
        kill(d.pid, SIGKILL);
        waitpid(d.pid, NULL, 0);
        assert_true(daemon_count_scratch(&d) > 0);
        int dead = make_scratch(&d, "spancld.dead00", false);
        int held = make_scratch(&d, "spancld.held00", true);
        int other = make_scratch(&d, "spancld-file", false);
        daemon_start_in(&next, d.folder, NULL);
        daemon_warm_worker(&next);
        assert_true(
                daemon_has_scratch(&next, 3)); /* what is held, the warm worker's, and its own */
        assert_int_equal(daemon_count_scratch(&next), 3);
        close(dead);
        close(held);
        close(other);
        kill(next.pid, SIGTERM);
        daemon_wait_end(&next);
        daemon_forget(&next);
}

static void a_server_without_devices_says_what_to_do(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        daemon_start(&d, (char *[]){ (char[]){ "--devices" }, (char[]){ "no such device" }, NULL });
        for (int i = 0; i < 3; i++) {
                probe_init(&p, d.address);
                assert_int_equal(probe_attach(&p, 0), SP_E_NODEV);
                assert_non_null(strstr(p.reply.text, "--devices"));
                probe_fini(&p);
        }
        daemon_stop(&d);
}

static void wrong_options_end_with_a_message(void **state)
{
        (void)state;
        static const struct {
                const char *args[3];
                int status;
                const char *says;
        } cases[] = {
                { { "--listen", "0.0.0.0:0" }, 1, "--insecure" },
                { { "--listen", "*:0" }, 1, "--insecure" },
                { { "--listen", "no-such-host.invalid:0" }, 1, "no-such-host.invalid" },
                { { "--listen", "localhost:x" }, 1, "HOST:PORT" },
                { { "--socket", "/nowhere/at/all" }, 1, "/nowhere/at/all" },
                { { "--linger", "soon" }, 2, "--linger" },
                { { "--frobnicate" }, 2, "--frobnicate" },
                { { "--ready-fd", "999" }, 1, "--ready-fd" },
                { { "--version" }, 0, "spancld " },
                { { "--help" }, 0, "--insecure" },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct daemon d;
                char *args[3] = { (char *)(uintptr_t)cases[i].args[0],
                                  (char *)(uintptr_t)cases[i].args[1] };
                assert_int_equal(daemon_run(&d, args), cases[i].status);
                assert_true(daemon_logged(&d, cases[i].says));
                daemon_forget(&d);
        }
}

static void a_port_in_use_is_explained(void **state)
{
        (void)state;
        struct daemon d, e;
        char where[32];
        daemon_start(&d, NULL);
        snprintf(where, sizeof(where), "localhost:%u", d.port);
        assert_int_equal(daemon_run(&e, (char *[]){ (char[]){ "--listen" }, where, NULL }), 1);
        assert_true(daemon_logged(&e, "in use"));
        daemon_forget(&e);
        daemon_stop(&d);
}

static void the_service_manager_is_notified(void **state)
{
        (void)state;
        struct daemon d;
        char path[64], text[64] = "";
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        snprintf(path, sizeof(path), "/tmp/spancl-notify-%d.sock", (int)getpid());
        strcpy(a.sun_path, path);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        setenv("NOTIFY_SOCKET", path, 1);
        daemon_start(&d, NULL);
        unsetenv("NOTIFY_SOCKET");
        assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
        assert_string_equal(text, "READY=1");
        daemon_stop(&d);
        memset(text, 0, sizeof(text));
        assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
        assert_string_equal(text, "STOPPING=1");
        close(fd);
        unlink(path);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rubbish_is_dropped_and_others_are_served),
                cmocka_unit_test(a_frame_of_a_huge_length_is_dropped),
                cmocka_unit_test(a_big_endian_client_is_told_so),
                cmocka_unit_test(another_version_is_told_so),
                cmocka_unit_test(a_loopback_connection_does_not_drain_the_server),
                cmocka_unit_test(a_hello_may_come_byte_by_byte),
                cmocka_unit_test(thousands_of_silent_connections_keep_nobody_out),
                cmocka_unit_test(few_descriptors_keep_nobody_out_either),
                cmocka_unit_test(a_killed_warm_worker_is_replaced),
                cmocka_unit_test(the_next_server_removes_the_files_of_a_killed_one),
                cmocka_unit_test(a_server_without_devices_says_what_to_do),
                cmocka_unit_test(wrong_options_end_with_a_message),
                cmocka_unit_test(a_port_in_use_is_explained),
                cmocka_unit_test(the_service_manager_is_notified),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
