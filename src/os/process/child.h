/* Child processes whose output this process reads. */
#ifndef SPANCL_OS_PROCESS_CHILD_H
#define SPANCL_OS_PROCESS_CHILD_H

#include <stdbool.h>

#include "base/status.h"

struct child {
        int id;
        int output; /* the reading end of a pipe, which child_wait closes; -1: none */
};

/* How a child has ended. */
enum child_end {
        CHILD_EXITED,   /* with an exit status */
        CHILD_KILLED,   /* by a signal */
        CHILD_TOO_LONG, /* its time was over */
        CHILD_LOST,     /* it is not known */
};

/* Start a program. If `capture`, it writes its standard output into the pipe; else it has this process's, and there is
 * no pipe. If it can't be executed, `failed` runs with errno, and returns the exit status that child_wait gives.
 * SP_E_LIMIT: errno gives the reason. */
SP_NODISCARD int child_start(char *const argv[], bool capture, int (*failed)(char *const argv[]),
                             struct child *ret);

/* Run a function in a copy of this process, which ends with its result. `to` is the pipe's writing end. The copy has
 * this thread alone, so no other one may hold a lock. It has `limit_s` seconds. SP_E_LIMIT: as above. */
SP_NODISCARD int child_run(int (*run)(void *user, int to), void *user, unsigned limit_s,
                           struct child *ret);

/* Wait for its end. *ret_number: the exit status, or the signal. */
enum child_end child_wait(struct child *c, int *ret_number);

#endif
