/* The clocks of a session: since when the other side owes something, and when that is too long. It owes
 * - the rest of a frame that has begun;
 * - bytes of a bulk lane that it says it has sent (FRAME_PROBE);
 * - while this side counts on answers (enum session_expects): any byte on lane 0. It is asked for one in time, by a FRAME_PROBE.
 * A command may take as long as it likes: a probe is answered meanwhile.
 * Any byte begins a clock anew. On a bulk lane that is one which has come, though it can't be handed out yet (session_lane_heard);
 * on lane 0 one which was handed out, for there the probes themselves would fill up a record whose bytes were lost.
 *
 * A probe may be behind much that was sent before, and takes as long as that. So a side that gets messages, or a part of a frame,
 * says so each quarter of the limit.
 *
 * Sans-IO: time is an argument. A clock that ran out gets a last eighth of the limit, so that its driver has looked for
 * bytes once more; and a driver that comes late by more than that begins all clocks anew, for it may not have looked at all. */
#ifndef SPANCL_SESSION_OWED_H
#define SPANCL_SESSION_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct session;

enum {
        OWED_ANSWER = 6, /* any byte on lane 0; the clocks before it: of what each lane owes */
        OWED_PROBE,      /* of this side: the next probe */
        OWED_NEWS,       /* of this side: that messages come */
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
        unsigned tell;    /* bits of lanes of which a FRAME_PROBE is to be sent */
        bool ask;         /* that of lane 0 asks for an answer */
        const char *text; /* what was owed too long */
};

/* As session_tick. */
SP_NODISCARD int owed_tick(struct session *s, uint64_t now_ns);

/* A probe is to be sent, or an answer: of lane 0 and of each bulk lane on which something was sent. */
void owed_tell(struct session *s, bool ask);

/* Lane 0 is down: nothing is owed on any lane. */
void owed_reset(struct owed *o);

#endif
