#include "core/memory/recorded_memory.h"
#include "core/command/operands.h"

#include "base/mem.h"
#include "core/command/command.h"
#include "core/command/command_buffer.h"
#include "core/command/launch.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/link/server.h"
#include "core/memory/mem.h"
#include "core/memory/placement.h"

/* ---- what all of them do --------------------------------------------------------------------- */

static int uses_add(struct memory_uses *u, const struct memory_use *use) REQUIRES(client_held)
{
        if (u->count == u->cap) {
                size_t cap = u->cap ? u->cap * 2 : 4;
                struct memory_use *list = mem_realloc(u->list, cap * sizeof(*list));
                if (!list)
                        return SP_E_NOMEM;
                u->list = list;
                u->cap = cap;
        }
        u->list[u->count++] = *use;
        mem_hold(use->mem);
        return 0;
}

void memory_uses_fini(struct memory_uses *u)
{
        for (size_t i = 0; i < u->count; i++)
                mem_unhold(u->list[i].mem);
        mem_free(u->list);
        *u = (struct memory_uses){ 0 };
}

static void sums_free(cl_command_buffer_khr b)
{
        list_each(s, &b->sums, struct memory_sum, link)
        {
                range_set_fini(&s->bring);
                range_set_fini(&s->meet);
                range_set_fini(&s->wrote);
                list_remove(&s->link);
                mem_free(s);
        }
        b->summed = false;
}

/* The object's sum in the domain, made if new; *ret_first is the first of those in all domains. */
static int sum_of(cl_command_buffer_khr b, struct map *known, cl_mem root, unsigned domain,
                  struct memory_sum **ret, struct memory_sum **ret_first)
{
        struct memory_sum *first = map_get(known, root->id), *s = first, *last = NULL;
        for (; s && s->domain != domain; s = s->elsewhere)
                last = s;
        if (!s) {
                s = mem_zalloc(sizeof(*s));
                if (!s)
                        return SP_E_NOMEM;
                s->root = root;
                s->domain = domain;
                list_append(&b->sums, &s->link);
                if (last)
                        last->elsewhere = s;
                int r = first ? 0 : map_put(known, root->id, s);
                if (r < 0)
                        return r;
        }
        *ret = s;
        *ret_first = first ? first : s;
        return 0;
}

/* Add the part of `r` that no earlier command has written: only that must be brought. */
static int add_unwritten(struct range_set *to, const struct memory_sum *first, struct range r)
{
        struct range_set left = { 0 };
        int e = range_set_add(&left, r);
        for (const struct memory_sum *s = first; s; s = s->elsewhere)
                for (size_t i = 0; i < s->wrote.count && !e; i++)
                        e = range_set_remove(&left, s->wrote.ranges[i]);
        for (size_t i = 0; i < left.count && !e; i++)
                e = range_set_add(to, left.ranges[i]);
        range_set_fini(&left);
        return e;
}

static int sum_add(struct memory_sum *s, const struct memory_sum *first,
                   const struct memory_use *use)
{
        int r = 0;
        switch (use->what) {
        case USE_BRING:
                r = add_unwritten(&s->bring, first, use->range);
                return r < 0 ? r : range_set_add(&s->meet, use->range);
        case USE_MEET:
                return range_set_add(&s->meet, use->range);
        case USE_WROTE:
                for (struct memory_sum *o = (struct memory_sum *)first; o && !r; o = o->elsewhere)
                        r = o == s ? 0 : range_set_remove(&o->wrote, use->range);
                return r < 0 ? r : range_set_add(&s->wrote, use->range);
        case USE_COPIED:
                return range_set_add(&s->wrote, use->range);
        }
        return r;
}

static int sums_make(cl_command_buffer_khr b)
{
        struct map known = { 0 };
        int r = 0;
        if (b->summed)
                return 0;
        sums_free(b);
        for (size_t i = 0; i < b->count; i++) {
                const struct memory_uses *u = &b->commands[i]->uses;
                for (size_t k = 0; k < u->count && !r; k++) {
                        struct memory_sum *s, *first;
                        r = sum_of(b, &known, mem_root(u->list[k].mem), u->list[k].domain, &s,
                                   &first);
                        if (!r)
                                r = sum_add(s, first, &u->list[k]);
                }
        }
        map_fini(&known);
        b->summed = r == 0;
        return r;
}

