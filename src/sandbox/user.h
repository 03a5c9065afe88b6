/* The user that a worker runs as. */
#ifndef SPANCL_SANDBOX_USER_H
#define SPANCL_SANDBOX_USER_H

#include "base/config.h"

/* Become the user that --user names, or drop root's powers: the first thing that a worker does. `scratch_dir`
 * becomes that user's. False: it is not possible, and the log says why. */
bool sandbox_user(const struct config_options *o, const char *scratch_dir);

/* Drop root's powers (capabilities) for good; without them nothing changes. */
void user_drop_powers(void);

#endif
