/* The namespaces of a worker. In them it sees no process, no network interface, no mount and no
 * System V object of the host. No state. */
#ifndef SPANCL_SANDBOX_NAMESPACES_H
#define SPANCL_SANDBOX_NAMESPACES_H

#include <sys/types.h>

#include "config/options.h"

/* Give the next forked process namespaces of its own, as the first process in them. The caller
 * has one thread, and ends after that fork. 0: done, or the options want none; an errno: not
 * possible, and nothing has changed; -1: the calling process has become useless. */
int namespaces_leave(const struct config_options *o);

/* Make /proc show only the processes of the new namespace. The forked process calls it; its
 * number outside is `outside`. Without namespaces nothing changes. 0; an errno: /proc shows
 * others. */
int namespaces_enter(pid_t outside);

/* Return the number given to namespaces_enter; 0: this process has no namespaces of its own. */
pid_t namespaces_outside(void);

/* Return true if /proc shows only the processes of these namespaces, and nothing else in it can be written. */
bool namespaces_have_proc(void);

/* Return true if one of them is a user namespace. It has one user, whose processes RLIMIT_NPROC
 * counts apart from those outside. */
bool namespaces_of_users(void);

#endif
