#include "daemon/supervisor/rate.h"

#include "base/pace.h"

/* Choose a host's slot by FNV-1a with a seed, so that no host can choose with which others it
 * shares. */
static unsigned slot_of(const struct rate *r, const uint8_t net[16])
{
        uint64_t h = 0xcbf29ce484222325ull ^ r->seed;
        for (int i = 0; i < 16; i++)
                h = (h ^ net[i]) * 0x100000001b3ull;
        return (unsigned)(h >> 32) % RATE_SLOTS;
}

bool rate_allows(struct rate *r, const uint8_t net[16], unsigned per_s, uint64_t now_ns)
{
        uint64_t each_ns = 1000000000ull / per_s, most_ns = RATE_BURST * 1000000000ull;
        uint64_t *due_ns = &r->due_ns[slot_of(r, net)];
        if (pace_next_ns(*due_ns, most_ns - each_ns) > now_ns)
                return false;
        *due_ns = pace_after(*due_ns, each_ns, now_ns);
        return true;
}