void recorded_placements_free(cl_command_buffer_khr b)
{
        struct placement *p;
        for (size_t pos = 0; (p = map_next(&b->placements, &pos));) {
                placement_fini(p);
                mem_free(p);
        }
        map_fini(&b->placements);
        b->placements = (struct map){ 0 };
}

void recorded_memory_free(cl_command_buffer_khr b)
{
        sums_free(b);
        recorded_placements_free(b);
}

/* ---- several domains ------------------------------------------------------------------------ */

static int placement_of(cl_command_buffer_khr b, cl_mem root, struct placement **ret)
{
        struct placement *p = map_get(&b->placements, root->id);
        if (!p) {
                p = mem_zalloc(sizeof(*p));
                int r = p ? map_put(&b->placements, root->id, p) : SP_E_NOMEM;
                if (r < 0) {
                        mem_free(p);
                        return r;
                }
        }
        *ret = p;
        return 0;
}

/* The slot that stands for a domain in which `root` is. */
static struct _cl_command_queue *domain_slot(cl_command_buffer_khr b, const struct _cl_mem *root,
                                             unsigned domain) REQUIRES(client_held)
{
        struct _cl_command_queue *sides = b->slots + b->queue_count;
        for (cl_uint i = 0; i < b->domain_count; i++)
                if (mem_domain(root, sides[i].device) == domain)
                        return &sides[i];
        return sides;
}

static int wait_for_writers(struct command *m, const struct replica *at, struct range r,
                            bool arrivals) REQUIRES(client_held)
{
        int e = 0;
        for (size_t i = 0; at && i < at->writer_count && !e; i++) {
                const struct writer *w = &at->writers[i];
                if (w->range.begin < r.end && r.begin < w->range.end && (w->arrival || !arrivals))
                        e = command_wait_for(m, w->event);
        }
        return e;
}

static void waits_init(struct command *m)
{
        m->waits = m->few_waits;
        m->wait_count = 0;
        m->wait_cap = array_size(m->few_waits);
}

static void waits_fini(struct command *m)
{
        if (m->waits != m->few_waits)
                mem_free(m->waits);
}

/* One of the two commands of a migration; `m` has its wait list. */
static int migrate_read(struct command *m, cl_command_buffer_khr b, cl_mem root, struct range part,
                        unsigned from) REQUIRES(client_held)
{
        cl_mutable_command_khr c = recorded_alloc(b, 0);
        int r = c ? transfer_bring_read(
                            m->session, root, part,
                            &(struct wire_buffer_read){ .event = recorded_number(b->count + 1),
                                                        .queue = domain_slot(b, root, from)->id,
                                                        .peer = PEER_SELF,
                                                        .transfer = recorded_number(b->count + 1),
                                                        .waits = command_waits(m) })
                  : SP_E_NOMEM;
        if (r < 0)
                recorded_free(c);
        else
                recorded_append(c);
        return r;
}

static int migrate_write(struct command *m, cl_command_buffer_khr b, cl_mem root, struct range part,
                         unsigned to) REQUIRES(client_held)
{
        cl_mutable_command_khr c = recorded_alloc(b, 0);
        int r = c ? uses_add(&c->uses, &(struct memory_use){ USE_COPIED, root, to, part })
                  : SP_E_NOMEM;
        if (!r)
                r = transfer_bring_write(
                        m->session, root, part,
                        &(struct wire_buffer_write){ .event = recorded_number(b->count + 1),
                                                     .queue = domain_slot(b, root, to)->id,
                                                     .peer = PEER_SELF,
                                                     .transfer = recorded_number(b->count),
                                                     .waits = command_waits(m) });
        if (r < 0)
                recorded_free(c);
        else
                recorded_append(c);
        return r;
}

