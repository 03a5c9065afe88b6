/* The allocator: the requests that a worker may make, what it gets in all, and that it gets its own memory only. Here
 * memory is a file in memory, and a device is known by its first byte. */
#include "support/check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/allocator/allocator.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/passing.h"
#include "proto/wire.h"

enum { WORKERS = 4, WAIT_MS = 60000 };

static const uint64_t unit = BACKEND_SHARED_UNIT;
static const uint8_t gpu[BACKEND_DEVICE_NAME] = { 1 }, full[BACKEND_DEVICE_NAME] = { 2 };
static const uint8_t other[BACKEND_DEVICE_NAME] = { 3 };

static int export(const uint8_t device[BACKEND_DEVICE_NAME], uint64_t size, int *ret_fd)
{
        if (*device != *gpu)
                return *device == *full ? SP_E_NOMEM : SP_E_UNSUPP;
        assert_true(size && size <= WIRE_STAGING_MAX);
        *ret_fd = file_create_in_memory();
        assert_true(*ret_fd >= 0 && file_resize(*ret_fd, size));
        return 0;
}

/* An allocator in a thread, and the ends of its supervisor and workers. */
struct host {
        pthread_t thread;
        int control[2], workers[WORKERS];
};

static void *serve(void *arg)
{
        struct host *h = arg;
        assert_int_equal(allocator_serve(h->control[1], WORKERS, export), 0);
        return NULL;
}

static void pair_of(int ret[2])
{
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret),
                         0);
}

/* Give the allocator the socket of one more worker. */
static int worker_new(struct host *h)
{
        int pair[2];
        pair_of(pair);
        assert_int_equal(control_send(h->control[0], CONTROL_ALLOCATOR, bytes_str(""), pair[0]), 0);
        (void)file_close(pair[0]);
        return pair[1];
}

static void host_init(struct host *h)
{
        pair_of(h->control);
        assert_int_equal(pthread_create(&h->thread, NULL, serve, h), 0);
        for (int i = 0; i < WORKERS; i++)
                h->workers[i] = worker_new(h);
}

static void host_fini(struct host *h)
{
        (void)file_close(h->control[0]);
        assert_int_equal(pthread_join(h->thread, NULL), 0);
        (void)file_close(h->control[1]);
        for (int i = 0; i < WORKERS; i++)
                if (h->workers[i] >= 0)
                        (void)file_close(h->workers[i]);
}

static void ask(int socket, const uint8_t *device, uint64_t size)
{
        struct allocation_request r = { .size = size };
        struct iovec iov = { &r, sizeof(r) };
        memcpy(r.device, device, sizeof(r.device));
        assert_int_equal(passing_send(socket, &iov, 1, NULL, 0), sizeof(r));
}

/* Receive an answer. SP_E_LINK: the allocator has closed the socket. */
static int receive(int socket, int *ret_fd)
{
        struct allocation_reply reply;
        struct iovec iov = { &reply, sizeof(reply) };
        struct pollfd p = { .fd = socket, .events = POLLIN };
        assert_int_equal(poll(&p, 1, WAIT_MS), 1);
        ssize_t n = passing_receive(socket, &iov, 1, ret_fd, 1);
        if (n < 0)
                return (int)n;
        assert_int_equal(n, sizeof(reply));
        assert_int_equal(*ret_fd >= 0, !reply.status);
        return reply.status;
}

static int result_of(int socket, const uint8_t *device, uint64_t size)
{
        int fd = -1;
        ask(socket, device, size);
        int r = receive(socket, &fd);
        if (fd >= 0)
                (void)file_close(fd);
        return r;
}

TEST(each_worker_gets_memory_of_its_own)
{
        (void)state;
        struct host h;
        struct stat a, b;
        int fds[2] = { -1, -1 };
        host_init(&h);
        for (int i = 0; i < 2; i++)
                ask(h.workers[i], gpu, (1 + (uint64_t)i) * unit);
        for (int i = 2; i--;)
                assert_int_equal(receive(h.workers[i], &fds[i]), 0);
        assert_true(!fstat(fds[0], &a) && !fstat(fds[1], &b));
        assert_int_equal(a.st_size, unit);
        assert_int_equal(b.st_size, 2 * unit);
        assert_true(a.st_ino != b.st_ino);
        for (int i = 0; i < 2; i++)
                (void)file_close(fds[i]);
        host_fini(&h);
}

