/* The control groups that this process is in (cgroups(7)), of both versions. No state.
 *
 * `proc` is /proc/self, or a folder with other files "cgroup" and "mountinfo". */
#ifndef SPANCL_OS_PROCESS_CONTROL_GROUP_H
#define SPANCL_OS_PROCESS_CONTROL_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { CONTROL_GROUP_PATH = 2 * PATH_MAX }; /* of a folder, with the NUL */

/* Get the folder of this process's group in the hierarchy of version 1 with this controller; NULL: in that of version
 * 2. `*ret_top` is the length of the path up to the highest group that is mounted here. False: `*ret_why` is the
 * reason. */
bool control_group_folder(const char *proc, const char *controller, char ret[CONTROL_GROUP_PATH],
                          size_t *ret_top, const char **ret_why);

/* Return the number of cores whose time the process's groups and those above give it, rounded up. UINT_MAX: there is
 * no quota, or it can't be read. */
unsigned control_group_cores(const char *proc);

#endif
