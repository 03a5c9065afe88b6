/* Folders of the file system. */
#ifndef SPANCL_BASE_FOLDER_H
#define SPANCL_BASE_FOLDER_H

#include "base/status.h"

/* Make the folder, and those above it that are missing, for this user alone. It may exist. SP_E_LIMIT: errno says why. */
SP_NODISCARD int folder_make(const char *path);

#endif
