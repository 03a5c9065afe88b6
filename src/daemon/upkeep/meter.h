/* The meter: a process beside the supervisor that measures each session's use of memory, tasks
 * and disk. It runs while there are sessions, and notifies the supervisor when one exceeds its
 * limits. It is needed because control groups count no disk space, and some hosts have none.
 *
 * One thread measures processes (daemon/system/usage.h) and judges. Another thread walks the folders, so
 * a slow disk delays nothing else. The meter measures each session once a second, less often if
 * that takes long. Each measurement is bounded. The meter itself ends no session: it reports a
 * number that the supervisor has chosen, so a reused process number harms no process. */
#ifndef SPANCL_DAEMON_METER_H
#define SPANCL_DAEMON_METER_H

#include <stdint.h>

#include "config/options.h"

/* The limit that a session exceeds: the byte behind its number in CONTROL_OVER. */
enum meter_verdict {
        METER_MEMORY = 'm',
        METER_TASKS = 'p',
        METER_DISK = 'd',
        METER_FILES = 'f',  /* USAGE_FILES_MAX, USAGE_MAPPINGS_MAX */
        METER_HIDDEN = 'h', /* the session keeps the meter from measuring it */
        /* Perhaps not its own fault: its client's caches have to be trimmed now. */
        METER_CACHE = 'c',
};

/* Run the meter, with CONTROL_FD. `memory_bytes`, `task_count`: limits of a session as texts;
 * "0": do not measure it. */
int meter_main(const struct config_options *o, const char *memory_bytes, const char *task_count);

#endif
