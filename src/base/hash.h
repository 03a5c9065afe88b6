/* A hash of numbers and texts, for tables that nobody attacks. */
#ifndef SPANCL_BASE_HASH_H
#define SPANCL_BASE_HASH_H

#include <stdint.h>

static inline uint64_t hash_number(uint64_t h, uint64_t value)
{
        h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
        return h ^ (h >> 29);
}

static inline uint64_t hash_text(uint64_t h, const char *text)
{
        while (*text)
                h = hash_number(h, (unsigned char)*text++);
        return h;
}

#endif
