/* The meter: a process beside the supervisor, while there are sessions, that measures what each of them holds and tells the
 * supervisor which one exceeds its limits. It exists because control groups count no disk space, and are not everywhere.
 *
 * One thread measures processes (daemon/usage.h) and judges; another one walks the folders, so that a slow disk delays nothing else.
 * Each session is measured once a second, less often if that takes long, and each measurement is bounded. The meter ends
 * nothing itself: it tells a number that the supervisor has given, so a reused process number harms nobody. */
#ifndef SPANCL_DAEMON_METER_H
#define SPANCL_DAEMON_METER_H

#include <stdint.h>

#include "base/config.h"

/* What a session exceeds: the byte behind its number in CONTROL_OVER. */
enum meter_verdict {
        METER_MEMORY = 'm',
        METER_TASKS = 'p',
        METER_DISK = 'd',
        METER_FILES = 'f',  /* USAGE_FILES_MAX, USAGE_MAPPINGS_MAX */
        METER_HIDDEN = 'h', /* it keeps the meter from measuring it */
        METER_CACHE =
                'c', /* not its own fault, perhaps: its client's caches are to be trimmed now */
};

/* Be that process, with CONTROL_FD. `memory_bytes`, `task_count`: limits of a session as texts; "0": it is not measured. */
int meter_main(const struct config_options *o, const char *memory_bytes, const char *task_count);

#endif
