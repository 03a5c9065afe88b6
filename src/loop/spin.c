#include "loop/spin.h"

#include "base/relax.h"
#include "os/clock.h"
#include "os/thread.h"
#include "trace/trace.h"
#include "transport/shm.h"

enum {
        SPIN_CORES = 3,           /* with fewer, the other side needs the core: yield */
        YIELD_CORES = 2,          /* with fewer, sleeping costs less: never spin */
        YIELD_LOOKS = 16,         /* polls of memory for each poll(2) while yielding */
        OFF_CORE_MAX_NS = 100000, /* a yield took longer: another thread computes */
        BACKOFF_OFF_CORE = 128,   /* waits after such a yield */
        BACKOFF_LATE = 8,         /* waits after an event came soon after going to sleep */
        COLOCATED_YIELDS = 6,     /* yields of a wait, half of which were preempted, */
        COLOCATED_WAITS = 3,      /* in so many waits: both sides share a core */
        LOOKS = 16,               /* polls of sockets for each poll(2) */
        LOOKS_MEMORY = 128,       /* polls of memory for each poll(2) */
        LOOKS_SOON = 4,           /* the same, while `also` is due, too */
        BACKOFF_MAX = 256,        /* waits */
        ENGAGED = 8,              /* times the bound, while the other side copies */
        EXPECT_SHARE = 16,        /* anticipate by this share of the wait, */
        EXPECT_MIN_NS = 1000000,  /* of waits of this length */
        EXPECT_MAX_NS = 200000000,
        LEAD_MAX_NS = 2000000,
};

unsigned spin_cores;

void spin_init(struct spin *s, uint64_t max_ns, unsigned cores)
{
        if (!cores)
                cores = spin_cores;
        if (!cores)
                cores = thread_cores();
        *s = (struct spin){ .max_ns = cores < YIELD_CORES ? 0 : max_ns,
                            .yields = cores < SPIN_CORES,
                            .backoff_next = 1 };
        s->now_ns = s->max_ns;
}

bool spin_peek(struct conn *const *conns, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (conn_peek(conns[i]))
                        return true;
        return false;
}

static int arm_all(struct conn *const *conns, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (conn_arm(conns[i]))
                        return 1;
        return 0;
}

static bool try_links(const struct spin_on *on)
{
        for (size_t i = 0; i < on->link_count; i++)
                if (link_try(on->links[i]))
                        return true;
        return false;
}

/* ---- with two cores ------------------------------------------------------------------------- */

static int poll_once(struct spin *s, const struct spin_on *on, bool everywhere)
{
        if (s->also && s->also(s->arg) == SPIN_FOUND)
                return -1;
        if (spin_peek(on->conns, on->conn_count) || try_links(on))
                return 1;
        return everywhere ? poll(on->fds, on->count, 0) : 0;
}

/* Detect that both sides yield to each other on one core. Then the other side has to be woken for
 * all threads that both start. Linux does not move them apart, since that core never sleeps for
 * long. A thread that sleeps is moved when it is woken. */
static void part(struct spin *s, unsigned yields, unsigned long switches)
{
        if (yields < COLOCATED_YIELDS || switches < yields / 2)
                s->colocated = 0;
        else if (++s->colocated == COLOCATED_WAITS) {
                s->colocated = 0;
                s->backoff = 1;
        }
}

/* Spin, and yield the core after each poll, because the sender of the awaited message needs this
 * core, too. That costs both sides less than a core that falls asleep and is woken. If others'
 * turns are long, it costs more: a woken sleeper gets the core at once, and a yielding thread does
 * not. */
static int spin_and_yield(struct spin *s, const struct spin_on *on)
{
        s->gave_up = false;
        if (s->backoff || !s->now_ns || atomic_load_explicit(&s->shared, memory_order_relaxed)) {
                s->backoff -= s->backoff > 0;
                return 0;
        }
        TRACE_SPAN(spin, s->now_ns);
        uint64_t from = s->began_ns, now = from;
        unsigned every = on->conn_count || on->link_count ? YIELD_LOOKS : 1;
        long before = thread_preemptions();
        unsigned kicks = atomic_load_explicit(&s->kicks, memory_order_relaxed);
        for (unsigned looks = 0; now - from < s->now_ns; looks++) {
                int r = poll_once(s, on, looks % every == 0);
                if (r) {
                        part(s, looks, (unsigned long)(thread_preemptions() - before));
                        return r;
                }
                uint64_t then = now;
                thread_yield();
                now = clock_now_ns();
                if (now - then > OFF_CORE_MAX_NS) {
                        s->backoff = BACKOFF_OFF_CORE;
                        break;
                }
                unsigned kicked = atomic_load_explicit(&s->kicks, memory_order_relaxed);
                if (kicked != kicks)
                        from = now;
                kicks = kicked;
        }
        s->gave_up = true;
        return 0;
}

/* ---- with more ------------------------------------------------------------------------------ */

static bool is_engaged(const struct spin_on *on)
{
        for (size_t i = 0; i < on->conn_count; i++)
                if (conn_is_engaged(on->conns[i]))
                        return true;
        return false;
}

/* May the thread go on spinning? */
static bool is_early(struct spin *s, const struct spin_on *on, bool due, unsigned *kicks,
                     long before)
{
        uint64_t now = clock_now_ns();
        unsigned kicked = atomic_load_explicit(&s->kicks, memory_order_relaxed);
        if (kicked != *kicks && thread_preemptions() == before) {
                *kicks = kicked;
                s->began_ns = now;
                s->now_ns = s->max_ns;
        }
        uint64_t took = now - s->began_ns;
        if (took < s->now_ns)
                return true;
        bool may = (due && s->long_budget && took / SPIN_LONG_BUDGET < s->max_ns) ||
                   (took / ENGAGED < s->max_ns && is_engaged(on));
        return may && thread_preemptions() == before;
}

