#include "os/process/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 64 << 10, FDS_MAX = 65536 };

/* Both children run in this process's memory, as those of posix_spawn do, while this thread sleeps. */
struct launch {
        char *const *argv, *const *environment;
        int null, in, out; /* /dev/null, which may also be one of the others */
        bool quiet;
        uint8_t *stack; /* of the second child */
        int id;         /* of that child */
        int error;      /* 0, or errno */
};

/* Sanitizers must not notice the children: they would take what these do for the parent's doing. So
 * the children call the system alone. */
#ifdef __SANITIZE_THREAD__
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);
#define clone __clone /* ThreadSanitizer takes the other name for a fork */
#endif
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

IN_CHILD static void close_others(void)
{
#ifdef SYS_close_range
        if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
                return;
#endif
        for (int fd = 3; fd < FDS_MAX; fd++)
                (void)syscall(SYS_close, fd);
}

IN_CHILD static int run_program(void *arg)
{
        struct launch *l = arg;
        const uint64_t zeros[8] = { 0 }; /* the default action, and no signal */
        const size_t mask_size = (NSIG - 1) / 8;
        for (int i = 1; i < NSIG; i++)
                (void)syscall(SYS_rt_sigaction, i, zeros, NULL, mask_size);
        (void)syscall(SYS_setsid);
        if (syscall(SYS_dup3, l->in, 0, 0) == 0 && syscall(SYS_dup3, l->out, 1, 0) == 1 &&
            (!l->quiet || syscall(SYS_dup3, l->null, 2, 0) == 2)) {
                close_others();
                (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, mask_size);
                (void)syscall(SYS_execve, l->argv[0], l->argv, l->environment);
        }
        l->error = errno;
        (void)syscall(SYS_exit_group, 127);
        return 0;
}

/* The child between both: execve would make it visible, so it has a child of its own and ends. */
IN_CHILD static int run_between(void *arg)
{
        struct launch *l = arg;
        l->id = clone(run_program, l->stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, l);
        if (l->id < 0)
                l->error = errno;
        (void)syscall(SYS_exit_group, 0);
        return 0;
}

static int launch(struct launch *l, uint8_t *stack)
{
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        /* Without a signal for its end it is a child that wait() does not count. */
        int pid = clone(run_between, stack + STACK, CLONE_VM | CLONE_VFORK, l);
        int error = errno;
        while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
                ;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = pid < 0 ? error : l->error;
        return pid < 0 ? SP_E_LIMIT : l->error ? SP_E_NOENT : 0;
}

/* Descriptors below 3 would be in the way of the program's own. */
static int above_2(int fd)
{
        if (fd < 0 || fd > 2)
                return fd;
        int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        close(fd);
        return other;
}

/* Start the program with descriptors 0 and 1 of these, -1 for /dev/null. Closes both. */
static int start(char *const argv[], bool quiet, int in, int out, int *ret_id)
{
        static char *const none[] = { NULL };
        uint8_t *stacks = malloc(2 * STACK);
        int null = above_2(open("/dev/null", O_RDWR | O_CLOEXEC));
        struct launch l = { .argv = argv,
                            .environment = getauxval(AT_SECURE) ? none : environ,
                            .null = null,
                            .in = in < 0 ? null : in,
                            .out = out < 0 ? null : out,
                            .quiet = quiet,
                            .stack = stacks };
        int r = SP_E_NOMEM;
        if (stacks)
                r = null < 0 ? SP_E_LIMIT : launch(&l, stacks + STACK);
        int error = errno;
        free(stacks);
        if (null >= 0)
                close(null);
        if (in >= 0)
                close(in);
        if (out >= 0)
                close(out);
        *ret_id = l.id > 0 ? l.id : 0;
        errno = error;
        return r;
}

/* Start the program with `in` and `out`, which this closes, and give the caller `own`. */
static int start_with(char *const argv[], bool quiet, int in, int out, int own, int *ret_fd,
                      int *ret_id)
{
        int r = own < 0 || (in < 0 && out < 0) ? SP_E_LIMIT : 0, error = errno;
        if (r == 0) {
                r = start(argv, quiet, in, out, ret_id);
                error = errno;
        } else {
                if (in >= 0)
                        close(in);
                if (out >= 0)
                        close(out);
        }
        if (r == 0 && fcntl(own, F_SETFL, O_NONBLOCK) == 0) {
                *ret_fd = own;
                return 0;
        }
        if (own >= 0)
                close(own);
        errno = error;
        return r < 0 ? r : SP_E_LIMIT;
}

int detached_start(char *const argv[], bool quiet, int *ret_fd)
{
        int ends[2], unused;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return SP_E_LIMIT;
        int own = above_2(ends[0]), out = above_2(ends[1]);
        return start_with(argv, quiet, -1, out, own, ret_fd, &unused);
}

int detached_start_socket(char *const argv[], bool quiet, int *ret_fd, int *ret_id)
{
        int ends[2];
        *ret_id = 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return SP_E_LIMIT;
        int own = above_2(ends[0]), in = above_2(ends[1]);
        return start_with(argv, quiet, in, -1, own, ret_fd, ret_id);
}

bool detached_collect(int id)
{
        int r;
        if (id <= 0)
                return true;
        do
                r = waitpid(id, NULL, WNOHANG);
        while (r < 0 && errno == EINTR);
        return r != 0;
}
