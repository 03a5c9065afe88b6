/* The users that this host knows. Asking may take a query of the network. Not at the same time in several threads. */
#ifndef SPANCL_OS_HOST_USER_H
#define SPANCL_OS_HOST_USER_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

struct host_user {
        unsigned user, group; /* numbers */
        char home[PATH_MAX];
};

/* Find a user by name. False: there is none. */
SP_NODISCARD bool host_user_find(const char *name, struct host_user *ret);

/* Have the environment name the user's home folder, and no other folder of caches. */
void host_user_settle(const struct host_user *u);

#endif
