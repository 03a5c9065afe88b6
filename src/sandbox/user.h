/* The user that a worker runs as: the one that --user names, one of the session's own, or the server's. */
#ifndef SPANCL_SANDBOX_USER_H
#define SPANCL_SANDBOX_USER_H

#include <sys/types.h>

#include "base/config.h"
#include "sandbox/paths.h"

struct user {
        uid_t uid; /* 0: the server's user */
        gid_t gid;
        bool own; /* no other session has it */
};

/* Begin to be the user that --user names, as far as files go: root's powers are laid aside. `scratch_dir` becomes that user's.
 * False: it is not possible, and the log says why. */
bool user_lay_aside(struct user *u, const struct config_options *o, const char *scratch_dir);

/* Have root's powers again, if they were laid aside. */
bool user_take_up(void);

/* Choose a user of this session's own, if it can have one: root has started the server, --user names nobody, no --almaif
 * needs root's devices, and this process is the first one of a namespace of the host's users. */
void user_choose(struct user *u, const struct config_options *o);

/* Become it for good, or drop root's powers. A user of the session's own gets the groups of the devices in `p` that their
 * groups may use. False: as above. */
bool user_become(const struct user *u, const struct config_options *o, const struct paths *p);

/* Drop root's powers (capabilities) for good; without them nothing changes. */
void user_drop_powers(void);

#endif
