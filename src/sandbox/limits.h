/* The limits of a worker that need no control group (rlimits), which its children inherit. */
#ifndef SPANCL_SANDBOX_LIMITS_H
#define SPANCL_SANDBOX_LIMITS_H

#include <stdbool.h>

#include "base/config.h"

/* The most that a session's processes may have together. Memory: --session-memory, a quarter and 128 MiB, because RLIMIT_DATA does
 * not count everything. Processes and threads: --session-processes and two for each core. 0: no limit. */
uint64_t limits_memory_bytes(const struct config_options *o);
uint64_t limits_task_count(const struct config_options *o);

/* Limit this process. `own_user`: no other process has its user, so a limit of that user's processes is one of this
 * session. A limit that can't be set is said in the log. */
void limits_set(const struct config_options *o, bool own_user);

#endif
