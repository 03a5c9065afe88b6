/* The control groups (Linux' cgroup v2) of one spancld. Each worker has a group, which limits its
 * memory and processes, and ends all processes of its session. The group that spancld was started
 * in gets a folder `spancld.PID`. In it are a group `supervisor`, and a group with a number for
 * each worker. spancld touches only these groups, and moves no foreign process. One thread; only
 * cgroups_init waits. Source: Documentation/admin-guide/cgroup-v2.rst of Linux. */
#ifndef SPANCL_SANDBOX_CGROUP_H
#define SPANCL_SANDBOX_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "config/options.h"

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

/* Move this process into groups of its own, and remove the groups of dead spanclds. It waits 3 s
 * at most for spanclds that start at the same time, and 1 s at most until the processes in dead
 * spanclds' groups have ended. If this process may not make groups, the log says why, and the
 * other functions do nothing. */
void cgroups_init(struct cgroups *c, const struct config_options *o);

/* Remove the groups, and end the processes in them. */
void cgroups_fini(struct cgroups *c);

/* Make a group for a worker. *ret_number 0: this host has no groups. SP_E_LIMIT. */
SP_NODISCARD int cgroup_make(struct cgroups *c, unsigned *ret_number);

/* Move that child of this process into the group `number` (0: none). SP_E_LIMIT: the move failed;
 * the log says why. A process that has ended is no error. */
SP_NODISCARD int cgroup_add(struct cgroups *c, unsigned number, pid_t pid);

/* Set the share of the processors that the group gets beside others; each has 100. Return false if there are no
 * groups, or they do not share processors. */
bool cgroup_weigh(const struct cgroups *c, unsigned number, unsigned weight);

/* Return the processor time of all processes that were ever in the group; 0: there are no groups. */
uint64_t cgroup_cpu_ns(const struct cgroups *c, unsigned number);

/* Return whether the kernel has ended processes of the group for lack of memory, and whether the
 * group or the host lacked it. */
enum cgroup_end cgroup_end_of(const struct cgroups *c, unsigned number);

/* End every process in the group, and remove it now or in cgroups_reap. */
void cgroup_end(struct cgroups *c, unsigned number);

/* Remove the ended groups that are empty by now. The caller does so when processes have ended. */
void cgroups_reap(struct cgroups *c);

#endif
