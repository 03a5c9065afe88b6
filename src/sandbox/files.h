/* The restriction of the files that a worker, the dialler or media-io can reach (Landlock). */
#ifndef SPANCL_SANDBOX_FILES_H
#define SPANCL_SANDBOX_FILES_H

#include "sandbox/paths.h"

/* Restrict this process to these paths. False: it failed, and the log says why. If the kernel has
 * no Landlock, the log says so. */
bool files_restrict(const struct paths *p);

/* Restrict this process to reading libraries and the files that name resolution needs. False: as
 * above. */
bool files_restrict_dialler(void);

/* Restrict this process to reading these files, and to making and writing files in these folders. Both lists end with
 * NULL. `network`: it may also read what the dialler may, and certificates of authorities. False: as above. */
bool files_restrict_streams(const char *const *files, const char *const *folders, bool network);

/* Forbid this process to open a file for writing, and to make one. False: as above. */
bool files_deny_writing(void);

/* Return true if a file of name resolution was made or replaced since. Landlock knows files, not
 * their names, so this process can't read the new one. Then the supervisor should restart
 * this process. */
bool files_outdated(void);

#endif
