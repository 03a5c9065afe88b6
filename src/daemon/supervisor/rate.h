/* The limit on how often each other host may connect. One owner. */
#ifndef SPANCL_DAEMON_RATE_H
#define SPANCL_DAEMON_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
        RATE_SLOTS = 4096,
        RATE_BURST = 4, /* seconds' worth of connections that may come at once */
};

/* A rate limit. Zeroed memory is an unused one. */
struct rate {
        /* For each slot, the time at which the limit would have let all of its connections
         * through. Hosts may share a slot; then they share the rate. */
        uint64_t due_ns[RATE_SLOTS];
        uint64_t seed; /* for the choice of slots; the caller sets it */
};

/* Return true if one more connection of that host is within `per_s` per second, and count it. */
bool rate_allows(struct rate *r, const uint8_t net[16], unsigned per_s, uint64_t now_ns);

#endif
