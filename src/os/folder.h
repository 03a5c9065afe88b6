/* Folders of the file system. */
#ifndef SPANCL_OS_FOLDER_H
#define SPANCL_OS_FOLDER_H

#include "base/status.h"

/* Make the folder and its missing parents, for this user alone. It may exist. SP_E_LIMIT: errno
 * gives the reason. */
SP_NODISCARD int folder_make(const char *path);

#endif
