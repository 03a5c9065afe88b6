/* Which bytes of a transfer there are, when they come in any order. Zeroed memory: none. */
#ifndef SPANCL_SESSION_ARRIVALS_H
#define SPANCL_SESSION_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Pieces that may be ahead of what is missing. A lane can lag behind the others by all that its connection
 * holds, so that each frame in it is a gap: senders keep to a quarter (bulk.c). */
enum { ARRIVALS_MAX = 256 };

struct arrivals {
        uint64_t below; /* all bytes below it */
        struct arrivals_piece {
                uint64_t begin, end;
        } * ahead; /* apart from each other and from `below`, in no order */
        unsigned count, room;
};

/* Only what is below is there; frees what was ahead. */
void arrivals_fini(struct arrivals *a);

/* Is any of [begin, end) there? */
bool arrivals_meet(const struct arrivals *a, uint64_t begin, uint64_t end);

/* [begin, end), not empty, is there now. SP_E_PROTO: some of it was already, or the pieces are too many;
 * SP_E_NOMEM. Nothing changed then. */
SP_NODISCARD int arrivals_add(struct arrivals *a, uint64_t begin, uint64_t end);

#endif
