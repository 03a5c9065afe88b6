/* A worker's private folder for temporary files. The supervisor holds a lock on it (flock) as long as it lives, so
 * that what one left behind that was killed is known by its being free. */
#ifndef SPANCL_DAEMON_SCRATCH_H
#define SPANCL_DAEMON_SCRATCH_H

#include "base/status.h"

enum { SCRATCH_PATH_MAX = 256 };

/* Make one below $TMPDIR or /tmp, for this user alone, and lock it: *ret_lock is the caller's to close.
 * SP_E_INVAL: it can't be made there; SP_E_LIMIT: there are no descriptors. Nothing is left of it then. */
SP_NODISCARD int scratch_make(char path[SCRATCH_PATH_MAX], int *ret_lock);

/* The Unix socket `name` in such a folder of this user, by its path: a descriptor (O_PATH), for what is no link and has
 * no other name: a worker may do what it wants in its own folder. -1: it is not. */
int scratch_socket(const char *path, const char *name);

/* Remove those of this user that nobody holds. */
void scratch_sweep(void);

#endif
