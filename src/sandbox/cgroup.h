/* The control groups (Linux' cgroup v2) of one spancld: a group for each worker limits its memory and processes, and
 * ends everything that the session has started. In the group that spancld was started in stands a folder
 * `spancld.PID` with a group `supervisor` and one group for each worker, named by a number. Only these are
 * touched, and no foreign process is moved. One thread; nothing but cgroups_init waits.
 * Source: Documentation/admin-guide/cgroup-v2.rst of Linux. */
#ifndef SPANCL_SANDBOX_CGROUP_H
#define SPANCL_SANDBOX_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/config.h"

struct cgroups {
        int home;      /* the group that spancld was started in; -1: there are no groups */
        int base;      /* the folder `name` in it */
        char name[48]; /* spancld.PID */
        bool memory, pids;
        uint64_t memory_bytes, process_count; /* limits of a worker's group; 0: none */
        unsigned last;                        /* number given last */
        struct buf ended;                     /* numbers of groups that are not removed yet */
};

enum cgroup_end { CGROUP_ALIVE, CGROUP_OVER_LIMIT, CGROUP_HOST_FULL };

/* Move this process into groups of its own, and remove the groups that dead spanclds have left. It waits 3 s at most for
 * spanclds that start at the same time, and 1 s at most until the processes in those groups have ended. If it may not make
 * groups, the log says why, and the other functions do nothing. */
void cgroups_init(struct cgroups *c, const struct config_options *o);

/* Remove the groups. Processes in them are ended. */
void cgroups_fini(struct cgroups *c);

/* Make a group for a worker. *ret_number 0: there are none here. SP_E_LIMIT. */
SP_NODISCARD int cgroup_make(struct cgroups *c, unsigned *ret_number);

/* Move that process, which is a child of this one, into the group `number` (0: none). SP_E_LIMIT: it is not in
 * there; the log says why. A process that has ended is no error. */
SP_NODISCARD int cgroup_add(struct cgroups *c, unsigned number, pid_t pid);

/* Has the kernel ended processes of the group for lack of memory, and of whose? */
enum cgroup_end cgroup_end_of(const struct cgroups *c, unsigned number);

/* End every process in the group, and remove it now or in cgroups_reap. */
void cgroup_end(struct cgroups *c, unsigned number);

/* Remove the ended groups that are empty by now: to be called when processes have ended. */
void cgroups_reap(struct cgroups *c);

#endif
