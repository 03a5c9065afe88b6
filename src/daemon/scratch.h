/* A worker's private folder for temporary files. */
#ifndef SPANCL_DAEMON_SCRATCH_H
#define SPANCL_DAEMON_SCRATCH_H

#include "base/status.h"

enum { SCRATCH_PATH_MAX = 256 };

/* Make one below $TMPDIR or /tmp, for this user alone. SP_E_INVAL: it can't be made there. */
SP_NODISCARD int scratch_make(char path[SCRATCH_PATH_MAX]);

/* Remove it with all that is in it; "" is allowed. */
void scratch_remove(const char *path);

#endif