TEST(requests_out_of_bounds_are_refused)
{
        (void)state;
        static const uint64_t bad[] = { 0,
                                        1,
                                        BACKEND_SHARED_UNIT - 1,
                                        BACKEND_SHARED_UNIT + 1,
                                        WIRE_STAGING_MAX + BACKEND_SHARED_UNIT,
                                        UINT64_MAX,
                                        0 - (uint64_t)BACKEND_SHARED_UNIT,
                                        (uint64_t)1 << 63 };
        struct host h;
        host_init(&h);
        for (size_t i = 0; i < array_size(bad); i++)
                assert_int_equal(result_of(h.workers[0], gpu, bad[i]), SP_E_INVAL);
        assert_int_equal(result_of(h.workers[0], other, unit), SP_E_UNSUPP);
        assert_int_equal(result_of(h.workers[0], full, unit), SP_E_NOMEM);
        assert_int_equal(result_of(h.workers[0], gpu, unit), 0);
        host_fini(&h);
}

TEST(a_session_gets_so_many_bytes_in_all)
{
        (void)state;
        struct host h;
        host_init(&h);
        assert_int_equal(result_of(h.workers[0], gpu, unit), 0);
        uint64_t got = unit;
        for (; got + WIRE_STAGING_MAX <= ALLOCATOR_SESSION_MAX; got += WIRE_STAGING_MAX)
                assert_int_equal(result_of(h.workers[0], gpu, WIRE_STAGING_MAX), 0);
        assert_int_equal(result_of(h.workers[0], gpu, WIRE_STAGING_MAX), SP_E_LIMIT);
        assert_int_equal(result_of(h.workers[1], gpu, WIRE_STAGING_MAX), 0);
        host_fini(&h);
}

TEST(malformed_requests_end_the_socket_and_no_other)
{
        (void)state;
        static const uint8_t bytes[2 * sizeof(struct allocation_request)];
        static const size_t sizes[] = { 1, sizeof(struct allocation_request) - 1, sizeof(bytes) };
        struct host h;
        int fd = -1;
        host_init(&h);
        for (size_t i = 0; i < array_size(sizes); i++) {
                struct iovec iov = { (void *)(uintptr_t)bytes, sizes[i] };
                assert_int_equal(passing_send(h.workers[i], &iov, 1, NULL, 0), sizes[i]);
                assert_int_equal(receive(h.workers[i], &fd), SP_E_LINK);
        }
        assert_int_equal(result_of(h.workers[WORKERS - 1], gpu, unit), 0);
        host_fini(&h);
}

TEST(a_worker_that_does_not_keep_to_the_rate_waits_alone)
{
        (void)state;
        struct allocation_request r = { .size = 1 };
        struct iovec iov = { &r, sizeof(r) };
        struct host h;
        int fd = -1;
        host_init(&h);
        uint64_t begun_ns = clock_now_ns();
        while (passing_send(h.workers[0], &iov, 1, NULL, 0) == sizeof(r))
                continue; /* until the socket is full */
        assert_int_equal(result_of(h.workers[1], gpu, unit), 0);
        for (unsigned i = 0; i < ALLOCATOR_BURST + 3; i++)
                assert_int_equal(receive(h.workers[0], &fd), SP_E_INVAL);
        assert_true(clock_now_ns() - begun_ns >= 3 * 1000000000ull / ALLOCATOR_PER_S);
        host_fini(&h);
}

