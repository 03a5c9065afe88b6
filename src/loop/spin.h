/* Looking again and again for a moment before sleeping: what is waited for is often there sooner than a
 * sleeper wakes up, and who sends to one that is awake need not wake it.
 *
 * Bounded, and only while it pays: it stops as soon as waits turn out to be longer, or when somebody else
 * wants the core (the thread was preempted meanwhile), as a CPU device does. One thread at a time.
 *
 * With two cores somebody else always does: the core is yielded after each look, until that once takes long. With one core, and
 * where several sessions share two (spin_share), it is never done.
 *
 * The bound is longer by SPIN_LONG_BUDGET for what is due: commands run, and the last ones took no longer than that; and
 * while the other side copies bytes through the bounce buffer (conn_is_engaged). */
#ifndef SPANCL_LOOP_SPIN_H
#define SPANCL_LOOP_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/link.h"

enum { SPIN_LONG_BUDGET = 40 };

enum spin_also {
        SPIN_NOTHING, /* nor will there be */
        SPIN_SOON,    /* not yet, but it is due: look there more often than at sockets */
        SPIN_FOUND,   /* look at all again */
};

struct spin {
        uint64_t max_ns;       /* 0: never */
        uint64_t now_ns;       /* how long the next one may take, up to max_ns */
        bool long_budget;      /* and SPIN_LONG_BUDGET times max_ns for what is due */
        unsigned backoff;      /* waits before it may be patient again, or yield, */
        unsigned backoff_next; /* and the next time: more, the more often somebody wants the core */
        unsigned colocated;    /* waits in company of the other side (spin.c) */
        bool gave_up;          /* the present wait's yielding found nothing */
        bool yields;           /* the core, after each look */
        atomic_bool shared;    /* spin_share */
        uint64_t began_ns;
        atomic_uint kicks; /* spin_kick */
        /* Called in turn with poll(2). NULL: nothing else to look at. */
        enum spin_also (*also)(void *arg);
        void *arg;
};

/* What is looked at. */
struct spin_on {
        struct pollfd *fds;
        nfds_t count;
        /* Conns that can be peeked at, and links that can be tried (link_try_begin); their entries are among
         * `fds`. */
        struct conn *const *conns;
        size_t conn_count;
        struct link *const *links;
        size_t link_count;
        bool due; /* somebody waits for it to come */
};

/* For tests: the number of cores that the system would tell. 0: ask it. */
extern unsigned spin_cores;

/* At most `max_ns` each time; the number of cores that this process may run on is `cores`, 0: ask the system. */
void spin_init(struct spin *s, uint64_t max_ns, unsigned cores);

/* Has one of the conns something of what it was asked for (conn_peek)? */
bool spin_peek(struct conn *const *conns, size_t count);

/* From any thread: what is waited for has come nearer. Who spins begins anew. */
static inline void spin_kick(struct spin *s)
{
        if (s->max_ns)
                atomic_fetch_add_explicit(&s->kicks, 1, memory_order_relaxed);
}

/* What was waited for has come: more of it may come soon, however long the wait was. */
static inline void spin_hope(struct spin *s)
{
        if (s->now_ns)
                s->now_ns = s->max_ns;
}

/* Before it is used: never where it would yield. */
static inline void spin_never_yield(struct spin *s)
{
        if (s->yields)
                s->max_ns = 0;
}

/* From any thread: others have the cores, too, of whom it is not worth waiting for each's turn. Not any more. */
static inline void spin_share(struct spin *s, bool shared)
{
        atomic_store_explicit(&s->shared, shared, memory_order_relaxed);
}

/* Might spin_poll try links? */
static inline bool spin_tries(const struct spin *s)
{
        return s->max_ns && (s->now_ns || s->long_budget);
}

/* poll(2) without sleeping, for as long as it seems to pay: its result, or 1 when one of the conns or links
 * has something. Negative: `also` has found something. 0: nothing yet; then the conns are armed, sleep. */
int spin_poll(struct spin *s, const struct spin_on *on);

/* The sleep that followed has ended: learns from how long it was. */
void spin_slept(struct spin *s);

#endif
