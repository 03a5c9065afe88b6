/* spancld as a process: what hostile and unlucky connections, dying workers and signals do to it, and
 * to the sessions beside them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
#include <time.h>
#include <unistd.h>

#include <CL/cl.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "session/hello.h"
#include "support/probe.h"

enum { CHILDREN_MAX = 16, ARGS_MAX = 16 };

struct daemon {
        pid_t pid;
        unsigned port;
        char address[128];
        char folder[64]; /* its TMPDIR, and where its log is */
        char log[96];
};

/* That the next one started gets, as it is; NULL: a new one. */
static const char *next_folder;

static void nap(unsigned ms)
{
        nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* Start without waiting; `ready` is the writing end of a pipe, or -1. */
static void launch(struct daemon *d, char *const *more, int ready)
{
        static char ready_fd[] = "--ready-fd";
        char program[512], number[16];
        const char *build = getenv("SPANCL_BUILD_DIR");
        snprintf(program, sizeof(program), "%s/bin/spancld", build ? build : ".");
        snprintf(number, sizeof(number), "%d", ready);
        char *args[ARGS_MAX] = { program, (char[]){ "--backend" }, (char[]){ "reference" } };
        int n = 3;
        if (ready >= 0) {
                args[n++] = ready_fd;
                args[n++] = number;
        }
        for (int i = 0; more && more[i] && n < ARGS_MAX - 1; i++)
                args[n++] = more[i];
        snprintf(d->folder, sizeof(d->folder), "/tmp/spancl-test.XXXXXX");
        if (next_folder)
                snprintf(d->folder, sizeof(d->folder), "%s", next_folder);
        else
                assert_non_null(mkdtemp(d->folder));
        next_folder = NULL;
        snprintf(d->log, sizeof(d->log), "%s/log", d->folder);
        d->pid = fork();
        assert_true(d->pid >= 0);
        if (d->pid)
                return;
        int log = open(d->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(log, STDERR_FILENO);
        dup2(log, STDOUT_FILENO);
        setenv("TMPDIR", d->folder, 1);
        if (ready >= 0)
                fcntl(ready, F_SETFD, 0);
        execv(program, args);
        _exit(127);
}

static void start(struct daemon *d, char *const *more)
{
        int fds[2];
        char text[64] = "";
        static char listen[] = "--listen", anywhere[] = "localhost:0", log[] = "--log",
                    info[] = "info";
        char *args[ARGS_MAX] = { log, info };
        int n = 2;
        if (!more || !more[0] || strcmp(more[0], "--socket")) {
                args[n++] = listen;
                args[n++] = anywhere;
        }
        for (int i = 0; more && more[i]; i++)
                args[n++] = more[i];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        launch(d, args, fds[1]);
        close(fds[1]);
        assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
        close(fds[0]);
        assert_int_equal(sscanf(text, "ready %u\n", &d->port), 1);
        snprintf(d->address, sizeof(d->address), "tcp:localhost:%u", d->port);
}

/* Wait for the end: its status as waitpid gives it. */
static int wait_end(struct daemon *d)
{
        for (int i = 0; i < 1000; i++) {
                int status;
                if (waitpid(d->pid, &status, WNOHANG) == d->pid)
                        return status;
                nap(20);
        }
        kill(d->pid, SIGKILL);
        waitpid(d->pid, NULL, 0);
        return -1;
}

/* What it logged; freed by the caller. */
static char *read_log(const struct daemon *d)
{
        char *text = mem_zalloc(1 << 20);
        FILE *f = fopen(d->log, "r");
        if (f) {
                size_t n = fread(text, 1, (1 << 20) - 1, f);
                text[n] = 0;
                fclose(f);
        }
        return text;
}

static bool logged(const struct daemon *d, const char *what)
{
        char *text = read_log(d);
        bool found = strstr(text, what) != NULL;
        if (!found)
                print_error("not in the log: %s\n%s\n", what, text);
        mem_free(text);
        return found;
}

static bool comes_to_log(const struct daemon *d, const char *what)
{
        for (int i = 0; i < 500; i++) {
                char *text = read_log(d);
                bool found = strstr(text, what) != NULL;
                mem_free(text);
                if (found)
                        return true;
                nap(20);
        }
        return logged(d, what);
}

/* Files in its folder beside the log: scratch folders. */
static int count_scratch(const struct daemon *d)
{
        int n = 0;
        DIR *dir = opendir(d->folder);
        for (struct dirent *e; dir && (e = readdir(dir));)
                n += !strncmp(e->d_name, "spancld.", 8);
        if (dir)
                closedir(dir);
        return n;
}

/* Another process removes them. */
static bool has_scratch(const struct daemon *d, int most)
{
        for (int i = 0; i < 500 && count_scratch(d) > most; i++)
                nap(20);
        return count_scratch(d) <= most;
}

static void forget(struct daemon *d)
{
        /* What drivers were writing when their worker was killed may still be there. */
        char command[512];
        snprintf(command, sizeof(command), "rm -rf '%s'", d->folder);
        assert_int_equal(system(command), 0);
}

/* A clean end on SIGTERM, with nothing left behind. */
static void stop(struct daemon *d)
{
        kill(d->pid, SIGTERM);
        int status = wait_end(d);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
                logged(d, "(a clean end)");
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(has_scratch(d, 0));
        forget(d);
}

static int children(const struct daemon *d, pid_t out[CHILDREN_MAX])
{
        char path[64];
        int n = 0;
        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)d->pid, (int)d->pid);
        FILE *f = fopen(path, "r");
        while (f && n < CHILDREN_MAX && fscanf(f, "%d", &out[n]) == 1)
                n++;
        if (f)
                fclose(f);
        return n;
}

