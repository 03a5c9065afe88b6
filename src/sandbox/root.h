/* A worker's own root folder: a tree of mounts with what it can reach, and nothing else of the host. No state. */
#ifndef SPANCL_SANDBOX_ROOT_H
#define SPANCL_SANDBOX_ROOT_H

#include <sys/types.h>

#include "sandbox/paths.h"

/* Make it the root folder, in a mount namespace of this process's own (sandbox/namespaces.h). It is built over `scratch_dir`,
 * which is in it as well. `user`: who is the owner of the files that are root's in folders that may be written to (Linux 5.12
 * and a file system that can; mount_setattr(2)); 0: root. False: it is not possible, the log says why, and nothing has
 * changed. */
bool root_change(const struct paths *p, const char *scratch_dir, uid_t user);

#endif
