/* What a worker may do to the host, before it serves anybody: only what drivers and compilers need. Each
 * measure is taken where the kernel has it. No state. */
#ifndef SPANCL_DAEMON_SANDBOX_H
#define SPANCL_DAEMON_SANDBOX_H

#include "base/config.h"

/* Become the user that --user names, or drop root's powers: the first thing that a worker does. `scratch_dir`
 * becomes that user's. False: it is not possible, and the log says why. */
bool sandbox_user(const struct config_options *o, const char *scratch_dir);

/* Shut the rest of the host out: files (Landlock), system calls (seccomp), memory (rlimits). To be called
 * before there are threads. It may write to `scratch_dir` and `cache_dir` (NULL: none), which is made. False: as
 * above. */
bool sandbox_enter(const struct config_options *o, const char *scratch_dir, const char *cache_dir);

#endif
