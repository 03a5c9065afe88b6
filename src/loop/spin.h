/* Spinning: polling in a loop for a moment before the thread sleeps. An awaited message often
 * arrives sooner than a sleeper wakes up, and a sender need not wake a thread that is awake.
 *
 * Spinning is bounded, and done only while it pays. It stops as soon as waits turn out to be
 * longer. It stops when another thread wants the core (this thread was preempted meanwhile), as a
 * CPU device does. One thread at a time.
 *
 * With two cores another thread always wants the core. Then the core is yielded after each poll,
 * until a yield once takes long. With one core there is no spinning. The same holds if several
 * sessions share two cores (spin_share).
 *
 * The bound is SPIN_LONG_BUDGET times longer for an event that is due: commands run, and the last
 * ones took no longer than that. It is longer, too, while the other side copies bytes through the
 * bounce buffer (conn_is_engaged).
 *
 * Anticipation. A program that runs kernels of ten milliseconds sleeps as long each time. A core that
 * wakes up from such a sleep is slow: it needs some 60 us to wake up, and executes the first
 * commands at a third of its speed. So spin_sleep wakes up a little earlier than the last two sleeps
 * ended, and spins until the event comes. */
#ifndef SPANCL_LOOP_SPIN_H
#define SPANCL_LOOP_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/link.h"

enum { SPIN_LONG_BUDGET = 40 };

enum spin_also {
        SPIN_NOTHING, /* nothing, and nothing is due */
        SPIN_SOON,    /* not yet, but it is due: poll `also` more often than sockets */
        SPIN_FOUND,   /* poll everything again */
};

struct spin {
        uint64_t max_ns;  /* 0: never */
        uint64_t now_ns;  /* how long the next spin may take, up to max_ns */
        bool long_budget; /* and SPIN_LONG_BUDGET times max_ns for an event that is due */
        unsigned backoff; /* waits before it may be patient again, or yield */
        unsigned
                backoff_next; /* the next value of `backoff`: the more often others want the core, the higher */
        unsigned colocated; /* waits on the same core as the other side (spin.c) */
        bool gave_up;       /* the present wait's yielding found nothing */
        bool yields;        /* the core is yielded after each poll */
        struct {
                uint64_t last_ns; /* how long the last long wait took */
                uint64_t wait_ns; /* how long the next one is expected to take; 0: not known */
        } expect;
        atomic_bool shared; /* spin_share */
        uint64_t began_ns;
        atomic_uint kicks; /* spin_kick */
        /* Called in turn with poll(2). NULL: nothing else to poll. */
        enum spin_also (*also)(void *arg);
        void *arg;
};

/* The descriptors, conns and links that a thread polls. */
struct spin_on {
        struct pollfd *fds;
        nfds_t count;
        /* Conns that can be peeked at, and links that can be tried (link_try_begin). Their entries
         * are among `fds`. */
        struct conn **conns;
        size_t conn_count;
        struct link **links;
        size_t link_count;
        bool due; /* an event is due: somebody waits for it */
};

/* For tests: the number of cores, instead of the system's. 0: ask the system. */
extern unsigned spin_cores;

/* Initialise. A spin takes at most `max_ns`. This process may run on `cores` cores; 0: ask the
 * system. */
void spin_init(struct spin *s, uint64_t max_ns, unsigned cores);

/* Does one of the conns have an event that it was asked for (conn_peek)? */
bool spin_peek(struct conn *const *conns, size_t count);

/* From any thread: the awaited event has come nearer. A spinning thread restarts its bound. */
static inline void spin_kick(struct spin *s)
{
        if (s->max_ns)
                atomic_fetch_add_explicit(&s->kicks, 1, memory_order_relaxed);
}

/* The awaited event has come. More events may come soon, however long the wait was. */
static inline void spin_hope(struct spin *s)
{
        if (s->now_ns)
                s->now_ns = s->max_ns;
}

/* Before the first use: do not spin at all where it would have to yield. */
static inline void spin_never_yield(struct spin *s)
{
        if (s->yields)
                s->max_ns = 0;
}

/* From any thread: set whether other sessions use the cores, too. Then it does not pay to wait
 * until each of them had its turn. */
static inline void spin_share(struct spin *s, bool shared)
{
        atomic_store_explicit(&s->shared, shared, memory_order_relaxed);
}

/* Might spin_poll try links? */
static inline bool spin_tries(const struct spin *s)
{
        return s->max_ns && (s->now_ns || s->long_budget);
}

/* Poll without sleeping, for as long as it seems to pay. Returns poll(2)'s result, or 1 when one of
 * the conns or links has something. Negative: `also` has found something. 0: nothing yet; the conns
 * are armed, so the thread may sleep. */
int spin_poll(struct spin *s, const struct spin_on *on);

/* End the trials of all links of `on`, with their sessions' lock held: they are polled no more. */
void spin_end_trials(struct spin_on *on);

/* Sleep until a descriptor of `on` has an event, or until deadline_ns (UINT64_MAX: for ever); spin_poll
 * has returned 0 before. Returns ppoll(2)'s result. */
int spin_sleep(struct spin *s, const struct spin_on *on, uint64_t deadline_ns);

/* After a sleep: the next bound depends on how long it took. spin_sleep calls it. */
void spin_slept(struct spin *s);

#endif
