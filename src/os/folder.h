/* Folders of the file system. */
#ifndef SPANCL_OS_FOLDER_H
#define SPANCL_OS_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Make the folder and its missing parents, for this user alone. It may exist. SP_E_LIMIT: errno
 * gives the reason. */
SP_NODISCARD int folder_make(const char *path);

/* Make a new folder in one that exists, for this user alone. False: errno gives the reason. */
SP_NODISCARD bool folder_make_new(const char *path);

/* The same with a name of its own. `path` ends with "XXXXXX", which letters replace.
 * False: errno gives the reason. */
SP_NODISCARD bool folder_make_unique(char *path);

/* Remove the folder with all that is in it. Entries that can't be removed stay. */
void folder_remove(const char *path);

/* Return true if nobody can change the file system that the folder is in; false also if that is not known. */
bool folder_is_read_only(const char *path);

/* Get the bytes that this user can still write into the folder's file system, and whether it has room for further
 * names. False: errno gives the reason. */
bool folder_room(const char *path, uint64_t *ret_bytes, bool *ret_names);

/* Return true if this user may make files in the folder. */
bool folder_takes_files(const char *path);

/* Lock the folder against other programs that lock it, and wait for them up to `ms`. Returns a descriptor, whose close
 * ends the lock; -1: errno gives the reason, EWOULDBLOCK if another program has it. A file system without locks locks
 * nothing. */
SP_NODISCARD int folder_lock(const char *path, unsigned ms);

/* Return true if it is a folder. */
bool folder_exists(const char *path);

/* Return the path of the current folder, for the caller to free(). NULL: it has none, or out of
 * memory. */
SP_NODISCARD char *folder_current(void);

struct folder_file {
        const char *name; /* without its folder */
        uint64_t size;
        uint64_t changed_ns; /* by clock_wall_ns */
};

/* Call `each` for every regular file in the folder, in any order, until it returns non-zero. `each`
 * may remove the file. Returns the last result, or SP_E_NOENT: the folder can't be read. */
SP_NODISCARD int folder_files(const char *path,
                              int (*each)(void *user, const struct folder_file *f), void *user);

/* Call `each` for the name of every entry in the folder, in any order, "." and ".." too. SP_E_NOENT: the folder
 * can't be read. */
int folder_names(const char *path, void (*each)(void *user, const char *name), void *user);

#endif
