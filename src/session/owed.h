/* The clocks of a session measure how long the other side has owed bytes, and when that is too
 * long. It owes
 * - the rest of a frame that has begun;
 * - bytes of a bulk lane that it says it has sent (FRAME_PROBE);
 * - any byte on lane 0, while this side expects answers (enum session_expects). A FRAME_PROBE asks
 *   for one in time.
 *
 * A command may take any time, because a probe is answered meanwhile.
 *
 * Any byte restarts a clock. On a bulk lane a byte counts when it has come, even if it can't be
 * handed out yet (session_lane_alive). On lane 0 it counts when it is handed out: there the probes
 * themselves would fill up a record whose bytes were lost.
 *
 * A probe may be queued behind many bytes, and then takes as long as they do. So a side that
 * receives messages, or a part of a frame, acknowledges them in each quarter of the limit.
 *
 * Sans-IO: time is an argument. A clock that ran out gets a last eighth of the limit, so that its
 * driver polls once more. A driver that comes later than that restarts all clocks, because it may
 * not have polled at all. */
#ifndef SPANCL_SESSION_OWED_H
#define SPANCL_SESSION_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct session;

enum {
        OWED_ANSWER = 6, /* any byte on lane 0; each clock before it is one lane's */
        OWED_PROBE,      /* of this side: the next probe */
        OWED_NEWS,       /* of this side: the next acknowledgement */
        OWED_CLOCKS,
};

struct owed_clock {
        bool runs, last; /* last: it ran out once, and has an eighth more */
        uint64_t mark;   /* a count that grows when there is progress */
        uint64_t since_ns;
};

struct owed {
        uint64_t limit_ns; /* 0: there are no clocks */
        uint64_t next_ns;  /* owed_deadline */
        int expects;       /* enum session_expects */
        struct owed_clock clocks[OWED_CLOCKS];
        unsigned notify;  /* bits of lanes that need a FRAME_PROBE */
        bool ask;         /* lane 0's probe asks for an answer */
        const char *text; /* the bytes that were owed too long */
};

/* As session_tick. */
SP_NODISCARD int owed_tick(struct session *s, uint64_t now_ns);

/* Plan a probe, or the answer to one: for lane 0, and each bulk lane on which bytes were sent. */
void owed_notify(struct session *s, bool ask);

/* Lane 0 is down: nothing is owed on any lane. */
void owed_reset(struct owed *o);

#endif
