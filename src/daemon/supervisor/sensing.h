/* The sensors' process (daemon/sensors/sensors.h): it starts with a query of statistics or with a session, and ends
 * when it was not asked for a minute. Its answers count for the next query. */
#ifndef SPANCL_DAEMON_SENSING_H
#define SPANCL_DAEMON_SENSING_H

#include "daemon/supervisor/supervising.h"

/* A client queries statistics: have the sensors read. */
void sensors_ask(struct supervisor *s);

/* The process has sent something. */
void sensors_read(struct supervisor *s);

/* Have them read now. False: they can't. */
bool sensors_ask_now(struct supervisor *s);

bool sensors_ended(struct supervisor *s, pid_t pid);

/* Go through the lines of the readings. NULL: there is no further one. */
const char *sensors_line(const char **at);

/* Get the energy of a device's line. False: it is not known. */
bool sensors_energy(const char *line, uint64_t *ret_uj);

/* Return the index of the device's line, without those of processors; -1: it has none. */
int sensors_find(const struct supervisor *s, const struct health_device *d);

/* Append what is known about a device, as members of its INFO_HEALTH record. SP_E_NOMEM. */
SP_NODISCARD int sensors_put(const struct supervisor *s, const struct health_device *d,
                             struct buf *b);

#endif
