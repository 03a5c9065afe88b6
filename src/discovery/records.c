#include "discovery/records.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"

static struct discovered *find(const struct records *r, const char *id)
{
        for (size_t i = 0; i < r->count; i++)
                if (!strcmp(r->list[i].id, id))
                        return &r->list[i];
        return NULL;
}

static struct discovered *add(struct records *r)
{
        if (r->count < r->cap)
                return &r->list[r->count++];
        size_t cap = r->cap ? 2 * r->cap : 4;
        if (cap > RECORDS_MAX)
                return NULL;
        struct discovered *more = mem_realloc(r->list, cap * sizeof(*more));
        if (!more)
                return NULL;
        r->list = more;
        r->cap = cap;
        return &r->list[r->count++];
}

static bool put(struct records *r, const char *name, const struct discovered *d)
{
        struct discovered *to = find(r, d->id);
        /* Padding that differs causes one needless notification. */
        if (to && !memcmp(to, d, sizeof(*d)))
                return false;
        if (!to)
                to = add(r);
        if (!to) {
                if (!r->logged_full)
                        log_warn("discovery",
                                 "%s: more than %zu servers; the others are passed over", name,
                                 r->count);
                r->logged_full = true;
                return false;
        }
        memcpy(to, d, sizeof(*d));
        return true;
}

static bool drop(struct records *r, const char *id)
{
        struct discovered *d = find(r, id);
        if (!d)
                return false;
        /* The order stays, because the first of several records with one key counts. */
        memmove(d, d + 1, (size_t)(r->list + r->count - (d + 1)) * sizeof(*d));
        r->count--;
        return true;
}

static void complain(struct records *r, const char *name, const char *why)
{
        if (!r->logged_bad)
                log_warn("discovery", "%s: a line is passed over: %s", name, why);
        r->logged_bad = true;
}

static bool take_line(struct records *r, const char *name)
{
        enum discovered_event event;
        struct discovered d;
        const char *why;
        memset(&d, 0, sizeof(d));
        if (discovered_parse(r->line, r->line_size, &event, &d, &why) < 0) {
                complain(r, name, why);
                return false;
        }
        switch (event) {
        case DISCOVERED_APPEARS:
        case DISCOVERED_CHANGES:
                return put(r, name, &d);
        case DISCOVERED_GONE:
                return drop(r, d.id);
        case DISCOVERED_SETTLED:
                break;
        }
        bool changed = !r->settled;
        r->settled = true;
        return changed;
}

bool records_feed(struct records *r, const char *name, const char *data, size_t size)
{
        bool changed = false;
        for (const char *end = data + size; data < end;) {
                const char *newline = memchr(data, '\n', (size_t)(end - data));
                size_t n = (size_t)((newline ? newline : end) - data);
                if (r->line_size + n >= sizeof(r->line)) {
                        complain(r, name, "longer than 8 KiB");
                        r->too_long = true;
                        r->line_size = 0;
                }
                if (!r->too_long) {
                        memcpy(r->line + r->line_size, data, n);
                        r->line_size += n;
                }
                if (newline) {
                        if (!r->too_long && r->line_size)
                                changed |= take_line(r, name);
                        r->too_long = false;
                        r->line_size = 0;
                }
                data += n + (newline != NULL);
        }
        return changed;
}

void records_fini(struct records *r)
{
        mem_free(r->list);
        r->list = NULL;
        r->count = r->cap = 0;
}
