/* A measurement of what the processes of a session hold: tasks, memory, and files without a name. It reads /proc only, so no disk
 * makes it wait, and its work is bounded by the limits that it is given. No state, one thread for each call.
 *
 * The processes are a process and its descendants: a worker is the first process of a PID namespace or adopts orphans
 * (PR_SET_CHILD_SUBREAPER), so no process of its session leaves them. Source: Documentation/filesystems/proc.rst of Linux. */
#ifndef SPANCL_DAEMON_USAGE_H
#define SPANCL_DAEMON_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

enum {
        USAGE_FILES_MAX = 65536,     /* descriptors of a session's processes together */
        USAGE_MAPPINGS_MAX = 262144, /* the same of mappings */
};

struct usage_params {
        int folder; /* /proc/PID of the first process */
        pid_t pid;
        uint64_t tasks_max;   /* 0: no limit */
        uint64_t deadline_ns; /* then the measurement stops */
        time_t since; /* mapped files without a name that were written earlier are not the session's */
        uint64_t
                trusted; /* inode of a socket whose descriptors are not the session's doing; 0: none */
        bool shares;     /* pages that processes share count once: exact, but slower */
};

struct usage {
        uint64_t tasks; /* processes and threads */
        uint64_t
                memory_bytes; /* of processes, of files in memory, and an estimate of the buffers of sockets and pipes */
        uint64_t unnamed_bytes; /* on disks, of files that have no name any more */
        uint64_t files, mappings;
        uint64_t in_flight; /* descriptors in the session's sockets, which nobody sees there */
        bool over_files;    /* USAGE_FILES_MAX or USAGE_MAPPINGS_MAX: the rest is not counted */
        bool over_tasks;    /* the same of tasks_max */
        bool closed;        /* a process may not be looked into */
        bool moving; /* a process ended while it was looked at, or there was no time: there may be more */
};

/* May this process look into that one? */
bool usage_can_look(int folder);

/* Measure. SP_E_GONE: the first process has ended; SP_E_NOMEM, SP_E_LIMIT (descriptors). */
SP_NODISCARD int usage_measure(const struct usage_params *p, struct usage *ret);

#endif