static unsigned count_descriptors(void)
{
        unsigned n = 0;
        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

/* Give the allocator a worker in the place of one that has left. Until it has noticed that, it has no place. */
static int worker_replace(struct host *h, int gone)
{
        (void)file_close(gone);
        for (;;) {
                int fd = -1, worker = worker_new(h);
                struct allocation_request r = { .size = 1 };
                struct iovec iov = { &r, sizeof(r) };
                if (passing_send(worker, &iov, 1, NULL, 0) == sizeof(r) &&
                    receive(worker, &fd) == SP_E_INVAL)
                        return worker;
                (void)file_close(worker);
        }
}

TEST(workers_that_leave_while_it_answers_leave_nothing)
{
        (void)state;
        struct host h;
        unsigned before = count_descriptors();
        host_init(&h);
        for (int i = 0; i < 4 * WORKERS; i++) {
                ask(h.workers[0], gpu, WIRE_STAGING_MAX);
                h.workers[0] = worker_replace(&h, h.workers[0]);
        }
        assert_int_equal(result_of(h.workers[1], gpu, unit), 0);
        host_fini(&h);
        assert_int_equal(count_descriptors(), before);
}

/* ---- the worker's side ---------------------------------------------------------------------- */

TEST(a_worker_takes_each_answer)
{
        (void)state;
        struct host h;
        struct stat st;
        int fd = -1;
        assert_int_equal(allocation_get(gpu, unit, &fd), SP_E_LINK);
        host_init(&h);
        allocation_use(worker_new(&h)); /* the allocator has no place for it */
        assert_int_equal(allocation_get(gpu, unit, &fd), SP_E_LINK);
        allocation_use(h.workers[0]);
        assert_int_equal(allocation_get(other, unit, &fd), SP_E_UNSUPP);
        assert_int_equal(allocation_get(gpu, 2 * unit, &fd), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, 2 * unit);
        (void)file_close(fd);
        assert_int_equal(allocation_get(full, unit, &fd), SP_E_NOMEM);
        h.workers[0] = -1; /* the worker's side has it */
        host_fini(&h);
        assert_int_equal(allocation_get(gpu, unit, &fd), SP_E_LINK);
}

/* No descriptor of a late answer stays in the worker's socket. */
TEST(an_allocator_that_does_not_answer_is_given_up)
{
        (void)state;
        struct allocation_reply late = { 0 };
        struct iovec iov = { &late, sizeof(late) };
        int pair[2], fd = -1;
        pair_of(pair);
        allocation_use(pair[0]);
        assert_int_equal(allocation_get(gpu, unit, &fd), SP_E_LINK);
        assert_int_equal(passing_send(pair[1], &iov, 1, &pair[1], 1), SP_E_LINK);
        assert_int_equal(allocation_get(gpu, unit, &fd), SP_E_LINK);
        (void)file_close(pair[1]);
}

/* ---- the process ---------------------------------------------------------------------------- */

TEST(the_process_answers_in_its_sandbox_and_ends_with_the_supervisor)
{
        (void)state;
        static const uint8_t none[BACKEND_DEVICE_NAME]; /* no host has such a device */
        char path[512];
        struct host h;
        posix_spawn_file_actions_t files;
        pid_t pid;
        int status;
        snprintf(path, sizeof(path), "%s/bin/spancld", getenv("SPANCL_BUILD_DIR"));
        char *const argv[] = { path, (char[]){ "--allocator" }, NULL };
        pair_of(h.control);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, h.control[1], CONTROL_FD);
        posix_spawn_file_actions_addclosefrom_np(&files, CONTROL_FD + 1);
        assert_int_equal(posix_spawn(&pid, path, &files, NULL, argv, environ), 0);
        posix_spawn_file_actions_destroy(&files);
        (void)file_close(h.control[1]);
        int worker = worker_new(&h);
        for (int i = 0; i < 2; i++)
                assert_int_equal(result_of(worker, none, unit), SP_E_UNSUPP);
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        (void)file_close(h.control[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
        (void)file_close(worker);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_worker_gets_memory_of_its_own),
                cmocka_unit_test(requests_out_of_bounds_are_refused),
                cmocka_unit_test(a_session_gets_so_many_bytes_in_all),
                cmocka_unit_test(malformed_requests_end_the_socket_and_no_other),
                cmocka_unit_test(a_worker_that_does_not_keep_to_the_rate_waits_alone),
                cmocka_unit_test(workers_that_leave_while_it_answers_leave_nothing),
                cmocka_unit_test(a_worker_takes_each_answer),
                cmocka_unit_test(an_allocator_that_does_not_answer_is_given_up),
                cmocka_unit_test(the_process_answers_in_its_sandbox_and_ends_with_the_supervisor),
        };
        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
