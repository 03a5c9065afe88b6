/* Bulk transfers going out: which bytes of them the next frame on a lane takes, which are acknowledged, and what is sent
 * again. session_bulk_*, and session_lane_* of packed frames that are sent, are here, too. */
#ifndef SPANCL_SESSION_BULK_H
#define SPANCL_SESSION_BULK_H

#include "session/state.h"

void bulk_init(struct session *s);

/* The session ended with `s->status`: so do all transfers. */
void bulk_fini(struct session *s);

/* session_end: those that no lane reads from end now. */
void bulk_give_up(struct session *s);

/* As session_lane_has_pending, session_lane_pending and session_lane_sent, on a lane from 1 on. */
bool bulk_has_pending(const struct session *s, unsigned lane);
int bulk_pending(struct session *s, struct lane *l, struct iovec *ret, int max);
void bulk_sent(struct session *s, struct lane *l, size_t size);

/* What the lane was sending is cut off: the rest is framed again, or, after session_end, the transfer is over. */
void bulk_cut(struct session *s, struct lane *l);

/* The other side has the transfer's bytes below `received`. */
void bulk_acked(struct session *s, uint64_t transfer, uint64_t received);

/* Send again what is not acknowledged, the oldest first. */
void bulk_restart(struct session *s);

#endif
