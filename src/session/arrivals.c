#include "session/arrivals.h"

void arrivals_fini(struct arrivals *a)
{
        range_set_fini(&a->ahead);
}

bool arrivals_meet(const struct arrivals *a, uint64_t begin, uint64_t end)
{
        if (begin < a->below)
                return true;
        /* Bytes mostly come in order. */
        return a->ahead.count && range_set_meets(&a->ahead, (struct range){ begin, end });
}

int arrivals_add(struct arrivals *a, uint64_t begin, uint64_t end)
{
        struct range_set *ahead = &a->ahead;
        if (arrivals_meet(a, begin, end))
                return SP_E_PROTO;
        if (begin > a->below) {
                bool joins = arrivals_meet(a, begin - 1, begin) || arrivals_meet(a, end, end + 1);
                if (ahead->count == ARRIVALS_MAX && !joins)
                        return SP_E_PROTO;
                return range_set_add(ahead, (struct range){ begin, end });
        }
        if (ahead->count && ahead->ranges[0].begin == end) {
                end = ahead->ranges[0].end;
                int r = range_set_remove(ahead, ahead->ranges[0]);
                if (r < 0)
                        return r;
        }
        a->below = end;
        return 0;
}
