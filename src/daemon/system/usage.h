/* A measurement of what a session's processes hold: tasks, memory, and files without a name. It
 * reads /proc only, so it never waits for a disk. The caller's limits bound its work. No state,
 * one thread for each call.
 *
 * The session's processes are a worker and its descendants. The worker is the first process of a
 * PID namespace or adopts orphans (PR_SET_CHILD_SUBREAPER), so no process leaves this tree.
 * Source: Documentation/filesystems/proc.rst of Linux. */
#ifndef SPANCL_DAEMON_USAGE_H
#define SPANCL_DAEMON_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

enum {
        USAGE_FILES_MAX = 65536,     /* descriptors of all the session's processes */
        USAGE_MAPPINGS_MAX = 262144, /* mappings of all the session's processes */
        USAGE_CPU_TASKS_MAX = 2048,  /* threads whose children usage_cpu_ns looks for */
};

struct usage_params {
        int folder; /* /proc/PID of the first process */
        pid_t pid;
        uint64_t tasks_max;   /* 0: no limit */
        uint64_t deadline_ns; /* the measurement stops at this time */
        /* Mapped files without a name that were last written earlier are not the session's. */
        time_t since;
        /* The inode of a socket whose queued descriptors are not the session's doing; 0: none. */
        uint64_t trusted;
        bool shares; /* count shared pages once: exact, but slower */
};

struct usage {
        uint64_t tasks; /* processes and threads */
        /* Memory of processes and of files in memory, and an estimate of socket and pipe buffers. */
        uint64_t memory_bytes;
        uint64_t unnamed_bytes; /* on disks, of files without a name */
        uint64_t files, mappings;
        /* Descriptors queued in the session's sockets, where nothing shows their files. */
        uint64_t in_flight;
        bool over_files; /* USAGE_FILES_MAX or USAGE_MAPPINGS_MAX: the rest is not counted */
        bool over_tasks; /* more than tasks_max: the rest is not counted */
        bool closed;     /* a process could not be inspected */
        /* A process ended during the inspection, or time ran out: the count may be low. */
        bool moving;
};

/* Open the folder of a process (/proc/PID). Returns its descriptor, for the caller to file_close(); -1. */
int usage_folder(pid_t pid);

/* Return true if this process may inspect that one. */
bool usage_can_inspect(int folder);

/* Return the processor time that a process and its descendants have used; 0: not known. It lacks that of ended
 * processes whose parents ignore their end, so it can become less. */
uint64_t usage_cpu_ns(pid_t pid);

/* Measure. SP_E_GONE: the first process has ended; SP_E_NOMEM, SP_E_LIMIT (descriptors). */
SP_NODISCARD int usage_measure(const struct usage_params *p, struct usage *ret);

#endif
