/* Times of another clock on this one, in order although the estimate of the offset between the two moves.
 * No lock inside; one owner. */
#ifndef SPANCL_BASE_MONOTONE_H
#define SPANCL_BASE_MONOTONE_H

#include <stdint.h>

struct monotone {
        uint64_t theirs, ours; /* the latest of their times that was mapped, and to what */
};

/* `theirs` + `offset` (ns), but not before what an earlier time became, nor after what a later one did. */
static inline uint64_t monotone_map(struct monotone *m, uint64_t theirs, int64_t offset)
{
        uint64_t ours = theirs + (uint64_t)offset;
        if (theirs < m->theirs)
                return ours < m->ours ? ours : m->ours;
        m->theirs = theirs;
        if (m->ours < ours)
                m->ours = ours;
        return m->ours;
}

#endif
