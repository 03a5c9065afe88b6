/* The supervisor's part in measuring sessions (daemon/meter.h): it starts the meter with the first session, ends it with the last
 * one, starts another one when it has ended by itself, and ends the sessions that exceed their limits. */
#ifndef SPANCL_DAEMON_METERING_H
#define SPANCL_DAEMON_METERING_H

#include "daemon/supervising.h"

/* Have a meter if there are sessions and limits to measure them by, and tell it of the new ones. */
void meter_provide(struct supervisor *s);

/* The time of meter_provide's next start; UINT64_MAX: none. */
uint64_t meter_deadline(const struct supervisor *s);

/* The meter has said something. */
void meter_hear(struct supervisor *s);

/* A process has ended. True: it was the meter. */
bool meter_ended(struct supervisor *s, pid_t pid);

/* End the meter. */
void meter_stop(struct supervisor *s);

#endif
