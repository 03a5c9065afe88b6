/* System calls that the filter refuses: the supervisor's notification, and the caller's
 * result. Each claim runs in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/system/refusals.h"
#include "os/passing.h"
#include "sandbox/calls.h"

static char said[8192]; /* what the log said meanwhile */

static int be_refused(void)
{
        return syscall(SYS_shmget, 0, 4096, 0600) < 0 ? errno : 0;
}

/* A child: shut in, and its filter's descriptor handed over. */
static int child(int socket, int (*claim)(void))
{
        int fd;
        struct iovec iov = { "", 1 };
        const struct calls_params p = { .allowed = "" };
        if (syscall(SYS_prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0, 0) < 0 ||
            !calls_restrict(&p, &fd))
                return 100;
        if (fd < 0)
                return 101;
        if (passing_send(socket, &iov, 1, &fd, 1) < 0)
                return 102;
        close(fd);
        return claim();
}

/* Be the supervisor of a process that makes this claim: its exit status, or minus the signal. */
static int supervise(int (*claim)(void))
{
        int pair[2], status;
        uint8_t byte;
        struct refusals r = { .fd = -1 };
        struct iovec iov = { &byte, 1 };
        FILE *log = tmpfile();
        assert_non_null(log);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid_t pid = fork();
        if (!pid) {
                close(pair[0]);
                _exit(child(pair[1], claim));
        }
        close(pair[1]);
        struct pollfd begun = { .fd = pair[0], .events = POLLIN };
        (void)poll(&begun, 1, -1);
        int stderr_copy = dup(STDERR_FILENO);
        (void)dup2(fileno(log), STDERR_FILENO);
        if (passing_receive(pair[0], &iov, 1, &r.fd, 1) == 1)
                while (r.fd >= 0) {
                        struct pollfd p = { .fd = r.fd, .events = POLLIN };
                        (void)poll(&p, 1, -1);
                        (void)refusals_answer(&r, (int)pid);
                }
        (void)dup2(stderr_copy, STDERR_FILENO);
        close(stderr_copy);
        close(pair[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        rewind(log);
        said[fread(said, 1, sizeof(said) - 1, log)] = 0;
        fclose(log);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static unsigned lines_said(void)
{
        unsigned n = 0;
        for (const char *s = said; *s; s++)
                n += *s == '\n';
        return n;
}

static int be_refused_twice(void)
{
        (void)be_refused();
        return be_refused();
}

static void a_refused_call_is_logged_once(void **state)
{
        (void)state;
        int r = supervise(be_refused_twice);
        if (r == 101)
                skip();
        assert_int_equal(r, EPERM);
        assert_non_null(strstr(said, "the system call shmget was refused"));
        assert_int_equal(lines_said(), 1);
}

static void *refused_without_signals(void *result)
{
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        *(int *)result = be_refused();
        return NULL;
}

static int be_refused_in_a_thread(void)
{
        pthread_t thread;
        int r = 0;
        if (pthread_create(&thread, NULL, refused_without_signals, &r))
                return 103;
        pthread_join(thread, NULL);
        return r;
}

static void a_thread_that_blocks_signals_goes_on(void **state)
{
        (void)state;
        int r = supervise(be_refused_in_a_thread);
        if (r == 101)
                skip();
        assert_int_equal(r, EPERM);
}

static int be_refused_in_a_program(void)
{
        return WEXITSTATUS(system("chmod 0700 . 2>/dev/null"));
}

static void a_program_that_it_starts_is_refused_too(void **state)
{
        (void)state;
        int r = supervise(be_refused_in_a_program);
        if (r == 101)
                skip();
        assert_int_equal(r, 1);
}

static int fork_and_leave(void)
{
        if (!fork()) {
                usleep(20000);
                (void)be_refused();
                _exit(0);
        }
        return 0;
}

static void a_process_that_is_left_alone_is_answered(void **state)
{
        (void)state;
        int r = supervise(fork_and_leave);
        if (r == 101)
                skip();
        assert_int_equal(r, 0);
        assert_int_equal(lines_said(), 1);
}

static int insist(void)
{
        int r = 0;
        for (int i = 0; i < REFUSALS_MAX + 10; i++)
                r = be_refused();
        return r;
}

static int vary(void)
{
        int r = 0;
        for (int i = 0; i < 4 * REFUSALS_LINES; i++)
                r = syscall(SYS_ioctl, 0, 0x5500 + i, 0) < 0 ? errno : 0;
        return r;
}

static void a_session_gets_so_many_answers_and_lines(void **state)
{
        (void)state;
        int r = supervise(insist);
        if (r == 101)
                skip();
        assert_int_equal(r, ENOSYS);
        assert_int_equal(lines_said(), 2);
        assert_int_equal(supervise(vary), EPERM);
        assert_int_equal(lines_said(), REFUSALS_LINES);
}

static int hold_a_call(void)
{
        alarm(1);
        return be_refused();
}

/* The signal ends the process while its call waits for an answer. */
static void a_caller_that_is_ended_leaves_nothing(void **state)
{
        (void)state;
        int pair[2], status, fd;
        uint8_t byte;
        struct iovec iov = { &byte, 1 };
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid_t pid = fork();
        if (!pid)
                _exit(child(pair[1], hold_a_call));
        close(pair[1]);
        struct pollfd begun = { .fd = pair[0], .events = POLLIN };
        (void)poll(&begun, 1, -1);
        bool has = passing_receive(pair[0], &iov, 1, &fd, 1) == 1;
        close(pair[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!has)
                skip();
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
        struct refusals r = { .fd = fd };
        while (refusals_answer(&r, (int)pid))
                ;
        assert_int_equal(r.fd, -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_refused_call_is_logged_once),
                cmocka_unit_test(a_thread_that_blocks_signals_goes_on),
                cmocka_unit_test(a_program_that_it_starts_is_refused_too),
                cmocka_unit_test(a_process_that_is_left_alone_is_answered),
                cmocka_unit_test(a_session_gets_so_many_answers_and_lines),
                cmocka_unit_test(a_caller_that_is_ended_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
