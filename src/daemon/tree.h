/* Folders that sessions have written to, and their removal. A session may change them meanwhile: no symbolic link
 * is followed, no other file system is entered, and what can't be removed stays. */
#ifndef SPANCL_DAEMON_TREE_H
#define SPANCL_DAEMON_TREE_H

#include <stdint.h>

enum {
        TREE_DEPTH_KEPT = 3,      /* levels of folders that tree_trim keeps, empty or not */
        TREE_DEPTH_MEASURED = 64, /* tree_measure takes a deeper folder for one without end */
};

/* Remove the folder with all that is in it; "" is allowed. */
void tree_remove(const char *path);

/* Remove files and empty folders below `path` until the rest takes `limit_bytes` of the disk at most: those that were
 * written longest ago first, none that was written in the last `grace_s` seconds. A time to come is no time: such a file
 * is the oldest. Returns how many bytes are removed. */
uint64_t tree_trim(const char *path, uint64_t limit_bytes, unsigned grace_s);

/* Count the bytes of the disk that the files and folders below `path` take, each `least_bytes` at least. UINT64_MAX: they take more
 * than `limit_bytes`, and the rest was not looked at. A file with several names counts once if all of them are in there. Only modes
 * of folders change: their owner may read them then. */
uint64_t tree_measure(const char *path, uint64_t limit_bytes, uint64_t least_bytes);

#endif
