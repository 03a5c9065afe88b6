/* The user that a worker runs as: the user that --user names, one of the session's own, or the
 * server's. */
#ifndef SPANCL_SANDBOX_USER_H
#define SPANCL_SANDBOX_USER_H

#include "config/options.h"
#include "sandbox/paths.h"

struct user {
        unsigned uid; /* 0: the server's user */
        unsigned gid;
        bool own; /* no other session has it */
};

/* Access files as the user that --user names: root's capabilities are suspended. `scratch_dir`
 * becomes that user's. False: it is not possible, and the log says why. */
bool user_lay_aside(struct user *u, const struct config_options *o, const char *scratch_dir);

/* Resume root's capabilities, if they were suspended. */
bool user_take_up(void);

/* Choose a user of this session's own, if the host allows one. Conditions: root has started the
 * server, --user names no user, no --almaif needs root's devices, and this process is the first
 * in a PID namespace that has the host's users. */
void user_choose(struct user *u, const struct config_options *o);

/* Become that user for good, or drop root's capabilities. A user of the session's own joins the
 * groups that may use the devices in `p`. False: as above. */
bool user_become(const struct user *u, const struct config_options *o, const struct paths *p);

/* Drop root's capabilities for good. Other processes do not change. */
void user_drop_powers(void);

#endif
