/* Incoming bytes: takes frames apart into messages, and moves bulk data to its place. It also has
 * session_lane_* and session_bulk_* for receiving. */
#ifndef SPANCL_SESSION_INCOMING_H
#define SPANCL_SESSION_INCOMING_H

#include "session/state.h"

void incoming_fini(struct session *s);

/* The lane's connection is lost, perhaps inside a bulk frame: remember the bytes of it that
 * arrived. */
void incoming_cut(struct session *s, unsigned lane);

/* Report these bytes. Calls ops. SP_E_*. */
SP_NODISCARD int incoming_report_cut(struct session *s, struct lane *l);

/* The header of a frame of lane 0 came. Calls ops. SP_E_*. */
SP_NODISCARD int incoming_frame(struct session *s, const struct frame *f);

/* The next message is complete. Calls ops. SP_E_*. */
SP_NODISCARD int incoming_message(struct session *s, struct bytes msg);

/* Bytes of a transfer came inline. Calls ops. SP_E_*. */
SP_NODISCARD int incoming_inline(struct session *s, uint64_t transfer, uint64_t offset,
                                 struct bytes data);

#endif
