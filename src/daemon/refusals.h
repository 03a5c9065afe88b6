/* The system calls that a worker's filter refused: the kernel notifies the supervisor of each (SECCOMP_RET_USER_NOTIF), which logs its
 * name, so that an administrator can allow it (--sandbox-allow), and answers EPERM.
 *
 * A signal handler in the worker (SECCOMP_RET_TRAP) would not do: the kernel ends a thread that blocks SIGSYS, as
 * glibc's do while they start processes, and a linker that a driver runs has no such handler. An error without a notification
 * (SECCOMP_RET_ERRNO) reaches no log but the host's audit, if that.
 *
 * A notification never makes the supervisor wait. A session gets REFUSALS_MAX answers; then the supervisor closes the descriptor
 * and the kernel itself answers ENOSYS. So a session cannot keep the supervisor busy. Owner: the supervisor's worker. */
#ifndef SPANCL_DAEMON_REFUSALS_H
#define SPANCL_DAEMON_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

enum {
        REFUSALS_MAX = 512,           /* answers that a session gets */
        REFUSALS_LINES = 32,          /* lines of the log that it may cause */
        REFUSALS_LINES_ALL = 128,     /* that all sessions may cause at once */
        REFUSALS_LINE_NS = 250000000, /* in this time it is one more */
};

struct refusals {
        int fd; /* the filter's; -1: there is none any more */
        unsigned answers, lines;
        uint64_t told[REFUSALS_LINES]; /* calls_key of each line */
};

/* One notification is there, or the last process of the worker has ended: answer it, and log a call that this session has not
 * made before. `worker` is its process. Does not block. False: there will be no more, and fd is closed. */
bool refusals_answer(struct refusals *r, int worker);

#endif
