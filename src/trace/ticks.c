#include "trace/ticks.h"

#if TICKS_COUNTER

#include <errno.h>
#include <string.h>

#include "os/cpu.h"
#include "os/host.h"
#include "os/once.h"

enum {
        SETTLED_NS = 1000000000, /* over which the rate is exact to 1e-7 */
        FIRST_NS = 20000,        /* the least time over which a rate is measured */
        VALID_NS = 1000000,
        VALID_SHARE = 16, /* of the time over which the rate was measured */
        TRIES = 3,
        STARTS = 8,      /* tries to measure the first rate */
        RATE_CHANGE = 8, /* the rate stays within such a part of the first one */
};

static struct once started = ONCE_INIT;
static uint64_t origin, origin_ns; /* the process's first comparison */
static uint64_t first_rate;        /* measured right after it, exact to a few per cent */
atomic_int ticks_source = TICKS_NOT_KNOWN;

/* Read both clocks at the same time. The thread may be interrupted between them: the shortest of some tries counts.
 * `ret_width`: its ticks. */
static void read_both(uint64_t *ret_ticks, uint64_t *ret_ns, uint64_t *ret_width)
{
        uint64_t shortest = UINT64_MAX;
        for (int i = 0; i < TRIES; i++) {
                uint64_t before = __builtin_ia32_rdtsc(), ns = clock_now_ns();
                uint64_t took = __builtin_ia32_rdtsc() - before;
                if (took >= shortest)
                        continue;
                shortest = took;
                *ret_ticks = before + took / 2;
                *ret_ns = ns;
        }
        *ret_width = shortest;
}

/* Return true if the kernel takes its time from the counter. It checks that the counter has one rate, and that all
 * processors have the same count. */
static bool is_clock_of_kernel(void)
{
        char name[16];
        if (!cpu_has_constant_counter())
                return false;
        host_clock_source(name, sizeof(name));
        return !strcmp(name, "tsc");
}

/* Measure the first rate. False: the thread was interrupted. */
static bool measure_first_rate(void)
{
        uint64_t ticks = 0, ns = 0, width = 0, end_width = 0;
        read_both(&origin, &origin_ns, &width);
        while (clock_now_ns() - origin_ns < FIRST_NS)
                ;
        read_both(&ticks, &ns, &end_width);
        uint64_t took = ticks - origin;
        if (!took || took > UINT64_MAX / 2 || width > took / 32 || end_width > took / 32)
                return false;
        first_rate = (uint64_t)(((unsigned __int128)(ns - origin_ns) << 32) / took);
        return first_rate != 0;
}

static void start(void)
{
        int saved = errno; /* the code behind a probe may read it */
        bool good = false;
        if (is_clock_of_kernel())
                for (int i = 0; i < STARTS && !good; i++)
                        good = measure_first_rate();
        atomic_store(&ticks_source, good ? TICKS_OF_COUNTER : TICKS_OF_CLOCK);
        errno = saved;
}

uint64_t ticks_now_first(void)
{
        if (atomic_load_explicit(&ticks_source, memory_order_relaxed) == TICKS_NOT_KNOWN)
                once_run(&started, start);
        return ticks_are_of_counter() ? __builtin_ia32_rdtsc() : clock_now_ns();
}

/* The rate has jumped, because the counter or the clock stood still, for example while the host was suspended. */
static bool has_jumped(uint64_t took_ns, uint64_t took)
{
        uint64_t expected_ns = ticks_scale(took, first_rate);
        uint64_t off = took_ns > expected_ns ? took_ns - expected_ns : expected_ns - took_ns;
        return took > UINT64_MAX / 2 || off > expected_ns / RATE_CHANGE;
}

/* Measure the rate since the last time, or since the beginning. Returns the ns over which it was measured. */
static uint64_t measure_rate(struct ticks_clock *c, uint64_t ticks, uint64_t ns)
{
        if (!c->since) {
                c->since = origin;
                c->since_ns = origin_ns;
        }
        uint64_t took_ns = ns - c->since_ns, took = ticks - c->since;
        if (c->settled && took_ns < SETTLED_NS)
                return SETTLED_NS;
        if (took_ns < FIRST_NS) { /* after a jump */
                c->rate = first_rate;
                return 0;
        }
        bool jumped = has_jumped(took_ns, took);
        bool usable = took > 0 && took < UINT64_MAX / 2 && !(jumped && !c->base);
        c->rate = usable ? (uint64_t)(((unsigned __int128)took_ns << 32) / took) : first_rate;
        if (jumped || took_ns >= SETTLED_NS) {
                c->settled = !jumped;
                c->since = ticks;
                c->since_ns = ns;
        }
        /* After a jump the rate serves the span that has it inside, and no later one. A thread's first span has none. */
        return jumped ? 0 : took_ns;
}

/* Ticks are the clock's ns, for ever. */
static void be_clock(struct ticks_clock *c)
{
        c->base = c->base_ns = 0;
        c->rate = (uint64_t)1 << 32;
        c->valid = UINT64_MAX;
}

void ticks_clock_compare(struct ticks_clock *c, uint64_t now)
{
        once_run(&started, start);
        if (!ticks_are_of_counter()) {
                be_clock(c);
                return;
        }
        uint64_t ticks = 0, ns = 0, width = 0;
        read_both(&ticks, &ns, &width);
        uint64_t valid_ns = measure_rate(c, ticks, ns) / VALID_SHARE;
        uint64_t late_ns = ticks > now ? ticks_scale(ticks - now, c->rate) : 0;
        c->base = now;
        c->base_ns = late_ns < ns ? ns - late_ns : 0;
        valid_ns = valid_ns < VALID_NS ? valid_ns : VALID_NS;
        c->valid = c->rate ? (valid_ns << 32) / c->rate : 0;
}

#else

void ticks_clock_compare(struct ticks_clock *c, uint64_t now)
{
        (void)now;
        c->base = c->base_ns = 0;
        c->valid = UINT64_MAX;
}

#endif
