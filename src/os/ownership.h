/* Which users can change a file. Configuration counts only if no other user can. Any thread. */
#ifndef SPANCL_OS_OWNERSHIP_H
#define SPANCL_OS_OWNERSHIP_H

#include <stdbool.h>

#include "base/status.h"

enum ownership {
        OWNERSHIP_PRIVATE, /* only root and this user can change it; a private group of the user may, too */
        OWNERSHIP_FOREIGN, /* another user owns it */
        OWNERSHIP_SHARED,  /* other users can change it */
};

/* Find the ownership of an open file, or of a folder. In a folder with the sticky bit other users can't replace a
 * file, so it is private. *ret_user: the owner's number. False: errno gives the reason. */
SP_NODISCARD bool ownership_of_file(int fd, enum ownership *ret, unsigned *ret_user);
SP_NODISCARD bool ownership_of_folder(const char *path, enum ownership *ret, unsigned *ret_user);

/* Return true if the file belongs to a user who has no number in this user namespace (Flatpak, bwrap), as root's
 * files there do, and this process can't write it. */
bool ownership_is_unmapped(const char *path);

#endif
