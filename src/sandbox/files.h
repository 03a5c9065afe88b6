/* The files that a worker can reach (Landlock). */
#ifndef SPANCL_SANDBOX_FILES_H
#define SPANCL_SANDBOX_FILES_H

#include "sandbox/paths.h"

/* Restrict this process to these. False: it failed, and the log says why. A kernel without Landlock is said in the log. */
bool files_restrict(const struct paths *p);

/* Restrict this process to what resolves names, and to libraries; it may write nowhere. False: as above. */
bool files_restrict_dialler(void);

/* Has a file that resolves names been replaced since, or made? The new one can't be read: Landlock knows files, not their
 * names. Then the dialler is better started anew. */
bool files_outdated(void);

#endif
