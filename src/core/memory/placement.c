#include "core/memory/placement.h"

#include <string.h>

#include "base/mem.h"

uint64_t placement_chain_bytes = 1 << 20;

/* ---- replicas ------------------------------------------------------------------------------- */

struct replica *placement_at(struct placement *p, uint32_t server, uint32_t domain)
{
        struct replica *old = placement_find(p, server, domain);
        if (old)
                return old;
        struct replica *all = mem_realloc(p->replicas, (p->count + 1) * sizeof(*all));
        if (!all)
                return NULL;
        p->replicas = all;
        all[p->count] = (struct replica){ .server = server, .domain = domain };
        return &all[p->count++];
}

static void writer_del(struct replica *at, size_t i)
{
        if (i != --at->writer_count)
                memmove(at->writers + i, at->writers + i + 1,
                        (at->writer_count - i) * sizeof(*at->writers));
}

bool writer_is_seen(const struct writer *w, uint64_t queue)
{
        bool seen = false;
        for (size_t i = 0; i < PLACEMENT_SEEN_MAX; i++)
                seen |= w->seen[i] == queue;
        return queue && seen;
}

void writer_see(struct writer *w, uint64_t queue)
{
        if (!queue || writer_is_seen(w, queue))
                return;
        memmove(w->seen + 1, w->seen, (PLACEMENT_SEEN_MAX - 1) * sizeof(w->seen[0]));
        w->seen[0] = queue;
}

/* Does the later command `w` take the place of `old`? In an in-order queue a later command comes
 * after an earlier one. An arrival waits for earlier arrivals. A command that may write waits for
 * awaited writers, but another one that only reads need not come after it, so they stay. */
static bool replaces(const struct writer *w, const struct writer *old, bool covers)
{
        if (w->arrival)
                return old->arrival;
        if (old->awaited && !covers)
                return false;
        return w->queue && (old->queue == w->queue || writer_is_seen(old, w->queue));
}

static int writer_add(struct replica *at, struct writer w, bool covers)
{
        for (size_t i = at->writer_count; i-- > 0;)
                if (replaces(&w, &at->writers[i], covers) &&
                    range_within(at->writers[i].range, w.range))
                        writer_del(at, i);
        if (at->writer_count == at->writer_cap) {
                size_t cap = at->writer_cap ? at->writer_cap * 2 : 4;
                struct writer *p = mem_realloc(at->writers, cap * sizeof(*p));
                if (!p)
                        return SP_E_NOMEM;
                at->writers = p;
                at->writer_cap = cap;
        }
        at->writers[at->writer_count++] = w;
        return 0;
}

static int wrote(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                 uint64_t event, uint64_t queue, bool covers)
{
        struct replica *at = placement_at(p, server, domain);
        if (!at)
                return SP_E_NOMEM;
        bool stays = range_set_has(&at->current, r); /* as where one kernel follows another */
        for (size_t i = 0; i < p->count; i++)
                stays &= &p->replicas[i] == at || !p->replicas[i].current.count;
        int e = event ? writer_add(at,
                                   (struct writer){ .range = r, .event = event, .queue = queue },
                                   covers)
                      : 0;
        if (e < 0 || stays)
                return e;
        /* With room for one more range everywhere nothing below can fail. */
        for (size_t i = 0; i < p->count && !e; i++)
                e = range_set_reserve(&p->replicas[i].current, 1);
        for (size_t i = 0; i < p->count && !e; i++)
                if (&p->replicas[i] != at)
                        e = range_set_remove(&p->replicas[i].current, r);
        return e < 0 ? e : range_set_add(&at->current, r);
}

int placement_write(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                    uint64_t event, uint64_t queue)
{
        return wrote(p, server, domain, r, event, queue, true);
}

int placement_may_write(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                        uint64_t event, uint64_t queue)
{
        return wrote(p, server, domain, r, event, queue, false);
}

int placement_reserve(struct placement *p, size_t count)
{
        int e = 0;
        for (size_t i = 0; i < p->count && !e; i++)
                e = range_set_reserve(&p->replicas[i].current, count);
        return e;
}

bool writer_is_among(const struct writer *w, const uint64_t *events, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (events[i] == w->event || events[i] == w->behind)
                        return true;
        return false;
}

void placement_follow(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                      uint64_t event, bool covers, const uint64_t *events, size_t count)
{
        struct replica *at = placement_find(p, server, domain);
        for (size_t i = at ? at->writer_count : 0; i-- > 0;) {
                struct writer *old = &at->writers[i];
                if (!range_within(old->range, r) || !writer_is_among(old, events, count))
                        continue;
                if (covers || !old->awaited)
                        writer_del(at, i);
                else
                        old->behind = event;
        }
}

