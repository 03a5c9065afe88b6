/* A set of half-open ranges: bytes of a buffer, addresses, or bytes of a transfer. No locks; the owner
 * guards it. */
#ifndef SPANCL_BASE_RANGE_SET_H
#define SPANCL_BASE_RANGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct range {
        uint64_t begin, end;
};

static inline bool range_overlaps(struct range a, struct range b)
{
        return a.begin < b.end && b.begin < a.end;
}

static inline bool range_within(struct range inner, struct range outer)
{
        return inner.begin >= outer.begin && inner.end <= outer.end;
}

/* Sorted, disjoint, not adjacent. Zeroed memory is an empty set. */
struct range_set {
        struct range *ranges;
        size_t count, cap;
};

/* Add or remove the bytes of r. SP_E_NOMEM: the set is unchanged. */
SP_NODISCARD int range_set_add(struct range_set *s, struct range r);
SP_NODISCARD int range_set_remove(struct range_set *s, struct range r);

/* Make room for `more` ranges. With room for one, the next change cannot fail. SP_E_NOMEM. */
SP_NODISCARD int range_set_reserve(struct range_set *s, size_t more);

/* Return true if all of r is in the set, as an empty range always is. */
bool range_set_has(const struct range_set *s, struct range r);

/* Return true if any byte of r is in the set. */
bool range_set_meets(const struct range_set *s, struct range r);

/* The first part of `within` from `within.begin` on that is in the set (member) or not. 0: none. */
int range_set_next(const struct range_set *s, struct range within, bool member, struct range *ret);

void range_set_fini(struct range_set *s);

#endif
