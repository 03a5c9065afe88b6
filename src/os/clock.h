/* The clock of everything that runs in real time. */
#ifndef SPANCL_OS_CLOCK_H
#define SPANCL_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time since 1970 in ns, to compare with the times of files. It may jump. */
static inline uint64_t clock_wall_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Milliseconds to sleep until `deadline_ns`, rounded up, for poll(2): -1 for UINT64_MAX. */
static inline int clock_poll_ms(uint64_t deadline_ns)
{
        if (deadline_ns == UINT64_MAX)
                return -1;
        uint64_t now = clock_now_ns();
        uint64_t left = deadline_ns > now ? (deadline_ns - now + 999999) / 1000000 : 0;
        return left > 3600000 ? 3600000 : (int)left;
}

#endif