void placement_await(struct placement *p, uint32_t server, uint32_t domain, uint64_t event)
{
        struct replica *at = placement_find(p, server, domain);
        for (size_t i = 0; at && i < at->writer_count; i++) {
                struct writer *w = &at->writers[i];
                if (w->event != event || w->awaited)
                        continue;
                w->awaited = true;
                writer_see(w, w->queue);
        }
}

int placement_copy(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                   uint64_t event)
{
        struct replica *at = placement_at(p, server, domain);
        if (!at)
                return SP_E_NOMEM;
        int e = writer_add(
                at, (struct writer){ .range = r, .event = event, .arrival = true, .awaited = true },
                true);
        return e < 0 ? e : range_set_add(&at->current, r);
}

bool placement_arrives_after(const struct placement *p, uint32_t server, uint32_t domain,
                             struct range r, uint64_t event)
{
        const struct replica *at = placement_find(p, server, domain);
        for (size_t i = 0; at && i < at->writer_count; i++)
                if (at->writers[i].arrival && at->writers[i].event > event &&
                    range_overlaps(at->writers[i].range, r))
                        return true;
        return false;
}

static bool is_avoided(const struct placement *p, const struct replica *r)
{
        return r->server < CLIENT_SERVERS_MAX && server_set_has(&p->avoid, r->server);
}

/* Do we prefer to bring that many bytes from `a`? */
static bool preferred(const struct placement *p, const struct replica *a, const struct replica *b,
                      uint32_t server, uint64_t size)
{
        if (is_avoided(p, a) != is_avoided(p, b))
                return is_avoided(p, b);
        bool a_here = a->server == server, b_here = b->server == server;
        bool a_host = a->server == PLACEMENT_HOST, b_host = b->server == PLACEMENT_HOST;
        if (a_here != b_here || a_host != b_host)
                return a_here || b_host;
        return size >= placement_chain_bytes && a->sends < b->sends;
}

int placement_stale(const struct placement *p, uint32_t server, uint32_t domain, struct range part,
                    struct range *ret, const struct replica **ret_from)
{
        static const struct range_set none;
        const struct replica *at = placement_find(p, server, domain);
        struct range hole;
        while (range_set_next(at ? &at->current : &none, part, false, &hole)) {
                const struct replica *best = NULL;
                struct range got = { 0, 0 };
                for (size_t i = 0; i < p->count; i++) {
                        const struct replica *from = &p->replicas[i];
                        struct range r;
                        if (from == at || from->server == PLACEMENT_VIEW ||
                            !range_set_next(&from->current, hole, true, &r))
                                continue;
                        if (best && (r.begin > got.begin ||
                                     (r.begin == got.begin &&
                                      !preferred(p, from, best, server, r.end - r.begin))))
                                continue;
                        best = from;
                        got = r;
                }
                if (best) {
                        *ret = got;
                        *ret_from = best;
                        return 1;
                }
                part.begin = hole.end;
        }
        return 0;
}

int placement_drop(struct placement *p, uint32_t server, uint32_t domain, struct range r)
{
        struct replica *at = placement_find(p, server, domain);
        return at ? range_set_remove(&at->current, r) : 0;
}

/* Remove from `at` the bytes that other replicas have, too. Bytes that were written here, and are
 * nowhere else, stay. */
static int drop_copies(const struct placement *p, struct replica *at, struct range r)
{
        int e = 0;
        for (size_t i = 0; i < p->count; i++) {
                const struct replica *other = &p->replicas[i];
                struct range part, rest = r;
                if (other == at || other->server == PLACEMENT_VIEW)
                        continue;
                while (e == 0 && range_set_next(&other->current, rest, true, &part)) {
                        e = range_set_remove(&at->current, part);
                        rest.begin = part.end;
                }
        }
        return e;
}

bool placement_arrival_failed(struct placement *p, uint32_t server, uint64_t event)
{
        bool found = false;
        for (size_t i = 0; i < p->count; i++) {
                struct replica *at = &p->replicas[i];
                for (size_t k = at->writer_count; at->server == server && k-- > 0;) {
                        struct writer w = at->writers[k];
                        if (w.event != event || !w.arrival)
                                continue;
                        /* A command in order behind it may have written there since. */
                        bool kept = w.many || replica_passed(at, k);
                        writer_del(at, k);
                        found = true;
                        int e = kept ? drop_copies(p, at, w.range)
                                     : range_set_remove(&at->current, w.range);
                        /* Without memory to split a range, drop everything rather than too little. */
                        if (e < 0)
                                at->current.count = 0;
                }
        }
        return found;
}