/* The worker that the next session will get. */
static pid_t warm_worker(const struct daemon *d)
{
        pid_t all[CHILDREN_MAX];
        for (int i = 0; i < 500; i++) {
                char *text = read_log(d);
                int n = children(d, all);
                char ready[64];
                for (int k = n - 1; k >= 0; k--) {
                        snprintf(ready, sizeof(ready), "worker %d is ready", (int)all[k]);
                        char taken[64];
                        snprintf(taken, sizeof(taken), "worker %d takes", (int)all[k]);
                        if (strstr(text, ready) && !strstr(text, taken)) {
                                mem_free(text);
                                return all[k];
                        }
                }
                mem_free(text);
                nap(20);
        }
        fail_msg("no warm worker");
        return -1;
}

static void assert_serves(const struct daemon *d)
{
        struct probe p;
        probe_init(&p, d->address);
        int r = probe_attach(&p, 0);
        if (r) {
                char *log = read_log(d);
                print_error("%s\n%s", p.reply.text, log);
                mem_free(log);
        }
        assert_int_equal(r, 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
}

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

static void sessions_are_served_over_both_ip_versions_and_unix_sockets(void **state)
{
        (void)state;
        struct daemon d;
        static char socket_option[] = "--socket", path[64];
        snprintf(path, sizeof(path), "/tmp/spancl-daemon-%d.sock", (int)getpid());
        start(&d, (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, path, NULL });
        assert_serves(&d);
        snprintf(d.address, sizeof(d.address), "tcp:127.0.0.1:%u", d.port);
        assert_serves(&d);
        snprintf(d.address, sizeof(d.address), "unix:%s", path);
        assert_serves(&d);
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
        stop(&d);
        assert_int_not_equal(access(path, F_OK), 0);
}

static void rubbish_is_dropped_and_others_are_served(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        start(&d, NULL);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
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
        assert_serves(&d);
        stop(&d);
}

static void a_frame_of_a_huge_length_is_dropped(void **state)
{
        (void)state;
        struct daemon d;
        uint8_t hello[FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE] = FRAME_MAGIC;
        start(&d, NULL);
        hello[8] = hello[9] = hello[10] = 0xf8;
        hello[11] = 0x7f;
        hello[12] = FRAME_HELLO;
        struct conn *c = dial(&d);
        send_bytes(c, hello, sizeof(hello));
        assert_dropped(c);
        conn_close(c);

        /* The same inside a session ends that session only. */
        struct probe p, other;
        probe_init(&other, d.address);
        assert_int_equal(probe_attach(&other, 0), 0);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        uint8_t frame[FRAME_HEADER_SIZE] = { 0xf8, 0xff, 0xff, 0xff, FRAME_DATA, 0, 1 };
        send_bytes(p.lanes[0].conn, frame, sizeof(frame));
        assert_dropped(p.lanes[0].conn);
        assert_int_equal(probe_ping(&other), 0);
        probe_fini(&p);
        probe_fini(&other);
        stop(&d);
}

static void another_version_is_told_so(void **state)
{
        (void)state;
        struct daemon d;
        auto_clean(buf_fini) struct buf hello = { 0 };
        start(&d, NULL);
        const struct wire_hello m = {
                .version_min = WIRE_VERSION + 1,
                .version_max = WIRE_VERSION + 5,
                .session_hi = 1,
                .name = bytes_str("from the future"),
        };
        assert_int_equal(hello_put(&hello, &m), 0);
        struct conn *c = dial(&d);
        send_bytes(c, hello.data, hello.size);
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
        assert_int_equal(reply.status, SP_E_VERSION);
        assert_true(reply.text.size > 10);
        assert_dropped(c);
        conn_close(c);
        stop(&d);
}

static void a_hello_may_come_byte_by_byte(void **state)
{
        (void)state;
        struct daemon d;
        auto_clean(buf_fini) struct buf hello = { 0 };
        start(&d, NULL);
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
                        assert_serves(&d);
        }
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, 20000), 1);
        uint8_t in[8];
        struct iovec iov = { in, sizeof(in) };
        assert_int_equal(c->ops->recvv(c, &iov, 1), sizeof(in));
        assert_memory_equal(in, FRAME_MAGIC, sizeof(in));
        conn_close(c);
        stop(&d);
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

        start(&d, NULL);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        struct conn **silent = mem_zalloc((size_t)count * sizeof(*silent));
        for (int i = 0; i < count; i++)
                silent[i] = dial(&d);
        assert_int_equal(probe_ping(&p), 0);
        uint64_t begin = clock_now_ns();
        assert_serves(&d);
        assert_true(clock_now_ns() - begin < 8000000000ull); /* not when they have timed out */
        if (count > 1500)
                assert_dropped(silent[0]); /* the oldest made room */
        for (int i = 0; i < count; i++)
                conn_close(silent[i]);
        mem_free(silent);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&d);
        r.rlim_cur = old;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static void few_descriptors_keep_nobody_out_either(void **state)
{
        (void)state;
        struct daemon d;
        struct conn *silent[200];
        struct rlimit low = { 64, 64 };
        start(&d, NULL);
        if (prlimit(d.pid, RLIMIT_NOFILE, &low, NULL) < 0)
                skip();
        for (size_t i = 0; i < array_size(silent); i++)
                silent[i] = dial(&d);
        for (int i = 0; i < 3; i++) /* each takes a worker, which is started meanwhile */
                assert_serves(&d);
        assert_true(has_scratch(&d, 6));
        for (size_t i = 0; i < array_size(silent); i++)
                conn_close(silent[i]);
        assert_serves(&d);
        stop(&d);
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
        start(&d, NULL);
        pid_t first = warm_worker(&d);
        probe_init(&a, d.address);
        assert_int_equal(probe_attach(&a, 0), 0);
        assert_int_equal(probe_attach(&a, 1), 0);
        warm_worker(&d);
        probe_init(&b, d.address);
        assert_int_equal(probe_attach(&b, 0), 0);
        assert_int_equal(probe_ping(&a), 0);

        assert_int_equal(kill(first, SIGKILL), 0);
        assert_int_equal(probe_drive(&a, never, 10000), SP_E_LINK);
        link_down(&a.lanes[0]);
        /* What was received is gone: the session can't be had back. A connection that is handed to the
         * dying process is closed. */
        int r;
        while ((r = probe_attach(&a, 0)) == SP_E_LINK)
                nap(20);
        assert_int_equal(r, SP_E_GONE);
        assert_int_equal(probe_ping(&b), 0);
        assert_serves(&d);
        assert_true(comes_to_log(&d, "its session is lost"));
        probe_fini(&a);
        probe_fini(&b);
        stop(&d);
}

