/* The time slices of sessions' threads: how long one keeps a core while others want it; and their
 * priority. */
#ifndef SPANCL_DAEMON_TIME_SLICE_H
#define SPANCL_DAEMON_TIME_SLICE_H

#include "daemon/supervisor/supervising.h"

/* Set the time slices of all sessions, and notify each of its neighbours (CONTROL_SHARED). The
 * caller does so when a session begins or ends, or when a worker's pid arrives.
 *
 * Sessions beside others get short slices. A session with little to do then does not wait at each
 * step for the usual milliseconds of a busy one. A single session gets usual slices, because its
 * threads would only interrupt each other and its client. The notification keeps a session from
 * yielding its core to all others.
 *
 * Kernels before 6.12 have one slice for all. Workers of another user (--user) keep the usual
 * slice where spancld lacks CAP_SYS_NICE, as in some containers. */
void time_slices_share(struct supervisor *s);

/* Set the priority of the threads of a worker, from -20, the highest, to 19. The log notes threads
 * that keep theirs. */
void time_slices_prioritize(const struct worker *w, int nice);

#endif
