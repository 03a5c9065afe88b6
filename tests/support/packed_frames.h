/* Packed frames without a compressor. The wire carries a number and some padding; the receiver
 * looks the bytes up by the number. So frames of any data can be packed, to any size. */
#ifndef SPANCL_TESTS_PACKED_FRAMES_H
#define SPANCL_TESTS_PACKED_FRAMES_H

#include "session/session.h"
#include "support/random.h"

/* Zeroed memory: none. */
struct packed_frames {
        struct packed_frames_item *items;
        size_t count, cap;
};

void packed_frames_fini(struct packed_frames *p);

/* After session_lane_pending: pack the frame that it gave, or not, and let the following ones be
 * small, or not. True: call session_lane_pending again. */
bool packed_frames_pack(struct packed_frames *p, struct rng *rng, struct session *s, unsigned lane);

/* After session_lane_received, with its result: unpack the frame that may have come. */
int packed_frames_unpack(struct packed_frames *p, struct session *s, unsigned lane, int r);

#endif
