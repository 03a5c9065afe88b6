/* A worker's own root folder: a tree of mounts with the paths that it can reach, and nothing else
 * of the host. No state. */
#ifndef SPANCL_SANDBOX_ROOT_H
#define SPANCL_SANDBOX_ROOT_H

#include <sys/types.h>

#include "sandbox/paths.h"

/* Build the root folder and enter it, in a mount namespace of this process's own
 * (sandbox/namespaces.h). It is mounted over `scratch_dir`, which it also contains. `user`:
 * root's files in writable folders appear as this user's (Linux 5.12 and a file system that
 * supports it; mount_setattr(2)); 0: as root's. False: it is not possible, the log says why, and
 * nothing has changed. */
bool root_change(const struct paths *p, const char *scratch_dir, uid_t user);

#endif
