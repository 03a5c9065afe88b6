/* A measurement sees what the processes of a session hold, wherever they put it, and counts it once. */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include "daemon/system/usage.h"
#include "os/clock.h"

enum { MIB = 1 << 20, HELD = 64 * MIB, MUCH = 48 * MIB };

/* A process that does something, and then waits for its end. */
struct held {
        pid_t pid;
        int folder;
};

static void wait_for_ever(void)
{
        for (;;)
                pause();
}

static void *be_thread(void *arg)
{
        (void)arg;
        wait_for_ever();
        return NULL;
}

static struct held hold(bool (*what)(void))
{
        int ready[2];
        char path[32], byte = 0;
        struct held h;
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        h.pid = fork();
        if (!h.pid) {
                setpgid(0, 0);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                prctl(PR_SET_CHILD_SUBREAPER, 1);
                close(ready[0]);
                if (!what() || write(ready[1], &byte, 1) != 1)
                        _exit(1);
                close(ready[1]);
                wait_for_ever();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        snprintf(path, sizeof(path), "/proc/%d", (int)h.pid);
        h.folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(h.folder >= 0);
        return h;
}

static void end(struct held h)
{
        kill(-h.pid, SIGKILL);
        assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
        close(h.folder);
}

static struct usage_params params_of(struct held h)
{
        return (struct usage_params){
                .folder = h.folder,
                .pid = h.pid,
                .deadline_ns = clock_now_ns() + 60000000000ull,
        };
}

static struct usage measured(struct held h, bool shares)
{
        struct usage u = { 0 };
        struct usage_params p = params_of(h);
        p.shares = shares;
        assert_int_equal(usage_measure(&p, &u), 0);
        return u;
}

static bool nothing(void)
{
        return true;
}

/* More than a process that holds nothing. */
static uint64_t more_memory(bool (*what)(void), bool shares)
{
        struct held plain = hold(nothing), h = hold(what);
        uint64_t all = measured(h, shares).memory_bytes,
                 none = measured(plain, shares).memory_bytes;
        end(h);
        end(plain);
        return all > none ? all - none : 0;
}

static void *map(size_t size, int flags, int fd)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
        if (p == MAP_FAILED)
                _exit(1);
        return p;
}

/* ---- processes ------------------------------------------------------------------------------ */

enum { BURNT_MS = 60 };

static void burn(void)
{
        struct timespec t;
        do
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        while (!t.tv_sec && t.tv_nsec < BURNT_MS * 1000000l);
}

/* A child works and is collected; another one, and a child of it, go on. */
static bool working(void)
{
        int ready[2];
        char byte = 0;
        pid_t first = fork();
        if (!first) {
                burn();
                _exit(0);
        }
        if (waitpid(first, NULL, 0) != first || pipe(ready) < 0)
                return false;
        if (!fork()) {
                (void)!fork();
                burn();
                (void)!write(ready[1], &byte, 1);
                wait_for_ever();
        }
        return read(ready[0], &byte, 1) == 1 && read(ready[0], &byte, 1) == 1;
}

static void processor_time_of_descendants_counts(void **state)
{
        (void)state;
        const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
        struct held h = hold(working), plain = hold(nothing);
        assert_true(usage_cpu_ns(h.pid) + 3 * 2 * tick_ns >= 3 * BURNT_MS * 1000000ull);
        assert_true(usage_cpu_ns(plain.pid) < BURNT_MS * 1000000ull);
        end(h);
        end(plain);
}

/* Two threads, two children, of which one has a child, and an orphan. */
static bool many(void)
{
        pthread_t thread;
        for (int i = 0; i < 2; i++)
                if (pthread_create(&thread, NULL, be_thread, NULL))
                        return false;
        for (int i = 0; i < 2; i++)
                if (!fork()) {
                        if (!i)
                                (void)!fork();
                        wait_for_ever();
                }
        pid_t parent = fork();
        if (!parent) {
                if (!fork())
                        wait_for_ever();
                _exit(0);
        }
        usleep(100000); /* for the grandchild */
        return waitpid(parent, NULL, 0) == parent;
}

