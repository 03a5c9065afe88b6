/* The limits of a worker that need no control group (rlimits). Its children inherit them. */
#ifndef SPANCL_SANDBOX_LIMITS_H
#define SPANCL_SANDBOX_LIMITS_H

#include <stdbool.h>

#include "config/options.h"

/* Return the limit for all processes of a session together; 0: no limit. Memory:
 * --session-memory, a quarter more, and 128 MiB, because RLIMIT_DATA does not count all memory.
 * Processes and threads: --session-processes, and two for each core. */
uint64_t limits_memory_bytes(const struct config_options *o);
uint64_t limits_task_count(const struct config_options *o);

/* Limit this process. `own_user`: no other process has its user, so a limit on that user's
 * processes is one on this session. The log names a limit that can't be set. */
void limits_set(const struct config_options *o, bool own_user);

#endif