/* Its alarm is set when the session has ended. */
static void a_worker_that_does_not_end_in_time_lost_nothing(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a;
        start(&d, NULL);
        pid_t pid = warm_worker(&d);
        probe_init(&a, d.address);
        assert_int_equal(probe_attach(&a, 0), 0);
        assert_int_equal(probe_ping(&a), 0);
        assert_int_equal(kill(pid, SIGALRM), 0);
        assert_true(comes_to_log(&d, "its session, which is over, goes on"));
        probe_fini(&a);
        assert_serves(&d);
        stop(&d);
}

static void a_killed_warm_worker_is_replaced(void **state)
{
        (void)state;
        struct daemon d;
        start(&d, NULL);
        for (int i = 0; i < 3; i++) {
                char ended[64];
                pid_t pid = warm_worker(&d);
                assert_int_equal(kill(pid, SIGKILL), 0);
                snprintf(ended, sizeof(ended), "worker %d ended by signal 9", (int)pid);
                assert_true(comes_to_log(&d, ended));
        }
        assert_serves(&d);
        stop(&d);
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
        start(&d, NULL);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        kill(d.pid, SIGTERM);
        assert_int_equal(probe_drive(&p, closed, 10000), 0);
        assert_non_null(strstr(p.close_text, "shut down"));
        int status = wait_end(&d);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
        assert_true(has_scratch(&d, 0));
        link_down(&p.lanes[0]);
        assert_int_equal(probe_attach(&p, 0), SP_E_REFUSED);
        probe_fini(&p);
        forget(&d);
}

