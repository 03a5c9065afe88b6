/* Files of the configuration. A file counts only if nobody but root and this user can change
 * it; a private group of the user may write it, too. Any thread. */
#ifndef SPANCL_CONFIG_FILES_H
#define SPANCL_CONFIG_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum {
        CONFIG_FILE_MAX = 65536, /* bytes of one file */
        CONFIG_FILES_MAX = 32,   /* files of one folder of drop-ins */
        CONFIG_PATH_MAX = 1024,  /* with the NUL, as of all paths here */
        CONFIG_NAME_ROOM = 128,  /* of a path, for its part behind the user's folder */
        CONFIG_REASON_MAX = 1200,
};

#define CONFIG_SYSTEM_FOLDER "/etc/spancl"
#define CONFIG_CLIENT_FILE   "client.conf"

/* Read the file into `ret`, of at most `size` bytes, with a NUL behind it. Returns the length of its
 * text. SP_E_NOENT: there is no file. SP_E_AUTH: others can change the file or its folder. SP_E_LIMIT,
 * SP_E_INVAL: it is too large, or no text. `reason` is a sentence that names the file, except for
 * SP_E_NOENT. */
SP_NODISCARD int config_file_read(const char *path, char *ret, size_t size,
                                  char reason[CONFIG_REASON_MAX]);

/* Replace the file by `size` bytes of `data`; if it is a symbolic link, the file behind it. The mode of the
 * old file remains; a new one is the user's alone (0600), as are folders that have to be made (0700).
 * SP_E_INVAL: it can't be written; `reason` is a sentence that names the file. */
SP_NODISCARD int config_file_write(const char *path, const void *data, size_t size,
                                   char reason[CONFIG_REASON_MAX]);

/* Find the files *.conf of a folder, in the order of their names; hidden ones do not count. Returns
 * their number; 0: there is no folder. If there are more than CONFIG_FILES_MAX, `ret` has some of them. */
size_t config_folder_list(const char *folder, char ret[CONFIG_FILES_MAX][CONFIG_PATH_MAX]);

#endif
