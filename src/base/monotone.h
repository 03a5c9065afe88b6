/* Maps times of another clock to this one, in order although the estimated offset between the
 * clocks changes. No lock inside; one owner. */
#ifndef SPANCL_BASE_MONOTONE_H
#define SPANCL_BASE_MONOTONE_H

#include <stdint.h>

struct monotone {
        uint64_t theirs, ours; /* the latest mapped time, on their clock and on ours */
};

/* Return `theirs` + `offset` (ns), but not before the result of an earlier time, nor after that of
 * a later one. */
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