/* Record a migration of bytes that a recorded command has written in another domain. */
static int migrate(struct command *m, cl_mem root, struct range part, struct placement *p,
                   unsigned from, unsigned to) REQUIRES(client_held)
{
        cl_command_buffer_khr b = m->enqueue->record->buffer;
        uint32_t server = m->server->index;
        struct command x = { .session = m->session, .enqueue = m->enqueue, .queue = m->queue };
        waits_init(&x);
        int r = wait_for_writers(&x, placement_find(p, server, from), part, false);
        if (!r)
                r = migrate_read(&x, b, root, part, from);
        x.wait_count = 0;
        if (!r)
                r = wait_for_writers(&x, placement_find(p, server, to), part, true);
        if (!r)
                r = migrate_write(&x, b, root, part, to);
        waits_fini(&x);
        if (!r)
                r = placement_copy(p, server, to, part, recorded_number(b->count));
        b->broken |= r < 0;
        return r;
}

/* The counterpart of command_use within the recording: migrate stale bytes, and wait for their
 * writers. */
static int migrate_all(struct command *m, cl_mem root, struct range range, unsigned domain,
                       bool bring) REQUIRES(client_held)
{
        uint32_t server = m->server->index;
        struct placement *p;
        const struct replica *from;
        struct range part, rest = range;
        int r = placement_of(m->enqueue->record->buffer, root, &p);
        while (!r && bring && placement_stale(p, server, domain, rest, &part, &from)) {
                rest.begin = part.begin; /* nothing before it, however much nobody has */
                r = migrate(m, root, part, p, from->domain, domain);
        }
        return r < 0 ? r : wait_for_writers(m, placement_find(p, server, domain), range, true);
}

int record_use(struct command *m, cl_mem mem, struct range range, bool bring)
{
        struct recorder *rec = m->enqueue->record;
        cl_mem root = mem_root(mem);
        unsigned domain = mem_domain(root, m->queue->device);
        int r = mem_declare(mem, m->server);
        if (!r && rec->buffer->domain_count > 1)
                r = migrate_all(m, root, range, domain, bring);
        if (r < 0)
                return r;
        return uses_add(rec->uses,
                        &(struct memory_use){ bring ? USE_BRING : USE_MEET, mem, domain, range });
}

int record_wrote(struct command *m, cl_mem mem, struct range range)
{
        struct recorder *rec = m->enqueue->record;
        cl_mem root = mem_root(mem);
        unsigned domain = mem_domain(root, m->queue->device);
        struct placement *p;
        int r = 0;
        if (rec->buffer->domain_count > 1) {
                r = placement_of(rec->buffer, root, &p);
                if (!r)
                        r = placement_write(p, m->server->index, domain, range, m->id,
                                            queue_order(m->queue));
        }
        return r < 0 ? r
                     : uses_add(rec->uses, &(struct memory_use){ USE_WROTE, mem, domain, range });
}

/* ---- running ----------------------------------------------------------------------------------- */

/* A queue of the domain that m is to look like one of. With several queues no order of one says anything of
 * the others. The only one may have another in its place. */
static cl_command_queue sum_queue(const struct command *m, cl_command_buffer_khr b,
                                  const struct memory_sum *s) REQUIRES(client_held)
{
        return b->queue_count > 1 ? domain_slot(b, s->root, s->domain) : m->enqueue->queue;
}

static int use_ranges(struct command *m, cl_mem root, const struct range_set *set, bool bring)
        REQUIRES(client_held)
{
        int r = 0;
        for (size_t i = 0; i < set->count && !r; i++)
                r = command_use(m, root, set->ranges[i], bring);
        return r;
}

int recorded_use_all(struct command *m, cl_command_buffer_khr b)
{
        int r = sums_make(b);
        list_each(s, &b->sums, struct memory_sum, link)
        {
                m->queue = sum_queue(m, b, s);
                if (!r)
                        r = use_ranges(m, s->root, &s->bring, true);
                if (!r)
                        r = use_ranges(m, s->root, &s->meet, false);
        }
        m->queue = m->enqueue->queue;
        return r < 0 ? r : command_use_indirect(m, b->reaches);
}

int recorded_wrote_all(struct command *m, cl_command_buffer_khr b)
{
        int r = 0;
        list_each(s, &b->sums, struct memory_sum, link)
        {
                m->queue = sum_queue(m, b, s);
                for (size_t i = 0; i < s->wrote.count && !r; i++)
                        r = command_wrote(m, s->root, s->wrote.ranges[i], false);
        }
        m->queue = m->enqueue->queue;
        return r < 0 ? r : command_wrote_indirect(m, b->reaches);
}