TEST(all_processes_and_threads_count)
{
        (void)state;
        struct held h = hold(many);
        struct usage u;
        assert_int_equal(measured(h, false).tasks, 1 + 2 + 3 + 1);
        struct usage_params p = params_of(h);
        p.tasks_max = 7;
        assert_int_equal(usage_measure(&p, &u), 0);
        assert_false(u.over_tasks);
        p.tasks_max = 6;
        assert_int_equal(usage_measure(&p, &u), 0);
        assert_true(u.over_tasks && u.tasks > 6);
        end(h);
}

TEST(a_process_that_has_ended_is_told_from_one_that_holds_nothing)
{
        (void)state;
        struct usage u;
        struct held h = hold(nothing);
        struct usage_params p = params_of(h);
        assert_true(usage_can_inspect(h.folder));
        kill(h.pid, SIGKILL);
        assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
        assert_int_equal(usage_measure(&p, &u), SP_E_GONE);
        assert_false(usage_can_inspect(h.folder));
        close(h.folder);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool own_memory(void)
{
        memset(map(HELD, MAP_PRIVATE | MAP_ANONYMOUS, -1), 1, HELD);
        return true;
}

static bool shared_memory(void)
{
        memset(map(HELD, MAP_SHARED | MAP_ANONYMOUS, -1), 1, HELD);
        return true;
}

/* Nothing maps it, but several descriptors lead to it. */
static bool memory_file(void)
{
        int fd = memfd_create("held", 0);
        return fd >= 0 && fallocate(fd, 0, 0, HELD) == 0 && dup(fd) >= 0;
}

static bool memory_file_of_a_child(void)
{
        int fd = memfd_create("held", 0);
        bool ok = fallocate(fd, 0, 0, HELD) == 0;
        memset(map(HELD, MAP_SHARED, fd), 1, HELD);
        if (!fork())
                wait_for_ever();
        close(fd);
        return ok;
}

/* Tables of pages for memory that is read only. */
static bool page_tables(void)
{
        const size_t size = 32ul << 30, step = 2 * MIB; /* a table maps as much */
        const char *p =
                mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || madvise((void *)(uintptr_t)p, size, MADV_NOHUGEPAGE) < 0)
                return false;
        for (size_t i = 0; i < size; i += step)
                if (((const volatile char *)p)[i])
                        return false;
        return true;
}

static bool shared_by_forks(void)
{
        own_memory();
        for (int i = 0; i < 3; i++)
                if (!fork())
                        wait_for_ever();
        return true;
}

/* As vfork(2) does. */
static bool same_space(void)
{
        static char stacks[3][65536];
        own_memory();
        for (int i = 0; i < 3; i++)
                if (clone((int (*)(void *))(uintptr_t)be_thread, stacks[i] + sizeof(stacks[i]),
                          CLONE_VM | SIGCHLD, NULL) < 0)
                        return false;
        return true;
}

static bool about(uint64_t bytes)
{
        return bytes >= HELD && bytes < HELD + HELD / 4;
}

TEST(memory_counts_wherever_it_is)
{
        (void)state;
        assert_true(about(more_memory(own_memory, false)));
        assert_true(about(more_memory(shared_memory, false)));
        assert_true(about(more_memory(memory_file, false)));
        assert_true(about(more_memory(memory_file_of_a_child, false)));
        assert_true(about(more_memory(page_tables, false)));
}

TEST(memory_that_processes_share_counts_once)
{
        (void)state;
        assert_true(about(more_memory(shared_by_forks, true)));
        assert_true(more_memory(shared_by_forks, false) > 3ull * HELD); /* at most, cheaply */
        assert_true(about(more_memory(same_space, false)));
        assert_true(about(more_memory(same_space, true)));
}

/* ---- files ---------------------------------------------------------------------------------- */

static int unnamed(void)
{
        int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        return fd >= 0 && fallocate(fd, 0, 0, MUCH) == 0 ? fd : -1;
}

static bool unnamed_file(void)
{
        return unnamed() >= 0;
}

/* A thread has a table of descriptors of its own, and the first thread's has nothing. */
static int hide(void *arg)
{
        int fd = unnamed();
        (void)!write(*(int *)arg, fd >= 0 ? "y" : "n", 1);
        wait_for_ever();
        return 0;
}

static bool unnamed_file_of_a_thread(void)
{
        static char stack[65536];
        static int fds[2];
        char byte = 0;
        if (pipe(fds) < 0 || clone(hide, stack + sizeof(stack),
                                   CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD, &fds[1]) < 0)
                return false;
        return read(fds[0], &byte, 1) == 1 && byte == 'y';
}

