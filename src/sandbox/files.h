/* The files that a worker can reach (Landlock). */
#ifndef SPANCL_SANDBOX_FILES_H
#define SPANCL_SANDBOX_FILES_H

#include "base/config.h"

/* Restrict this process to what drivers and compilers need: it may write to `scratch_dir` and `cache_dir` (NULL:
 * none), which is made. False: it failed, and the log says why. A kernel without Landlock is said in the log, and
 * `*ret_landlock` is false then. */
bool files_restrict(const struct config_options *o, const char *scratch_dir, const char *cache_dir,
                    bool *ret_landlock);

/* Restrict this process to what resolves names, and to libraries; it may write nowhere. False: as above. */
bool files_restrict_dialler(void);

/* Has a file that resolves names been replaced since, or made? The new one can't be read: Landlock knows files, not their
 * names. Then the dialler is better started anew. */
bool files_outdated(void);

#endif