static void workers_end_with_their_supervisor(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        pid_t all[CHILDREN_MAX];
        start(&d, NULL);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        for (int i = 0; i < 500 && children(&d, all) < 2; i++) /* the session's and a warm one */
                nap(20);
        warm_worker(&d);
        assert_true(children(&d, all) >= 2);
        kill(d.pid, SIGKILL);
        waitpid(d.pid, NULL, 0);
        assert_int_equal(probe_drive(&p, never, 15000), SP_E_LINK);
        probe_fini(&p);
        /* A worker cannot remove its folder, which is left to the next one, and so is the supervisor's own. */
        struct daemon next;
        next_folder = d.folder;
        start(&next, NULL);
        warm_worker(&next);
        assert_true(has_scratch(&next, 2));
        stop(&next);
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

static void what_a_killed_server_left_behind_is_cleaned_up_by_the_next(void **state)
{
        (void)state;
        struct daemon d, next;
        pid_t all[CHILDREN_MAX];
        start(&d, NULL);
        warm_worker(&d);
        /* All at once, so that nobody cleans up. */
        int n = children(&d, all);
        kill(d.pid, SIGSTOP);
        for (int i = 0; i < n; i++)
                kill(all[i], SIGKILL);
        kill(d.pid, SIGKILL);
        waitpid(d.pid, NULL, 0);
        assert_true(count_scratch(&d) > 0);
        int dead = make_scratch(&d, "spancld.dead00", false);
        int held = make_scratch(&d, "spancld.held00", true);
        int other = make_scratch(&d, "spancld-file", false);
        next_folder = d.folder;
        start(&next, NULL);
        warm_worker(&next);
        assert_true(has_scratch(&next, 3)); /* what is held, the warm worker's, and its own */
        assert_int_equal(count_scratch(&next), 3);
        close(dead);
        close(held);
        close(other);
        kill(next.pid, SIGTERM);
        wait_end(&next);
        forget(&next);
}

static void a_lost_session_can_be_attached_again_with_its_key(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        start(&d, NULL);
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        link_down(&p.lanes[0]);
        p.key[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), SP_E_AUTH);
        assert_non_null(strstr(p.reply.text, "key"));
        assert_int_equal(probe_attach(&p, 1), SP_E_AUTH);
        p.key[0] ^= 1;
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&d);
}

