/* The log of a process that the supervisor started: the standard error of a worker or of the
 * zygote. A client may have taken over the worker, so the supervisor does not trust this text.
 * Each line gets its process's name as a prefix. Control characters and invalid UTF-8 are
 * escaped, long lines are cut, and the rate is limited.
 *
 * The log is a pair of stream sockets, not a pipe: a process that writes to a pipe holds the
 * pipe's lock, and a reader would wait for that lock. Owner: the supervisor. */
#ifndef SPANCL_DAEMON_CHILD_LOG_H
#define SPANCL_DAEMON_CHILD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        CHILD_LOG_LINE = 960,      /* bytes of a line; the rest is cut off */
        CHILD_LOG_RATE = 8 << 10,  /* bytes per second for one process */
        CHILD_LOG_LINE_COST = 64,  /* bytes that each line counts in addition */
        CHILD_LOG_BURST = 1 << 20, /* bytes that may come at once: reports of sanitizers */
        /* The same for all processes together: a client may begin sessions again and again. */
        CHILD_LOG_RATE_ALL = 64 << 10,
        CHILD_LOG_BURST_ALL = 8 << 20,
};

/* The share that all processes have together. Zeroed memory is an unused one. */
struct child_log_budget {
        uint64_t due_ns;
};

/* A log. Zeroed memory with fd -1 is a closed one. */
struct child_log {
        int fd;            /* the end to read from */
        const char *about; /* of each line (log_line); NULL: none. The caller owns it. */
        struct child_log_budget *all;
        struct child_log_budget own;
        uint64_t resume_ns;   /* when to read again after too much output; 0: now */
        uint64_t dropped;     /* lines dropped since the last report of drops */
        uint64_t reported_ns; /* the time of that report */
        size_t size;
        bool cut; /* the present line is too long, its rest is dropped */
        char line[CHILD_LOG_LINE];
};

/* Open a log. *ret_end becomes the process's standard error; the caller closes it. A write to it
 * takes 0.1 s at most, whatever the supervisor does. SP_E_LIMIT. */
SP_NODISCARD int child_log_open(struct child_log *l, struct child_log_budget *all, int *ret_end);

/* Read some of the available output, and write it to this process's standard error. `who` is the
 * prefix, as "worker 4711". Does not block. False: no more output will come. */
bool child_log_read(struct child_log *l, const char *who, uint64_t now_ns);

/* Close the log of a dead process. Its remaining output is read first, as far as a socket holds
 * it. */
void child_log_close(struct child_log *l, const char *who, uint64_t now_ns);

#endif
