/* Seeded random numbers: the same seed gives the same run, everywhere (splitmix64). */
#ifndef SPANCL_TESTS_RANDOM_H
#define SPANCL_TESTS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
        uint64_t state;
};

static inline uint64_t rng_mix(uint64_t z)
{
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
}

static inline uint64_t rng_u64(struct rng *r)
{
        return rng_mix(r->state += 0x9E3779B97F4A7C15u);
}

/* From 0 to n - 1; 0 when n is 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
        return n ? rng_u64(r) % n : 0;
}

/* From lo to hi, both included. */
static inline uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
        return lo + rng_below(r, hi - lo + 1);
}

/* True `percent` times of 100. */
static inline bool rng_chance(struct rng *r, unsigned percent)
{
        return rng_below(r, 100) < percent;
}

#endif
