/* How long the threads of sessions keep a core while others want it. */
#ifndef SPANCL_DAEMON_TIME_SLICE_H
#define SPANCL_DAEMON_TIME_SLICE_H

#include "daemon/supervising.h"

/* Sessions beside others take short turns, so that one that keeps the cores busy does not keep one that has little to do
 * waiting for the milliseconds of a usual turn at each of its steps. One alone takes usual turns: its threads would only
 * interrupt each other, and its client. Each is told (CONTROL_SHARED), so that none yields a core to all of the others. To be called when a session begins or ends, or its worker's pid is
 * told. Kernels before 6.12 have one turn for all; workers of another user (--user) keep the usual
 * one where spancld lacks CAP_SYS_NICE, as in some containers. */
void time_slices_share(struct supervisor *s);

#endif
