/* The state of a session, for the files that implement it: outbox (outgoing messages), bulk
 * (outgoing transfers), incoming (both, received), session (joins these). */
#ifndef SPANCL_SESSION_STATE_H
#define SPANCL_SESSION_STATE_H

#include "session/outbox.h"
#include "session/owed.h"
#include "session/packed_frame.h"
#include "session/pieces.h"
#include "session/session.h"

/* The bulk frame being received on a lane. */
struct receiving {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t header_have;
        struct frame frame;
        uint64_t offset; /* of the next byte in the transfer */
        size_t left;     /* payload bytes to come */
        uint8_t *place;  /* of the next `placed` bytes */
        size_t placed;
        uint64_t run; /* offset where the bytes placed in one piece began */
        bool waiting;
};

/* The part of a bulk frame that had arrived when its connection was lost. Bytes [run, end) are in
 * their place, but were not reported. */
struct remnant {
        uint64_t transfer, run, end; /* transfer 0: none */
};

struct lane {
        bool up;
        /* Lanes from 1 on. */
        struct sending tx;
        struct receiving rx;
        struct remnant remnant;
        struct packed_frame packed_frame;
        /* Bytes since the lane is up: handed to the connection (not on lane 0), received, and sent
         * by the other side as it says. */
        uint64_t sent, received, claimed;
        uint64_t alive; /* session_lane_alive */
        bool packs;     /* FRAME_PACKED may be on it */
        bool small;     /* session_lane_small */
};

struct session {
        struct session_params params;
        int status;    /* 0, or why it ended */
        bool given_up; /* session_end */
        struct session_stats stats;

        struct outbox out;
        struct owed owed;

        /* Incoming messages. */
        struct buf in;
        size_t in_head;
        uint64_t in_next;
        size_t in_unacked; /* bytes received since the last ack we sent */
        struct pieces pieces;

        /* Each outgoing transfer is in one of these lists. */
        struct list bulks;   /* with bytes that may be framed now, in order of start */
        struct list stalled; /* all ready bytes are framed; more will be ready */
        struct list unacked; /* framed whole, not acknowledged */
        struct lane lanes[SESSION_LANES];
        unsigned used;       /* session_lanes_used */
        unsigned shared;     /* session_share_lanes; 0: all */
        uint64_t generation; /* of the connections */
        bool bulk_held;      /* until the other side has said which bytes it has */
};

#endif
