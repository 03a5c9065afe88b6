#include "base/range_set.h"

#include <string.h>

#include "base/mem.h"

int range_set_reserve(struct range_set *s, size_t more)
{
        if (s->cap - s->count >= more)
                return 0;
        size_t cap = s->cap ? s->cap * 2 : 4;
        while (cap - s->count < more)
                cap *= 2;
        struct range *p = mem_realloc(s->ranges, cap * sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        s->ranges = p;
        s->cap = cap;
        return 0;
}

/* Index of the first range that ends at or behind `at`. */
static size_t set_find(const struct range_set *s, uint64_t at)
{
        size_t lo = 0, hi = s->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (s->ranges[mid].end < at)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

/* Replace ranges [first, last) by `n` others; there is room. */
static void set_splice(struct range_set *s, size_t first, size_t last, const struct range *with,
                       size_t n)
{
        memmove(s->ranges + first + n, s->ranges + last, (s->count - last) * sizeof(*s->ranges));
        if (n)
                memcpy(s->ranges + first, with, n * sizeof(*with));
        s->count = s->count - (last - first) + n;
}

int range_set_add(struct range_set *s, struct range r)
{
        if (r.begin >= r.end)
                return 0;
        int e = range_set_reserve(s, 1);
        if (e < 0)
                return e;
        size_t first = set_find(s, r.begin), last = first;
        while (last < s->count && s->ranges[last].begin <= r.end) {
                if (s->ranges[last].begin < r.begin)
                        r.begin = s->ranges[last].begin;
                if (s->ranges[last].end > r.end)
                        r.end = s->ranges[last].end;
                last++;
        }
        set_splice(s, first, last, &r, 1);
        return 0;
}

int range_set_remove(struct range_set *s, struct range r)
{
        if (r.begin >= r.end || !s->count)
                return 0;
        int e = range_set_reserve(s, 1);
        if (e < 0)
                return e;
        struct range keep[2];
        size_t n = 0, first = set_find(s, r.begin);
        while (first < s->count && s->ranges[first].end <= r.begin)
                first++;
        size_t last = first;
        while (last < s->count && s->ranges[last].begin < r.end) {
                struct range old = s->ranges[last++];
                if (old.begin < r.begin)
                        keep[n++] = (struct range){ old.begin, r.begin };
                if (old.end > r.end)
                        keep[n++] = (struct range){ r.end, old.end };
        }
        set_splice(s, first, last, keep, n);
        return 0;
}

int range_set_next(const struct range_set *s, struct range within, bool member, struct range *ret)
{
        size_t i = set_find(s, within.begin);
        uint64_t at = within.begin;
        while (at < within.end) {
                while (i < s->count && s->ranges[i].end <= at)
                        i++;
                bool inside = i < s->count && s->ranges[i].begin <= at;
                uint64_t end = within.end;
                if (inside && s->ranges[i].end < end)
                        end = s->ranges[i].end;
                if (!inside && i < s->count && s->ranges[i].begin < end)
                        end = s->ranges[i].begin;
                if (inside == member) {
                        *ret = (struct range){ at, end };
                        return 1;
                }
                at = end;
        }
        return 0;
}

bool range_set_has(const struct range_set *s, struct range r)
{
        struct range hole;
        if (s->count == 1 && range_within(r, s->ranges[0])) /* mostly */
                return true;
        return !range_set_next(s, r, false, &hole);
}

bool range_set_meets(const struct range_set *s, struct range r)
{
        struct range common;
        return s->count && range_set_next(s, r, true, &common);
}

void range_set_fini(struct range_set *s)
{
        mem_free(s->ranges);
        *s = (struct range_set){ 0 };
}
