/* A worker's private folder for temporary files. The supervisor holds a lock on it (flock) while
 * the worker lives. A folder whose lock is free was left behind by a killed process. */
#ifndef SPANCL_DAEMON_SCRATCH_H
#define SPANCL_DAEMON_SCRATCH_H

#include "base/status.h"
#include "os/net/socket_address.h"

enum { SCRATCH_PATH_MAX = 256 };

/* Make a folder below $TMPDIR or /tmp, for this user alone, and lock it. The caller closes
 * *ret_lock. SP_E_INVAL: it can't be made there; SP_E_LIMIT: there are no descriptors. After an
 * error no folder is left. */
SP_NODISCARD int scratch_make(char path[SCRATCH_PATH_MAX], int *ret_lock);

/* Open the Unix socket `name` in a scratch folder of this user, by path. Returns a descriptor
 * (O_PATH); until the caller closes it, *ret leads to that socket, whatever is put in its place. -1:
 * it is no such socket, or is a link, or has another name: a worker can put anything into its own
 * folder. */
int scratch_socket(const char *path, const char *name, struct socket_address *ret);

/* Remove the scratch folders of this user that no process holds. */
void scratch_sweep(void);

#endif
