/* A limit on a rate (leaky bucket; ITU-T I.371, generic cell rate algorithm). `due_ns` is the time at which all that
 * came so far would have come at the rate; 0: nothing came. It may be ahead of the present by a bound, so some may come
 * at once. No state; the owner keeps due_ns. */
#ifndef SPANCL_BASE_PACE_H
#define SPANCL_BASE_PACE_H

#include <stdint.h>

/* Return due_ns after one more, which takes `takes_ns` at the rate. */
static inline uint64_t pace_after(uint64_t due_ns, uint64_t takes_ns, uint64_t now_ns)
{
        return (due_ns < now_ns ? now_ns : due_ns) + takes_ns;
}

/* Return the first time at which due_ns is ahead by `ahead_ns` at most. */
static inline uint64_t pace_next_ns(uint64_t due_ns, uint64_t ahead_ns)
{
        return due_ns > ahead_ns ? due_ns - ahead_ns : 0;
}

#endif
