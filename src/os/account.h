/* The users that this host knows. Asking may take a query of the network. Not at the same time in several threads. */
#ifndef SPANCL_OS_ACCOUNT_H
#define SPANCL_OS_ACCOUNT_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

struct account {
        unsigned user, group; /* numbers */
        char home[PATH_MAX];
};

/* Find a user by name. False: there is none. */
SP_NODISCARD bool account_find(const char *name, struct account *ret);

#endif
