/* What is received: frames taken apart into messages, and bulk data on its way to its place. session_lane_* and
 * session_bulk_* of receiving are here, too. */
#ifndef SPANCL_SESSION_INCOMING_H
#define SPANCL_SESSION_INCOMING_H

#include "session/state.h"

void incoming_fini(struct session *s);

/* The lane's connection is lost, a bulk frame perhaps in its midst: what there is of it is kept account of. */
void incoming_cut(struct session *s, unsigned lane);

/* That is reported. Calls ops. SP_E_*. */
SP_NODISCARD int incoming_report_cut(struct session *s, struct lane *l);

#endif