static void a_lost_session_lingers_for_the_time_given(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        start(&d, (char *[]){ (char[]){ "--linger" }, (char[]){ "0" }, NULL });
        probe_init(&p, d.address);
        assert_int_equal(probe_attach(&p, 0), 0);
        assert_int_equal(probe_ping(&p), 0);
        link_down(&p.lanes[0]);
        int r = 0;
        for (int i = 0; i < 300 && r != SP_E_GONE; i++) {
                nap(20);
                r = probe_attach(&p, 1); /* never makes a session */
                link_down(&p.lanes[1]);
        }
        assert_int_equal(r, SP_E_GONE);
        probe_fini(&p);
        stop(&d);
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
        start(&d,
              (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, other, NULL });
        start(&e, (char *[]){ (char[]){ "--linger" }, (char[]){ "5" }, socket_option, path, NULL });
        for (int round = 0; round < 2; round++) {
                pid_t worker = warm_worker(&e);
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
                        /* Who dialled does so again, and hears that there is no such session any more. */
                        assert_int_equal(probe_drive(&a, peer_lost, 20000), 0);
                        assert_int_equal(probe_ping(&a), 0);
                } else {
                        link_down(&a.lanes[0]); /* its session lingers, and so does the link */
                        assert_int_equal(probe_ping(&b), 0);
                }
                probe_fini(&a);
                probe_fini(&b);
        }
        stop(&d);
        stop(&e);
}

static void a_peer_that_cannot_be_reached_is_reported(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        start(&d, NULL);
        probe_init(&a, d.address);
        probe_init(&b, d.address);
        assert_int_equal(probe_attach(&a, 0), 0);
        assert_int_equal(probe_attach(&b, 0), 0);
        introduce(&a, &b, "127.0.0.1", 1);
        assert_int_equal(probe_drive(&a, peer_lost, 20000), 0);
        assert_int_equal(probe_ping(&a), 0);
        probe_fini(&a);
        probe_fini(&b);
        stop(&d);
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
        start(&d, NULL);
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
        stop(&d);
        listener_close(there);
}

static void sessions_have_a_limit(void **state)
{
        (void)state;
        struct daemon d;
        struct probe a, b;
        start(&d, (char *[]){ (char[]){ "--sessions" }, (char[]){ "1" }, NULL });
        probe_init(&a, d.address);
        probe_init(&b, d.address);
        assert_int_equal(probe_attach(&a, 0), 0);
        assert_int_equal(probe_attach(&b, 0), SP_E_LIMIT);
        assert_int_equal(probe_ping(&a), 0);
        probe_fini(&a);
        probe_fini(&b);
        stop(&d);
}