/* Another thread wanted the core: spin less from now on. */
static void back_off(struct spin *s)
{
        s->backoff = s->backoff_next;
        s->backoff_next = 2 * s->backoff_next < BACKOFF_MAX ? 2 * s->backoff_next : BACKOFF_MAX;
}

static int spin(struct spin *s, const struct spin_on *on)
{
        s->began_ns = clock_now_ns();
        if (s->yields)
                return spin_and_yield(s, on);
        if (!s->now_ns && !s->long_budget && !is_engaged(on))
                return 0;
        TRACE_SPAN(spin, s->now_ns);
        unsigned kicks = atomic_load_explicit(&s->kicks, memory_order_relaxed);
        long before = -1; /* not asked yet: an event that is there at once needs no system call */
        for (unsigned looks = 0;;) {
                enum spin_also also = s->also ? s->also(s->arg) : SPIN_NOTHING;
                if (also == SPIN_FOUND)
                        return -1;
                if (spin_peek(on->conns, on->conn_count))
                        return 1;
                looks++;
                bool soon = also == SPIN_SOON;
                if ((!soon || looks % LOOKS_SOON == 0) && try_links(on))
                        return 1;
                /* Peeks and tries notice an event sooner than poll(2), so do several of them
                 * first. */
                unsigned enough = on->link_count   ? LOOKS
                                  : on->conn_count ? (soon ? LOOKS : LOOKS_MEMORY)
                                  : soon           ? LOOKS_SOON
                                                   : 1;
                if (looks < enough) {
                        cpu_relax();
                        continue;
                }
                looks = 0;
                if (before < 0)
                        before = thread_preemptions();
                int r = poll(on->fds, on->count, 0);
                if (r)
                        return r;
                if (!is_early(s, on, soon || on->due, &kicks, before))
                        break;
        }
        if (thread_preemptions() != before) {
                s->now_ns = 0;
                s->long_budget = false;
                back_off(s);
        }
        return 0;
}

int spin_poll(struct spin *s, const struct spin_on *on)
{
        for (nfds_t i = 0; i < on->count; i++)
                on->fds[i].revents = 0;
        int r = spin_peek(on->conns, on->conn_count);
        if (!r && s->max_ns) {
                r = spin(s, on);
                if (r)
                        spin_hope(s);
                if (r && s->backoff_next > 1)
                        s->backoff_next--;
        }
        return r ? r : arm_all(on->conns, on->conn_count);
}

void spin_end_trials(struct spin_on *on)
{
        while (on->link_count)
                link_try_end(on->links[--on->link_count]);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static uint64_t lead_ns(const struct spin *s)
{
        uint64_t lead = s->expect.wait_ns / EXPECT_SHARE;
        return lead < LEAD_MAX_NS ? lead : LEAD_MAX_NS;
}

/* Spin until `until_ns`, or until another thread wants the core. The conns are armed, and their owners
 * may close them meanwhile, so it polls the descriptors alone. */
static int watch(struct spin *s, const struct spin_on *on, uint64_t until_ns)
{
        TRACE_SPAN(spin, until_ns);
        long before = thread_preemptions();
        int r;
        do
                r = poll(on->fds, on->count, 0);
        while (!r && clock_now_ns() < until_ns && thread_preemptions() == before);
        if (!r)
                s->expect.wait_ns = 0; /* it did not pay: two more waits have to show that it may */
        if (thread_preemptions() != before)
                back_off(s);
        return r;
}

/* Sleep until shortly before the event that is expected, and spin. 0: it has not come. *ret_came: it
 * came while it was expected. */
static int anticipate(struct spin *s, const struct spin_on *on, uint64_t deadline_ns,
                      bool *ret_came)
{
        uint64_t at = s->began_ns + s->expect.wait_ns, lead = lead_ns(s);
        *ret_came = false;
        if (!s->expect.wait_ns || s->backoff ||
            atomic_load_explicit(&s->shared, memory_order_relaxed) || at + lead >= deadline_ns ||
            clock_now_ns() >= at - lead)
                return 0;
        int r = poll_until(on->fds, on->count, at - lead);
        if (r)
                return r;
        r = watch(s, on, at + lead);
        *ret_came = r > 0;
        return r;
}

/* Two waits of about the same length let expect a third. Short waits in between do not count. */
static void expect(struct spin *s, uint64_t took)
{
        if (s->yields || took < EXPECT_MIN_NS)
                return;
        uint64_t last = s->expect.last_ns;
        uint64_t differ = took > last ? took - last : last - took;
        s->expect.last_ns = took;
        s->expect.wait_ns = took < EXPECT_MAX_NS && differ < took / EXPECT_SHARE ? took : 0;
}

void spin_slept(struct spin *s)
{
        if (!s->max_ns)
                return;
        uint64_t took = clock_now_ns() - s->began_ns;
        expect(s, took);
        if (s->gave_up && !s->backoff && took < 2 * s->max_ns)
                s->backoff = BACKOFF_LATE;
        /* Waking up takes about as long as spinning may. */
        s->now_ns = took < 2 * s->max_ns ? s->max_ns : s->now_ns / 2;
        s->backoff -= s->backoff > 0 && !s->yields;
        s->long_budget = !s->yields && !s->backoff && took / SPIN_LONG_BUDGET < s->max_ns;
}

int spin_sleep(struct spin *s, const struct spin_on *on, uint64_t deadline_ns)
{
        bool expected;
        int r = anticipate(s, on, deadline_ns, &expected);
        if (!r)
                r = poll_until(on->fds, on->count, deadline_ns);
        spin_slept(s);
        if (expected)
                s->now_ns = s->max_ns; /* the next events may come soon */
        return r;
}
