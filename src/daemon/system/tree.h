/* Folders that sessions have written to: their removal and measurement. A session may change them
 * meanwhile. So no symbolic link is followed, no other file system is entered, and an entry that
 * can't be removed stays. */
#ifndef SPANCL_DAEMON_TREE_H
#define SPANCL_DAEMON_TREE_H

#include <stdint.h>

enum {
        TREE_DEPTH_KEPT = 3,      /* levels of folders that tree_trim keeps, empty or not */
        TREE_DEPTH_MEASURED = 64, /* tree_measure takes a deeper folder for an endless one */
};

/* Remove the folder with all its contents; "" is allowed. */
void tree_remove(const char *path);

/* Remove files and empty folders below `path` until the rest takes `limit_bytes` of the disk at
 * most. The oldest go first, by the time of their last write; none goes that was written in the
 * last `grace_s` seconds. A file with a time in the future counts as the oldest. Returns the
 * number of bytes removed. */
uint64_t tree_trim(const char *path, uint64_t limit_bytes, unsigned grace_s);

/* Count the disk space of the files and folders below `path`, each at least `least_bytes`.
 * UINT64_MAX: they take more than `limit_bytes`, and the rest was not counted. A file with
 * several names counts once if all its names are below `path`. Only folders' modes change, so
 * that their owner can read them. */
uint64_t tree_measure(const char *path, uint64_t limit_bytes, uint64_t least_bytes);

#endif
