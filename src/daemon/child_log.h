/* The log of a process that the supervisor started: what a worker or the zygote writes to its standard error. A worker
 * may have been taken over, so nothing in there is believed. Each line gets the name of its process in front, control
 * characters and what is no UTF-8 are escaped, long lines are cut, and there is a rate.
 *
 * It is a pair of stream sockets, not a pipe: a process that writes to a pipe holds the pipe's lock meanwhile, and a
 * reader would wait for it. Owner: the supervisor. */
#ifndef SPANCL_DAEMON_CHILD_LOG_H
#define SPANCL_DAEMON_CHILD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        CHILD_LOG_LINE = 960,      /* bytes of a line, the rest is cut off */
        CHILD_LOG_RATE = 8 << 10,  /* bytes per second that one may write, each line with */
        CHILD_LOG_LINE_COST = 64,  /* so many more */
        CHILD_LOG_BURST = 1 << 20, /* bytes that may come at once: reports of sanitizers */
        CHILD_LOG_RATE_ALL =
                64
                << 10, /* the same for all together: a client may begin sessions again and again */
        CHILD_LOG_BURST_ALL = 8 << 20,
};

/* The amount that all may write together. Zeroed memory is one that nobody has used. */
struct child_log_budget {
        uint64_t due_ns;
};

/* Zeroed memory with fd -1 is one that is closed. */
struct child_log {
        int fd; /* to read from */
        struct child_log_budget *all;
        struct child_log_budget own;
        uint64_t resume_ns; /* it wrote too much: when to read on; 0: now */
        uint64_t dropped;   /* lines, since it was last told */
        uint64_t told_ns;   /* when that was */
        size_t size;
        bool cut; /* the line is longer than it may be */
        char line[CHILD_LOG_LINE];
};

/* *ret_end is for the process, as its standard error; the caller's to close. A write to it takes 0.1 s at most, whatever
 * the supervisor does. SP_E_LIMIT. */
SP_NODISCARD int child_log_open(struct child_log *l, struct child_log_budget *all, int *ret_end);

/* Read what is there, some of it, and write it to our own standard error; `who` as "worker 4711". Does not block. False:
 * nothing more will come. */
bool child_log_read(struct child_log *l, const char *who, uint64_t now_ns);

/* The process is dead: read what it left, as far as it fits into a socket. */
void child_log_close(struct child_log *l, const char *who, uint64_t now_ns);

#endif
