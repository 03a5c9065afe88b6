/* Namespaces of a worker's own: it sees no process, no network interface, no mount and no System V object of the host. No
 * state. */
#ifndef SPANCL_SANDBOX_NAMESPACES_H
#define SPANCL_SANDBOX_NAMESPACES_H

#include <sys/types.h>

#include "base/config.h"

/* Give the process that is forked next namespaces of its own; it is the first one in them. For a process with one thread,
 * which ends after that fork. 0, also where the options want none; an errno: there can be none here, and nothing has changed;
 * -1: the process is of no use any more. */
int namespaces_leave(const struct config_options *o);

/* In the forked process, whose number outside is `outside`: have /proc show no others. Without namespaces nothing changes.
 * 0; an errno: it shows others. */
int namespaces_enter(pid_t outside);

/* The number given to namespaces_enter; 0: this process has no namespaces of its own. */
pid_t namespaces_outside(void);

/* Is one of them a user namespace? It has one user, who counts its processes apart from those outside (RLIMIT_NPROC). */
bool namespaces_of_users(void);

#endif
