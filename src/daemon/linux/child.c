#include "daemon/system/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/process/process.h"

enum {
        NICE = 10,
        LAST = 2 << 13 | 7, /* ioprio_set(2): lowest, but not idle, which starves on a busy host */
};

static void be_child(void (*work)(void *user), void *user, unsigned limit_s)
{
        /* An inherited listener would keep its port. A descriptor that the parent closes would keep
         * its place in epoll. */
        (void)close_range(STDERR_FILENO + 1, ~0u, 0);
        process_end_with_parent();
        process_priority(NICE);
        (void)syscall(SYS_ioprio_set, 1, 0, LAST);
        alarm(limit_s);
        work(user);
        _exit(0);
}

pid_t child_fork(void (*work)(void *user), void *user, unsigned limit_s)
{
        int copies[2];
        char byte;
        if (pipe2(copies, O_CLOEXEC) < 0)
                copies[0] = copies[1] = -1;
        pid_t pid = fork();
        if (!pid)
                be_child(work, user, limit_s);
        int error = errno;
        if (copies[0] >= 0) {
                close(copies[1]);
                /* Wait until the child has closed its copies. */
                while (read(copies[0], &byte, 1) < 0 && errno == EINTR)
                        ;
                close(copies[0]);
        }
        errno = error;
        return pid;
}
