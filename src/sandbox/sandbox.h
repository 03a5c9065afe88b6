/* The walls that a worker puts around itself before it serves anybody: they leave only what drivers and compilers need. Each
 * measure is taken where the kernel has it. No state. */
#ifndef SPANCL_SANDBOX_SANDBOX_H
#define SPANCL_SANDBOX_SANDBOX_H

#include "base/config.h"
#include "sandbox/user.h"

/* Shut the rest of the host out: a root folder and a user of its own where the host can, files (Landlock), system calls
 * (seccomp), limits (rlimits). To be called before there are threads, behind user_lay_aside and when its caches are known. It may
 * write to `scratch_dir` and `cache_dir` (NULL: none), which is made. False: it is not possible, and the log says why.
 * `ret_refusals` as of calls_restrict. */
bool sandbox_enter(struct user *u, const struct config_options *o, const char *scratch_dir,
                   const char *cache_dir, int *ret_refusals);

/* Does a worker need the host's network? Only for a fabric: the dialler makes its links to other servers. Without it a worker
 * makes no sockets. */
bool worker_needs_network(const struct config_options *o);

/* Shut the dialler (daemon/dialler.h) in: it reads what names are resolved with and libraries, writes nowhere, and has none
 * of root's powers. False: it is not possible, and the log says why. */
bool sandbox_enter_dialler(const struct config_options *o);

#endif
