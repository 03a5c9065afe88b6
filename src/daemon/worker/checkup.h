/* The check of a device. A worker without a session opens the device, moves a few KiB through it,
 * sends the supervisor the result (daemon/supervisor/health.h) and exits. */
#ifndef SPANCL_DAEMON_CHECKUP_H
#define SPANCL_DAEMON_CHECKUP_H

#include <stdbool.h>

#include "config/options.h"

/* Return true if the supervisor wants this worker to make a check. Receives nothing from the
 * control socket. */
bool checkup_is_wanted(void);

/* Check the devices of --devices, one after the other. Returns the process's exit status. The
 * process then ends without freeing anything, because a faulty driver may crash while it frees. */
int checkup_run(const struct config_options *o, const char *scratch_dir);

#endif
