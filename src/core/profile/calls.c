#include "core/profile/calls.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/profile/names.h"

struct call {
        uint64_t event;
        unsigned name; /* names_text */
        bool journaled;
};

void calls_fini(struct calls *c)
{
        mem_free(c->all);
        *c = (struct calls){ 0 };
}

static bool make_room(struct calls *c)
{
        enum { FIRST = 1024 };
        size_t room = c->room ? 2 * c->room : FIRST;
        struct call *all = mem_realloc(c->all, room * sizeof(*all));
        if (!all) {
                c->incomplete = true;
                return false;
        }
        c->all = all;
        c->room = room;
        return true;
}

const char *calls_put(struct calls *c, const struct trace_record *r)
{
        unsigned name = trace_place_of(r);
        if (trace_probe_of(r) != TRACE_enqueue || !name)
                return NULL;
        if (c->count < c->room || make_room(c))
                c->all[c->count++] = (struct call){ r->value, name, false };
        return names_text(name);
}

static int by_event(const void *a, const void *b)
{
        const struct call *x = a, *y = b;
        return (x->event > y->event) - (x->event < y->event);
}

void calls_sort(struct calls *c)
{
        if (c->count)
                qsort(c->all, c->count, sizeof(*c->all), by_event);
}

static struct call *find(const struct calls *c, uint64_t event)
{
        struct call wanted = { .event = event };
        return c->count ? bsearch(&wanted, c->all, c->count, sizeof(*c->all), by_event) : NULL;
}

bool calls_have(const struct calls *c, uint64_t event)
{
        return find(c, event) != NULL;
}

void calls_journaled(struct calls *c, uint64_t event)
{
        struct call *found = find(c, event);
        if (found)
                found->journaled = true;
}

size_t calls_count_others(const struct calls *c)
{
        size_t n = 0;
        for (size_t i = 0; i < c->count; i++)
                n += !c->all[i].journaled;
        return n;
}

const char *calls_name(const struct calls *c, uint64_t event)
{
        const struct call *found = find(c, event);
        return found ? names_text(found->name) : NULL;
}
