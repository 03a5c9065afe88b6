/* Children of this process that do slow work beside it. */
#ifndef SPANCL_DAEMON_CHILD_H
#define SPANCL_DAEMON_CHILD_H

#include <sys/types.h>

/* Fork a child that calls `work` and ends. It has the lowest priority, no descriptor of this process but the standard
 * ones, and at most `limit_s` seconds; it ends with this process. This process has one thread. Returns the child's
 * number once it has closed the descriptors; -1: errno gives the reason. */
pid_t child_fork(void (*work)(void *user), void *user, unsigned limit_s);

#endif
