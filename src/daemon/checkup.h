/* The check of a device: a worker that gets no session opens the device, moves a few KiB through it, tells the
 * supervisor (daemon/health.h) and ends. */
#ifndef SPANCL_DAEMON_CHECKUP_H
#define SPANCL_DAEMON_CHECKUP_H

#include <stdbool.h>

#include "base/config.h"

/* Does the supervisor want a check of this worker? Takes nothing from the control socket. */
bool checkup_is_wanted(void);

/* Check the devices of --devices, one after the other. Returns the process's exit status. The process then ends without
 * freeing anything: a driver that is out of order may not survive that. */
int checkup_run(const struct config_options *o, const char *scratch_dir);

#endif
