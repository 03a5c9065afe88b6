/* The sensors' process (daemon/sensors/sensors.h): it starts with a query of statistics, and ends when there was none
 * for a minute. Its answers count for the next query. */
#ifndef SPANCL_DAEMON_SENSING_H
#define SPANCL_DAEMON_SENSING_H

#include "daemon/supervisor/supervising.h"

/* A client queries statistics: have the sensors read. */
void sensors_ask(struct supervisor *s);

/* The process has sent something. */
void sensors_read(struct supervisor *s);

bool sensors_ended(struct supervisor *s, pid_t pid);

/* Append what is known about a device, as members of its INFO_HEALTH record. SP_E_NOMEM. */
SP_NODISCARD int sensors_put(const struct supervisor *s, const struct health_device *d,
                             struct buf *b);

#endif