void placement_view_arrived(struct placement *p, uint64_t event)
{
        struct replica *view = placement_find(p, PLACEMENT_VIEW, 0);
        for (size_t i = view ? view->writer_count : 0; i-- > 0;)
                if (view->writers[i].event == event)
                        writer_del(view, i);
}

static bool is_arriving(const struct replica *view, struct range r)
{
        for (size_t i = 0; i < view->writer_count; i++)
                if (range_overlaps(view->writers[i].range, r))
                        return true;
        return false;
}

void placement_view_right(struct placement *p, struct range r)
{
        struct replica *view = placement_at(p, PLACEMENT_VIEW, 0);
        if (view && !is_arriving(view, r) && range_set_add(&view->current, r) < 0)
                view->current.count = 0;
}

bool placement_view_has(const struct placement *p, struct range r)
{
        const struct replica *view = placement_find(p, PLACEMENT_VIEW, 0);
        return view && range_set_has(&view->current, r) && !is_arriving(view, r);
}

bool placement_comes_after(const struct placement *p, uint32_t server, uint32_t domain,
                           struct range r, uint64_t queue, const uint64_t *events, size_t count)
{
        const struct replica *at = placement_find(p, server, domain);
        for (size_t i = 0; at && i < at->writer_count; i++) {
                const struct writer *w = &at->writers[i];
                bool after =
                        w->awaited || (queue && w->queue == queue) || !range_overlaps(w->range, r);
                for (size_t k = 0; k < count && !after; k++)
                        after = events[k] == w->event;
                if (!after)
                        return false;
        }
        return true;
}

void placement_sends(struct placement *p, uint32_t server, uint32_t domain, int more)
{
        struct replica *r = placement_find(p, server, domain);
        if (r && (more > 0 || r->sends))
                r->sends += (unsigned)more;
}

void placement_arrived(struct placement *p, uint32_t server, uint32_t domain, uint64_t event)
{
        struct replica *r = placement_find(p, server, domain);
        for (size_t i = 0; r && i < r->writer_count; i++)
                if (r->writers[i].event == event)
                        r->writers[i].here = true;
}

/* ---- several sources ------------------------------------------------------------------------ */

bool replica_passed(const struct replica *at, size_t i)
{
        /* A marker that stands for many may stand for older ones only. */
        for (size_t k = i + 1; k < at->writer_count; k++) {
                const struct writer *w = &at->writers[k];
                if (!w->arrival && !w->many && range_within(at->writers[i].range, w->range))
                        return true;
        }
        return false;
}

/* A large copy that meets r and may still be on its way there; the first such one. NULL: none. */
static const struct writer *arriving(const struct replica *at, struct range r)
{
        const struct writer *first = NULL;
        for (size_t i = 0; i < at->writer_count; i++) {
                const struct writer *w = &at->writers[i];
                if (!w->arrival || w->here || !range_overlaps(w->range, r) ||
                    w->range.end - w->range.begin < placement_chain_bytes || replica_passed(at, i))
                        continue;
                if (!first || w->range.begin < first->range.begin)
                        first = w;
        }
        return first;
}

static struct share share_of(struct range part, const struct replica *from)
{
        return (struct share){ part, from->server, from->domain };
}

/* The copies that are arriving at `from` one by one, so that each can be sent on as it comes. */
static unsigned share_arrivals(struct range part, const struct replica *from, struct share *ret)
{
        unsigned n = 0;
        while (part.begin < part.end) {
                const struct writer *w = arriving(from, part);
                struct range piece = part;
                if (w && n + 1 < PLACEMENT_SHARES_MAX) {
                        uint64_t end = w->range.begin > part.begin ? w->range.begin : w->range.end;
                        piece.end = end < part.end ? end : part.end;
                }
                ret[n++] = share_of(piece, from);
                part.begin = piece.end;
        }
        return n;
}

/* Find the replicas that have all of the part and send as little as `from`; `from` comes first. */
static unsigned find_sources(const struct placement *p, uint32_t server, struct range part,
                             const struct replica *from, const struct replica **ret)
{
        unsigned n = 0;
        ret[n++] = from;
        for (size_t i = 0; i < p->count && n < PLACEMENT_SHARES_MAX; i++) {
                const struct replica *r = &p->replicas[i];
                bool other = r->server != server && r->server != PLACEMENT_HOST &&
                             r->server != PLACEMENT_VIEW && !is_avoided(p, r);
                for (unsigned k = 0; k < n; k++)
                        other &= r->server != ret[k]->server;
                if (other && r->sends == from->sends && range_set_has(&r->current, part) &&
                    !arriving(r, part))
                        ret[n++] = r;
        }
        return n;
}

