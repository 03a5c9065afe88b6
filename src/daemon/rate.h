/* How often each other host may connect. One owner. */
#ifndef SPANCL_DAEMON_RATE_H
#define SPANCL_DAEMON_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
        RATE_SLOTS = 4096,
        RATE_BURST = 4, /* seconds' worth that may come at once */
};

/* Zeroed memory is one that has seen nobody. */
struct rate {
        /* When as many as came would have come at the rate. Hosts may share one, then they share the rate. */
        uint64_t due_ns[RATE_SLOTS];
        uint64_t seed; /* of who shares with whom; the caller's to choose */
};

/* May one more of that host come, at `per_s` in a second? Counts it if so. */
bool rate_allows(struct rate *r, const uint8_t net[16], unsigned per_s, uint64_t now_ns);

#endif
