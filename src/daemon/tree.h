/* Folders that sessions have written to, and their removal. A session may change them meanwhile: no symbolic link
 * is followed, no other file system is entered, and what can't be removed stays. */
#ifndef SPANCL_DAEMON_TREE_H
#define SPANCL_DAEMON_TREE_H

#include <stdint.h>

enum { TREE_DEPTH_KEPT = 3 }; /* levels of folders that tree_trim keeps, empty or not */

/* Remove the folder with all that is in it; "" is allowed. */
void tree_remove(const char *path);

/* Remove files and empty folders below `path` until the rest takes `limit_bytes` of the disk at most: those that were
 * written longest ago first, none that was written in the last `grace_s` seconds. A time to come is no time: such a file
 * is the oldest. Returns how many bytes are removed. */
uint64_t tree_trim(const char *path, uint64_t limit_bytes, unsigned grace_s);

#endif
