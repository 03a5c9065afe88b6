/* The energy of sessions. While there are sessions, the supervisor takes a sample twice a second: each worker tells for
 * how long it has used each device, then the sensors read the devices' counters of energy. The energy of a device since
 * the sample before is divided among the sessions by their device time. So energy of idle times is billed to nobody,
 * and a session's joules are an estimate: a device may take more power for one session than for another.
 *
 * A session that falsifies its device time is at most billed as busy for the whole time, or not at all. On a host
 * without such counters there are no samples. Part of the supervisor; its thread. */
#ifndef SPANCL_DAEMON_ENERGY_H
#define SPANCL_DAEMON_ENERGY_H

#include "daemon/supervisor/supervising.h"

/* The worker has got a session. */
void energy_begin(struct supervisor *s, struct worker *w);

/* A worker with a session has sent CONTROL_USE. */
void energy_receive(struct supervisor *s, struct worker *w, const struct control *c);

/* The worker's session has ended. Write its audit line with its joules between `head` and `tail`, when the last of them
 * are known. */
void energy_end(struct supervisor *s, struct worker *w, const char *head, const char *tail);

/* The worker is freed. */
void energy_drop(struct worker *w);

/* The sensors have sent new readings; or they have ended, so that their counters may begin anew. */
void energy_read(struct supervisor *s);
void energy_sensors_gone(struct supervisor *s);

/* Take the samples that are due. */
void energy_provide(struct supervisor *s);
uint64_t energy_deadline(const struct supervisor *s);

/* Append the device's energy as a member of its INFO_HEALTH record. SP_E_NOMEM. */
SP_NODISCARD int energy_put_device(const struct supervisor *s, const struct health_device *d,
                                   struct buf *b);

/* Append an INFO_ENERGY record for each device that the session has used. SP_E_NOMEM. */
SP_NODISCARD int energy_put_session(const struct supervisor *s, const struct worker *w,
                                    struct buf *b);

/* Write the audit lines that wait, and free all. */
void energy_fini(struct supervisor *s);

#endif
