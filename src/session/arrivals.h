/* Arrivals: which bytes of a transfer have arrived, in any order. Zeroed memory: none. */
#ifndef SPANCL_SESSION_ARRIVALS_H
#define SPANCL_SESSION_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/range_set.h"
#include "base/status.h"

/* The most pieces that may be ahead of the first missing byte. A lane can lag behind the others by
 * all the frames in its connection, and each of these is a gap. Senders use at most a quarter of
 * this (bulk.c). */
enum { ARRIVALS_MAX = 256 };

struct arrivals {
        uint64_t below;         /* all bytes below it have arrived */
        struct range_set ahead; /* beyond `below`, which has not arrived */
};

/* Forget the bytes ahead of `below`, and free their memory. */
void arrivals_fini(struct arrivals *a);

/* Has any byte of [begin, end) arrived? */
bool arrivals_meet(const struct arrivals *a, uint64_t begin, uint64_t end);

/* Add [begin, end), not empty. SP_E_PROTO: some of it had arrived already, or there are too many
 * pieces; SP_E_NOMEM. On failure nothing changed. */
SP_NODISCARD int arrivals_add(struct arrivals *a, uint64_t begin, uint64_t end);

#endif
