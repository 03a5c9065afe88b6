/* Outgoing bulk transfers. This chooses the bytes of the next frame on a lane, keeps account of
 * acknowledged ones, and sends others again. It also has session_bulk_*, and session_lane_* for
 * sending packed frames. */
#ifndef SPANCL_SESSION_BULK_H
#define SPANCL_SESSION_BULK_H

#include "session/state.h"

void bulk_init(struct session *s);

/* The session ended with `s->status`: end all transfers with it. */
void bulk_fini(struct session *s);

/* session_end: end the transfers from which no lane reads now. */
void bulk_give_up(struct session *s);

/* As session_lane_has_pending, session_lane_pending and session_lane_sent, on a lane from 1 on. */
bool bulk_has_pending(const struct session *s, unsigned lane);
int bulk_pending(struct session *s, struct lane *l, struct iovec *ret, int max);
void bulk_sent(struct session *s, struct lane *l, size_t size);

/* The frame on the lane is cut off. Frame the rest again; after session_end the transfer is over. */
void bulk_cut(struct session *s, struct lane *l);

/* The other side has the transfer's bytes below `received`. */
void bulk_acked(struct session *s, uint64_t transfer, uint64_t received);

/* Send all unacknowledged bytes again, the oldest transfer first. */
void bulk_restart(struct session *s);

#endif
