#include "session/owed.h"

#include "session/state.h"

_Static_assert((int)OWED_ANSWER == (int)SESSION_LANES, "one clock for each lane comes before it");

enum {
        LAST_SHARE = 8, /* the last chance, as a part of the limit */
        NEWS_SHARE = 4, /* time until received messages are acknowledged, as such a part */
};

void owed_reset(struct owed *o)
{
        for (unsigned i = 0; i < OWED_CLOCKS; i++)
                o->clocks[i] = (struct owed_clock){ 0 };
        o->next_ns = UINT64_MAX;
        o->notify = 0;
        o->ask = false;
}

void owed_notify(struct session *s, bool ask)
{
        s->owed.ask |= ask;
        s->owed.notify |= 1;
        for (unsigned i = 1; i < s->used; i++)
                if (s->lanes[i].up && s->lanes[i].sent)
                        s->owed.notify |= 1u << i;
}

/* Does this side read the lane, and does the other side owe it bytes there? */
static bool lane_owes(const struct session *s, unsigned lane)
{
        const struct lane *l = &s->lanes[lane];
        if (!l->up)
                return false;
        if (!lane)
                return s->in.size > s->in_head || s->pieces.frame_left;
        return !l->rx.waiting && !l->packed_frame.closed &&
               (l->rx.header_have || l->claimed > l->received);
}

/* Are sent messages or transfers not acknowledged? */
static bool awaits_ack(const struct session *s)
{
        if (outbox_kept(&s->out) || !list_empty(&s->unacked) || !list_empty(&s->stalled))
                return true;
        return !list_empty(&s->bulks);
}

static bool counts_on_answers(const struct session *s)
{
        return s->lanes[0].up && (s->owed.expects == SESSION_EXPECTS_ANSWERS ||
                                  (s->owed.expects == SESSION_EXPECTS_ACKS && awaits_ack(s)));
}

static void run(struct owed_clock *k, bool runs, uint64_t mark, uint64_t now_ns)
{
        if (runs && k->runs && k->mark == mark)
                return;
        *k = (struct owed_clock){ .runs = runs, .mark = mark, .since_ns = now_ns };
}

static void begin_anew(struct owed *o, uint64_t now_ns)
{
        for (unsigned i = 0; i < OWED_CLOCKS; i++) {
                o->clocks[i].since_ns = now_ns;
                o->clocks[i].last = false;
        }
}

/* Has the clock run out, after its last chance? */
static bool is_over(const struct owed *o, struct owed_clock *k, uint64_t now_ns)
{
        if (!k->runs || now_ns - k->since_ns < o->limit_ns)
                return false;
        if (k->last)
                return true;
        k->last = true;
        k->since_ns = now_ns - o->limit_ns + o->limit_ns / LAST_SHARE;
        return false;
}

static uint64_t length_of(const struct owed *o, unsigned clock)
{
        if (clock == OWED_NEWS)
                return o->limit_ns / NEWS_SHARE;
        return clock == OWED_PROBE ? o->limit_ns / 2 : o->limit_ns;
}

/* Is a clock of this side due? Then it restarts. */
static bool is_due(struct owed *o, unsigned clock, uint64_t now_ns)
{
        struct owed_clock *k = &o->clocks[clock];
        if (!k->runs || now_ns - k->since_ns < length_of(o, clock))
                return false;
        k->since_ns = now_ns;
        return true;
}

static uint64_t next_of(const struct owed *o)
{
        uint64_t next = UINT64_MAX;
        for (unsigned i = 0; i < OWED_CLOCKS; i++) {
                const struct owed_clock *k = &o->clocks[i];
                uint64_t at = k->since_ns + length_of(o, i);
                if (k->runs && at < next)
                        next = at;
        }
        return next;
}

int owed_tick(struct session *s, uint64_t now_ns)
{
        struct owed *o = &s->owed;
        bool answers = counts_on_answers(s);
        if (!o->limit_ns)
                return 0;
        if (now_ns > o->next_ns && now_ns - o->next_ns > o->limit_ns / LAST_SHARE)
                begin_anew(o, now_ns);
        for (unsigned i = 0; i < SESSION_LANES; i++)
                run(&o->clocks[i], lane_owes(s, i),
                    s->lanes[i].received + (i ? s->lanes[i].alive : 0), now_ns);
        run(&o->clocks[OWED_ANSWER], answers, s->lanes[0].received, now_ns);
        run(&o->clocks[OWED_PROBE], answers, 0, now_ns);
        run(&o->clocks[OWED_NEWS], s->in_unacked || lane_owes(s, 0), 0, now_ns);
        for (unsigned i = 0; i <= OWED_ANSWER; i++)
                if (is_over(o, &o->clocks[i], now_ns)) {
                        o->text = i == OWED_ANSWER ? "no answer" : "the rest of a frame is missing";
                        return SP_E_LINK;
                }
        if (is_due(o, OWED_PROBE, now_ns))
                owed_notify(s, true);
        if (is_due(o, OWED_NEWS, now_ns))
                o->notify |= 1;
        o->next_ns = next_of(o);
        return 0;
}