static void a_session_has_the_memory_and_objects_given(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        start(&d, (char *[]){ (char[]){ "--session-buffers" }, (char[]){ "1" },
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
        assert_true(comes_to_log(&d, "MiB of buffers and images"));
        for (unsigned n = 3; n < 20; n++)
                assert_int_equal(probe_create(&p, n, 8), 0);
        assert_int_equal(probe_write(&p, 8, object_id(OBJECT_EVENT, 30), 8, 2), 0);
        assert_int_not_equal(probe_write(&p, 9, object_id(OBJECT_EVENT, 31), 8, 2), 0);
        assert_int_equal(p.event_status, CL_OUT_OF_RESOURCES);
        assert_true(comes_to_log(&d, "the session has 16 objects, and may have 16"));
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
        stop(&d);
}

static void many_sessions_may_begin_at_once(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p[8];
        start(&d, NULL);
        for (size_t i = 0; i < array_size(p); i++) {
                probe_init(&p[i], d.address);
                assert_int_equal(probe_attach(&p[i], 0), 0);
        }
        for (size_t i = 0; i < array_size(p); i++)
                assert_int_equal(probe_ping(&p[i]), 0);
        for (size_t i = 0; i < array_size(p); i++)
                probe_fini(&p[i]);
        stop(&d);
}

static void a_server_without_devices_says_what_to_do(void **state)
{
        (void)state;
        struct daemon d;
        struct probe p;
        start(&d, (char *[]){ (char[]){ "--devices" }, (char[]){ "no such device" }, NULL });
        for (int i = 0; i < 3; i++) {
                probe_init(&p, d.address);
                assert_int_equal(probe_attach(&p, 0), SP_E_NODEV);
                assert_non_null(strstr(p.reply.text, "--devices"));
                probe_fini(&p);
        }
        stop(&d);
}

/* Runs until it ends by itself. */
static int run(struct daemon *d, char *const *args)
{
        launch(d, args, -1);
        int status = wait_end(d);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
                assert_int_equal(run(&d, args), cases[i].status);
                assert_true(logged(&d, cases[i].says));
                forget(&d);
        }
}

static void a_port_in_use_is_explained(void **state)
{
        (void)state;
        struct daemon d, e;
        char where[32];
        start(&d, NULL);
        snprintf(where, sizeof(where), "localhost:%u", d.port);
        assert_int_equal(run(&e, (char *[]){ (char[]){ "--listen" }, where, NULL }), 1);
        assert_true(logged(&e, "in use"));
        forget(&e);
        stop(&d);
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
        start(&d, NULL);
        unsetenv("NOTIFY_SOCKET");
        assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
        assert_string_equal(text, "READY=1");
        stop(&d);
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
                cmocka_unit_test(sessions_are_served_over_both_ip_versions_and_unix_sockets),
                cmocka_unit_test(rubbish_is_dropped_and_others_are_served),
                cmocka_unit_test(a_frame_of_a_huge_length_is_dropped),
                cmocka_unit_test(another_version_is_told_so),
                cmocka_unit_test(a_hello_may_come_byte_by_byte),
                cmocka_unit_test(thousands_of_silent_connections_keep_nobody_out),
                cmocka_unit_test(few_descriptors_keep_nobody_out_either),
                cmocka_unit_test(a_killed_worker_ends_its_session_alone),
                cmocka_unit_test(a_worker_that_does_not_end_in_time_lost_nothing),
                cmocka_unit_test(a_killed_warm_worker_is_replaced),
                cmocka_unit_test(sigterm_says_goodbye_to_sessions),
                cmocka_unit_test(workers_end_with_their_supervisor),
                cmocka_unit_test(what_a_killed_server_left_behind_is_cleaned_up_by_the_next),
                cmocka_unit_test(a_lost_session_can_be_attached_again_with_its_key),
                cmocka_unit_test(a_lost_session_lingers_for_the_time_given),
                cmocka_unit_test(servers_hand_data_to_each_other),
                cmocka_unit_test(a_peer_that_cannot_be_reached_is_reported),
                cmocka_unit_test(servers_go_encrypted_to_what_is_not_loopback),
                cmocka_unit_test(sessions_have_a_limit),
                cmocka_unit_test(a_session_has_the_memory_and_objects_given),
                cmocka_unit_test(many_sessions_may_begin_at_once),
                cmocka_unit_test(a_server_without_devices_says_what_to_do),
                cmocka_unit_test(wrong_options_end_with_a_message),
                cmocka_unit_test(a_port_in_use_is_explained),
                cmocka_unit_test(the_service_manager_is_notified),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
