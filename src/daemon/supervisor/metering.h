/* The supervisor's part in measuring sessions (daemon/upkeep/meter.h). It starts the meter with the
 * first session, and ends it with the last one. If the meter ends by itself, it starts another.
 * It ends the sessions that exceed their limits. */
#ifndef SPANCL_DAEMON_METERING_H
#define SPANCL_DAEMON_METERING_H

#include "daemon/supervisor/supervising.h"

/* Start a meter if there are sessions and limits that need one, and send it the new sessions. */
void meter_provide(struct supervisor *s);

/* The time of meter_provide's next start; UINT64_MAX: none. */
uint64_t meter_deadline(const struct supervisor *s);

/* Receive the meter's messages. */
void meter_read(struct supervisor *s);

/* A process has ended. Returns true if it was the meter. */
bool meter_ended(struct supervisor *s, pid_t pid);

#endif