static bool unnamed_file_of_a_mapping(void)
{
        int fd = unnamed();
        map(4096, MAP_SHARED, fd);
        close(fd);
        return fd >= 0;
}

static uint64_t unnamed_bytes(bool (*what)(void))
{
        struct statfs fs;
        assert_int_equal(statfs("/tmp", &fs), 0);
        struct held h = hold(what);
        struct usage u = measured(h, false);
        end(h);
        return fs.f_type == TMPFS_MAGIC ? u.memory_bytes : u.unnamed_bytes;
}

TEST(files_without_a_name_count)
{
        (void)state;
        assert_true(unnamed_bytes(nothing) < MUCH);
        assert_true(unnamed_bytes(unnamed_file) >= MUCH);
        assert_true(unnamed_bytes(unnamed_file_of_a_thread) >= MUCH);
        if (!geteuid()) /* the kernel shows them to root */
                assert_true(unnamed_bytes(unnamed_file_of_a_mapping) >= MUCH);
}

static int between[2];

static bool passing(void)
{
        char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec iov = { &byte, 1 };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = room,
                            .msg_controllen = sizeof(room) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        int fd = memfd_create("held", 0);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        return sendmsg(between[0], &m, 0) == 1 && sendmsg(between[0], &m, 0) == 1;
}

TEST(descriptors_in_sockets_are_seen)
{
        (void)state;
        struct usage u;
        struct stat st;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, between), 0);
        struct held plain = hold(nothing);
        assert_int_equal(measured(plain, false).in_flight, 0);
        struct held h = hold(passing);
        assert_int_equal(measured(h, false).in_flight, 2);
        struct usage_params p = params_of(h);
        assert_int_equal(fstat(between[1], &st), 0);
        p.trusted = st.st_ino;
        assert_int_equal(usage_measure(&p, &u), 0);
        assert_int_equal(u.in_flight, 0);
        end(h);
        end(plain);
        close(between[0]);
        close(between[1]);
}

/* Processes with a thousand descriptors each, in tables of their own. */
static bool many_files(void)
{
        int ready[2];
        char byte = 0;
        if (pipe(ready) < 0)
                return false;
        for (int i = 0; i < USAGE_FILES_MAX / 1000 + 1; i++) {
                if (fork())
                        continue;
                int n = 0;
                while (n < 1000 && dup(0) >= 0)
                        n++;
                (void)!write(ready[1], n == 1000 ? "y" : "n", 1);
                wait_for_ever();
        }
        for (int i = 0; i < USAGE_FILES_MAX / 1000 + 1; i++)
                if (read(ready[0], &byte, 1) != 1 || byte != 'y')
                        return false;
        return true;
}

TEST(too_many_descriptors_end_the_measurement)
{
        (void)state;
        struct held h = hold(many_files);
        struct usage u = measured(h, false);
        assert_true(u.over_files && u.files == USAGE_FILES_MAX + 1);
        end(h);
}

/* ---- what can't be seen ------------------------------------------------------------------------ */

static void *end_first(void *arg)
{
        (void)arg;
        wait_for_ever();
        return NULL;
}

/* Its first thread has ended: /proc shows none of its memory. */
static bool first_thread_ends(void)
{
        pthread_t thread;
        pid_t pid = fork();
        if (!pid) {
                if (pthread_create(&thread, NULL, end_first, NULL))
                        _exit(1);
                syscall(SYS_exit, 0);
        }
        usleep(100000);
        return pid > 0;
}

TEST(a_process_that_shows_nothing_is_told)
{
        (void)state;
        struct held plain = hold(nothing), h = hold(first_thread_ends);
        assert_false(measured(plain, false).closed);
        assert_true(measured(h, false).closed);
        end(h);
        end(plain);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_processes_and_threads_count),
                cmocka_unit_test(a_process_that_has_ended_is_told_from_one_that_holds_nothing),
                cmocka_unit_test(memory_counts_wherever_it_is),
                cmocka_unit_test(memory_that_processes_share_counts_once),
                cmocka_unit_test(files_without_a_name_count),
                cmocka_unit_test(processor_time_of_descendants_counts),
                cmocka_unit_test(descriptors_in_sockets_are_seen),
                cmocka_unit_test(too_many_descriptors_end_the_measurement),
                cmocka_unit_test(a_process_that_shows_nothing_is_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
