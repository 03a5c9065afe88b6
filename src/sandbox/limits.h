/* The limits of a worker that need no control group (rlimits), which its children inherit. */
#ifndef SPANCL_SANDBOX_LIMITS_H
#define SPANCL_SANDBOX_LIMITS_H

#include <stdbool.h>

#include "base/config.h"

/* Limit this process. `own_user`: no other process has its user, so a limit of that user's processes is one of this
 * session. A limit that can't be set is said in the log. */
void limits_set(const struct config_options *o, bool own_user);

#endif
