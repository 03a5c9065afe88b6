/* The restriction of the files that a worker or the dialler can reach (Landlock). */
#ifndef SPANCL_SANDBOX_FILES_H
#define SPANCL_SANDBOX_FILES_H

#include "sandbox/paths.h"

/* Restrict this process to these paths. False: it failed, and the log says why. If the kernel has
 * no Landlock, the log says so. */
bool files_restrict(const struct paths *p);

/* Restrict this process to reading libraries and the files that name resolution needs. False: as
 * above. */
bool files_restrict_dialler(void);

/* Return true if a file of name resolution was made or replaced since. Landlock knows files, not
 * their names, so this process can't read the new one. Then the supervisor should restart the
 * dialler. */
bool files_outdated(void);

#endif
