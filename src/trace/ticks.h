/* The processor's counter as a clock for probes. Reading it takes a third of the time that CLOCK_MONOTONIC takes.
 *
 * Each thread converts ticks into CLOCK_MONOTONIC by itself, without locks. It compares both clocks once a millisecond,
 * and more often in the first 16 ms. Between two comparisons the error of a time is at most the change of
 * CLOCK_MONOTONIC's rate, which is 500 ns a millisecond where NTP steers by frequency alone.
 *
 * The first reading finds out whether the kernel itself takes its time from the counter. It does not where the
 * counter's rate changes, or where processors' counters differ. There, and on other architectures than x86-64, ticks
 * are CLOCK_MONOTONIC's ns. */
#ifndef SPANCL_TRACE_TICKS_H
#define SPANCL_TRACE_TICKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"

#if defined(__x86_64__)
#define TICKS_COUNTER 1
#else
#define TICKS_COUNTER 0
#endif

enum ticks_source { TICKS_NOT_KNOWN, TICKS_OF_COUNTER, TICKS_OF_CLOCK };

#if TICKS_COUNTER
extern atomic_int ticks_source; /* it changes once, before the first ticks are read */

/* Find out the source of ticks, and read them. */
__attribute__((cold, noinline)) uint64_t ticks_now_first(void);
#endif

static inline bool ticks_are_of_counter(void)
{
#if TICKS_COUNTER
        return __builtin_expect(atomic_load_explicit(&ticks_source, memory_order_relaxed) ==
                                        TICKS_OF_COUNTER,
                                true);
#else
        return false;
#endif
}

static inline uint64_t ticks_now(void)
{
#if TICKS_COUNTER
        return ticks_are_of_counter() ? __builtin_ia32_rdtsc() : ticks_now_first();
#else
        return clock_now_ns();
#endif
}

/* A thread's conversion. Zeroed memory is valid: the first conversion compares the clocks. */
struct ticks_clock {
        uint64_t base, base_ns;   /* the last comparison */
        uint64_t valid;           /* ticks after it for which it holds */
        uint64_t rate;            /* ns of a tick, << 32 */
        uint64_t last_ns;         /* of the last conversion; no later one is below it */
        uint64_t since, since_ns; /* what the rate is measured from */
        bool settled;             /* the rate is measured over a second or more */
};

/* Convert a number of ticks into ns. */
static inline uint64_t ticks_scale(uint64_t ticks, uint64_t rate)
{
#if TICKS_COUNTER
        return (uint64_t)((unsigned __int128)ticks * rate >> 32);
#else
        (void)rate;
        return ticks;
#endif
}

/* Compare the clocks; `now`: a time of ticks_now that has just passed. */
__attribute__((cold, noinline)) void ticks_clock_compare(struct ticks_clock *c, uint64_t now);

/* Return true if the last comparison holds for the time. */
static inline bool ticks_clock_holds(const struct ticks_clock *c, uint64_t now)
{
        return __builtin_expect(now - c->base < c->valid, true);
}

/* Convert a time before or after the last comparison, without another one. */
static inline uint64_t ticks_clock_at(const struct ticks_clock *c, uint64_t at)
{
        if (at >= c->base)
                return c->base_ns + ticks_scale(at - c->base, c->rate);
        uint64_t before_ns = ticks_scale(c->base - at, c->rate);
        return c->base_ns > before_ns ? c->base_ns - before_ns : 0;
}

/* Convert a time between two comparisons, of which the second is later. */
static inline uint64_t ticks_clock_between(const struct ticks_clock *before,
                                           const struct ticks_clock *after, uint64_t at)
{
        uint64_t ticks = at - before->base;
#if TICKS_COUNTER
        return before->base_ns +
               (uint64_t)((unsigned __int128)ticks * (after->base_ns - before->base_ns) /
                          (after->base - before->base));
#else
        (void)after;
        return before->base_ns + ticks;
#endif
}

/* Convert a time that has just passed into CLOCK_MONOTONIC ns. */
static inline uint64_t ticks_clock_ns(struct ticks_clock *c, uint64_t now)
{
        if (!ticks_clock_holds(c, now))
                ticks_clock_compare(c, now);
        uint64_t ns = c->base_ns + ticks_scale(now - c->base, c->rate);
        return c->last_ns = ns > c->last_ns ? ns : c->last_ns;
}

/* Return the ns from `begin` to `end`. `end_ns`: what ticks_clock_ns has just returned for `end`. The result is 0 if
 * the counter went back, and at most `end_ns`: the counter may have run while the host was suspended, and
 * CLOCK_MONOTONIC does not count that time. */
static inline uint64_t ticks_clock_span(const struct ticks_clock *c, uint64_t begin, uint64_t end,
                                        uint64_t end_ns)
{
        if (end <= begin)
                return 0;
        uint64_t ns = ticks_scale(end - begin, c->rate);
        return ns < end_ns ? ns : end_ns;
}

#endif