/* Leave out sources that are too slow for their share to be worth it. */
static unsigned leave_out(const struct replica **from, uint64_t *weights, unsigned n, uint64_t size)
{
        for (;;) {
                uint64_t sum = 0;
                unsigned slowest = 0;
                for (unsigned i = 0; i < n; i++) {
                        sum += weights[i];
                        slowest = weights[i] < weights[slowest] ? i : slowest;
                }
                if (n == 1 || size / sum * weights[slowest] >= placement_chain_bytes)
                        return n;
                n--;
                from[slowest] = from[n];
                weights[slowest] = weights[n];
        }
}

unsigned placement_share(const struct placement *p, uint32_t server, struct range part,
                         const struct replica *from, const uint32_t *rates,
                         struct share ret[PLACEMENT_SHARES_MAX])
{
        enum { ALIGNMENT = 4096 };
        uint64_t size = part.end - part.begin, weights[PLACEMENT_SHARES_MAX], best = 1, sum = 0;
        const struct replica *sources[PLACEMENT_SHARES_MAX];
        ret[0] = share_of(part, from);
        if (from->server == server || from->server == PLACEMENT_HOST ||
            size < 2 * placement_chain_bytes)
                return 1;
        if (arriving(from, part))
                return share_arrivals(part, from, ret);
        unsigned n = find_sources(p, server, part, from, sources);
        for (unsigned i = 0; i < n; i++)
                best = rates[sources[i]->server] > best ? rates[sources[i]->server] : best;
        for (unsigned i = 0; i < n; i++)
                weights[i] = rates[sources[i]->server] ? rates[sources[i]->server] : best;
        n = leave_out(sources, weights, n, size);
        for (unsigned i = 0; i < n; i++)
                sum += weights[i];
        for (unsigned i = 0; i < n; i++) {
                uint64_t some = size / sum * weights[i];
                struct range r = { part.begin, part.end };
                if (i + 1 < n)
                        r.end = r.begin + (some > ALIGNMENT ? some - some % ALIGNMENT : some);
                ret[i] = share_of(r, sources[i]);
                part.begin = r.end;
        }
        return n;
}

uint64_t replica_arrival(const struct replica *r, struct range part)
{
        for (size_t i = r->writer_count; i-- > 0;) {
                const struct writer *w = &r->writers[i];
                if (range_overlaps(w->range, part))
                        return w->arrival && range_within(part, w->range) ? w->event : 0;
        }
        return 0;
}

void replica_collapse(struct replica *r, bool awaited, uint64_t event)
{
        struct writer all = { .range = { UINT64_MAX, 0 },
                              .event = event,
                              .arrival = awaited,
                              .awaited = awaited,
                              .many = true };
        for (size_t i = r->writer_count; i-- > 0;) {
                struct range one = r->writers[i].range;
                if (r->writers[i].awaited != awaited)
                        continue;
                all.range.begin = one.begin < all.range.begin ? one.begin : all.range.begin;
                all.range.end = one.end > all.range.end ? one.end : all.range.end;
                writer_del(r, i);
        }
        r->writers[r->writer_count++] = all; /* instead of one at least */
}

void placement_forget_server(struct placement *p, uint32_t server)
{
        for (size_t i = 0; i < p->count; i++) {
                struct replica *r = &p->replicas[i];
                if (r->server != server)
                        continue;
                r->current.count = 0;
                r->writer_count = 0;
        }
}

void placement_fini(struct placement *p)
{
        for (size_t i = 0; i < p->count; i++) {
                range_set_fini(&p->replicas[i].current);
                mem_free(p->replicas[i].writers);
        }
        mem_free(p->replicas);
        *p = (struct placement){ 0 };
}

struct ids replica_waits(const struct replica *at, struct range r, enum which_writers which)
{
        struct ids ids = { .count = 0 };
        for (size_t i = 0; at && i < at->writer_count && ids.count < array_size(ids.few); i++) {
                const struct writer *w = &at->writers[i];
                bool meant = which == WRITERS_ALL || w->arrival == (which != WRITERS_OTHER);
                if (which == WRITERS_ARRIVING && replica_passed(at, i))
                        meant = false;
                if (w->event && range_overlaps(w->range, r) && meant)
                        ids.few[ids.count++] = w->event;
        }
        return ids;
}
