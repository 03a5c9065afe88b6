/* The record of system calls that a worker's filter refused. The kernel notifies the supervisor
 * of each (SECCOMP_RET_USER_NOTIF). The supervisor logs the call's name, so that an administrator
 * can allow it (--sandbox-allow), and answers EPERM.
 *
 * A signal handler in the worker (SECCOMP_RET_TRAP) is no alternative. The kernel ends a thread
 * that blocks SIGSYS, as glibc's threads do while they start processes. A linker that a driver
 * runs has no such handler. An error without a notification (SECCOMP_RET_ERRNO) reaches no log
 * but the host's audit, if at all.
 *
 * A notification never makes the supervisor wait. A session gets REFUSALS_MAX answers; then the
 * supervisor closes the descriptor, and the kernel itself answers ENOSYS. So a session cannot
 * keep the supervisor busy. Owner: the supervisor's worker. */
#ifndef SPANCL_DAEMON_REFUSALS_H
#define SPANCL_DAEMON_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

enum {
        REFUSALS_MAX = 512,           /* answers for one session */
        REFUSALS_LINES = 32,          /* log lines that one session may cause */
        REFUSALS_LINES_ALL = 128,     /* log lines that all sessions may cause at once */
        REFUSALS_LINE_NS = 250000000, /* time until one more line is allowed */
};

struct refusals {
        int fd; /* the filter's descriptor; -1: closed */
        unsigned answers, lines;
        uint64_t reported[REFUSALS_LINES]; /* calls_key of each logged line */
};

/* Answer one notification, or notice that the worker's last process has ended. Logs a call that
 * this session has not made before. `worker` is its process. Does not block. False: no more will
 * come, and fd is closed. */
bool refusals_answer(struct refusals *r, int worker);

#endif
