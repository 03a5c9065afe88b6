#include "session/arrivals.h"

#include "base/mem.h"

void arrivals_fini(struct arrivals *a)
{
        mem_free(a->ahead);
        *a = (struct arrivals){ .below = a->below };
}

bool arrivals_meet(const struct arrivals *a, uint64_t begin, uint64_t end)
{
        if (begin < a->below)
                return true;
        for (unsigned i = 0; i < a->count; i++)
                if (begin < a->ahead[i].end && a->ahead[i].begin < end)
                        return true;
        return false;
}

static int append(struct arrivals *a, uint64_t begin, uint64_t end)
{
        if (a->count == ARRIVALS_MAX)
                return SP_E_PROTO;
        if (a->count == a->room) {
                unsigned room = a->room ? 2 * a->room : 4;
                struct arrivals_piece *more = mem_realloc(a->ahead, room * sizeof(*more));
                if (!more)
                        return SP_E_NOMEM;
                a->ahead = more;
                a->room = room;
        }
        a->ahead[a->count++] = (struct arrivals_piece){ begin, end };
        return 0;
}

int arrivals_add(struct arrivals *a, uint64_t begin, uint64_t end)
{
        struct arrivals_piece *before = NULL, *after = NULL;
        if (arrivals_meet(a, begin, end))
                return SP_E_PROTO;
        for (unsigned i = 0; i < a->count; i++) {
                if (a->ahead[i].end == begin)
                        before = &a->ahead[i];
                if (a->ahead[i].begin == end)
                        after = &a->ahead[i];
        }
        bool first = begin == a->below;
        if (!first && !before && !after)
                return append(a, begin, end);
        if (!first && !before) {
                after->begin = begin;
                return 0;
        }
        if (after)
                end = after->end;
        if (first)
                a->below = end;
        else
                before->end = end;
        if (after)
                *after = a->ahead[--a->count];
        return 0;
}
