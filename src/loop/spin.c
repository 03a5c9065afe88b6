#include "loop/spin.h"

#include <sched.h>
#include <sys/resource.h>

#include "loop/clock.h"
#include "trace/trace.h"

enum { SPIN_CORES = 3 }; /* with fewer the other side needs the one that would spin */

void spin_init(struct spin *s, uint64_t max_ns, unsigned cores)
{
        cpu_set_t set;
        if (!cores && sched_getaffinity(0, sizeof(set), &set) == 0)
                cores = (unsigned)CPU_COUNT(&set);
        *s = (struct spin){ .max_ns = cores < SPIN_CORES ? 0 : max_ns };
        s->now_ns = s->max_ns;
}

/* How often others took the core from this thread. */
static long preempted(void)
{
        struct rusage u;
        return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

int spin_poll(struct spin *s, struct pollfd *fds, nfds_t n)
{
        if (!s->max_ns)
                return 0;
        s->began_ns = clock_now_ns();
        if (!s->now_ns)
                return 0;
        TRACE_SPAN(spin, s->now_ns);
        long before = preempted();
        do {
                int r = poll(fds, n, 0);
                if (r)
                        return r;
        } while (clock_now_ns() - s->began_ns < s->now_ns);
        if (preempted() != before)
                s->now_ns = 0;
        return 0;
}

void spin_slept(struct spin *s)
{
        if (!s->max_ns)
                return;
        /* Waking up takes about as long as spinning may. */
        bool short_enough = clock_now_ns() - s->began_ns < 2 * s->max_ns;
        s->now_ns = short_enough ? s->max_ns : s->now_ns / 2;
}
