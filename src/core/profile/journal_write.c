#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/device.h"
#include "core/link/server.h"
#include "core/profile/journal.h"
#include "core/profile/ledger.h"

enum {
        LAYERS = 16,          /* commands of a queue that overlap stand in rows of their own */
        MOVES_FROM = 1 << 10, /* the first rows of a link's moves; its lanes have those below */
        MOVES_TO = 1 << 16,
};

static int by_id(const void *a, const void *b)
{
        const struct journal_command *x = *(const struct journal_command *const *)a;
        const struct journal_command *y = *(const struct journal_command *const *)b;
        return (x->id > y->id) - (x->id < y->id);
}

static int by_row(const void *a, const void *b)
{
        const struct journal_command *x = *(const struct journal_command *const *)a;
        const struct journal_command *y = *(const struct journal_command *const *)b;
        if (x->server != y->server)
                return x->server < y->server ? -1 : 1;
        if (x->queue != y->queue)
                return x->queue < y->queue ? -1 : 1;
        return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

int journal_view(struct journal_view *ret)
{
        struct journal_counts n;
        journal_count(&n);
        *ret = (struct journal_view){ 0 };
        if (!journal_is_kept() || !n.commands)
                return 0;
        ret->by_id = mem_alloc(n.commands * sizeof(*ret->by_id));
        if (!ret->by_id)
                return SP_E_NOMEM;
        ret->count = n.commands;
        for (size_t i = 0; i < n.commands; i++)
                ret->by_id[i] = journal_command_at(i);
        qsort(ret->by_id, ret->count, sizeof(*ret->by_id), by_id);
        return 0;
}

void journal_view_fini(struct journal_view *v)
{
        mem_free(v->by_id);
        *v = (struct journal_view){ 0 };
}

const char *journal_name(const struct journal_view *v, uint64_t event)
{
        struct journal_command wanted = { .id = event };
        const struct journal_command *key = &wanted, **found = NULL;
        if (v->count)
                found = bsearch(&key, v->by_id, v->count, sizeof(*v->by_id), by_id);
        return found ? (*found)->name : NULL;
}

/* The first row of `layers` that is free at a time; LAYERS if none is. */
static unsigned free_layer(uint64_t layers[LAYERS], uint64_t begin_ns, uint64_t end_ns)
{
        unsigned i = 0;
        while (i < LAYERS && layers[i] > begin_ns)
                i++;
        if (i < LAYERS)
                layers[i] = end_ns;
        return i;
}

static void put_rate(struct timeline *out, uint64_t bytes, uint64_t ns)
{
        timeline_arg(out, "bytes", bytes);
        if (ns)
                timeline_arg(out, "MB_s", bytes < UINT64_MAX / 1000 ? bytes * 1000 / ns : 0);
}

static void put_sizes(struct timeline *out, const char *name, const uint64_t sizes[3],
                      unsigned dims)
{
        char text[80] = "";
        int n = 0;
        for (unsigned i = 0; i < dims; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%" PRIu64, i ? "x" : "",
                              sizes[i]);
        if (sizes[0])
                timeline_arg_text(out, name, text);
}

/* ---- devices -------------------------------------------------------------------------------- */

static const char *device_name(const struct server *s, uint32_t index)
{
        for (cl_uint i = 0; i < s->device_count; i++)
                if (s->devices[i]->index == index)
                        return device_text(s->devices[i], CL_DEVICE_NAME);
        return "part of a device";
}

static void put_queue(struct timeline *out, const struct server *s, unsigned process,
                      uint64_t thread, unsigned layer, unsigned number,
                      const struct journal_command *j)
{
        char name[160];
        snprintf(name, sizeof(name), "queue %u%s on %.100s", number, layer ? " (beside)" : "",
                 device_name(s, j->device));
        timeline_thread(out, process, thread, name);
}

static void put_command(struct timeline *out, unsigned process, uint64_t thread, uint64_t begin_ns,
                        const struct journal_command *j)
{
        const char *kind = j->dims ? "kernel" : j->bytes ? "transfer" : "other";
        timeline_slice(out, process, thread, begin_ns, j->end_ns, kind, j->name);
        timeline_arg(out, "event", j->id);
        put_sizes(out, "global", j->global, j->dims);
        put_sizes(out, "local", j->local, j->dims);
        if (j->bytes)
                put_rate(out, j->bytes, j->end_ns - begin_ns);
        if (j->submit_ns && j->submit_ns < j->start_ns)
                timeline_arg(out, "queued_ns", j->start_ns - j->submit_ns);
        timeline_slice_end(out);
        timeline_flow(out, TRACE_FLOW_STEP, process, thread, begin_ns, "command", j->id);
}

/* A row for each queue, in the process of its server's devices. */
static void put_commands(struct client *c, struct timeline *out, struct journal_gaps *gaps,
                         const struct journal_command **all, size_t count) REQUIRES(client_held)
{
        const struct journal_command *last = NULL; /* that was shown */
        uint64_t layers[LAYERS] = { 0 }, thread = 0;
        unsigned number = 0, named = 0;
        for (size_t i = 0; i < count; i++) {
                const struct journal_command *j = all[i];
                if (!j->end_ns || j->server >= c->server_count) {
                        gaps->untimed++;
                        continue;
                }
                const struct server *s = c->servers[j->server];
                unsigned process = JOURNAL_DEVICES + j->server;
                bool first = !last || last->server != j->server;
                bool other = first || last->queue != j->queue;
                last = j;
                if (first) {
                        char name[300];
                        snprintf(name, sizeof(name), "%.250s: devices", server_name(s));
                        timeline_process(out, process, name);
                        number = 0;
                }
                if (other) {
                        number++;
                        thread = (uint64_t)number * LAYERS;
                        named = 0;
                        for (unsigned k = 0; k < LAYERS; k++)
                                layers[k] = 0;
                }
                uint64_t begin = j->start_ns;
                if (j->in_order && begin < layers[0]) /* the clock was measured anew meanwhile */
                        begin = layers[0] < j->end_ns ? layers[0] : j->end_ns;
                unsigned layer = free_layer(layers, begin, j->end_ns);
                if (layer == LAYERS) {
                        gaps->dropped++;
                        continue;
                }
                if (!(named & 1u << layer))
                        put_queue(out, s, process, thread + layer, layer, number, j);
                named |= 1u << layer;
                put_command(out, process, thread + layer, begin, j);
        }
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void put_wait(struct client *c, struct timeline *out, const struct journal_view *v,
                     const struct journal_wait *w) REQUIRES(client_held)
{
        static const char *const kinds[PROFILE_WAITS] = {
                [PROFILE_FINISH] = "clFinish",
                [PROFILE_EVENTS] = "clWaitForEvents",
                [PROFILE_BLOCKING] = "blocking command",
                [PROFILE_TAKEN] = "until the link has the bytes",
                [PROFILE_ROOM] = "until the session has room",
                [PROFILE_ANSWER] = "answer",
        };
        const char *what = w->event ? journal_name(v, w->event) : NULL;
        timeline_slice(out, JOURNAL_CLIENT, w->thread, w->begin_ns, w->end_ns, "waited",
                       kinds[w->kind]);
        if (w->event)
                timeline_arg(out, "event", w->event);
        if (what)
                timeline_arg_text(out, "command", what);
        if (w->server < c->server_count)
                timeline_arg_text(out, "server", server_name(c->servers[w->server]));
        if (w->bytes)
                timeline_arg(out, "bytes", w->bytes);
        timeline_slice_end(out);
}

/* ---- moves ---------------------------------------------------------------------------------- */

static int moves_by_row(const void *a, const void *b)
{
        const struct journal_move *x = *(const struct journal_move *const *)a;
        const struct journal_move *y = *(const struct journal_move *const *)b;
        uint64_t x_begin = x->end_ns ? x->start_ns : x->begin_ns;
        uint64_t y_begin = y->end_ns ? y->start_ns : y->begin_ns;
        if (x->to != y->to)
                return x->to < y->to ? -1 : 1;
        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return (x_begin > y_begin) - (x_begin < y_begin);
}

static void put_slice(struct timeline *out, unsigned process, uint64_t thread,
                      const struct journal_move *m, uint64_t begin, uint64_t end,
                      const char *category)
{
        timeline_slice(out, process, thread, begin, end, category, "migration");
        timeline_arg(out, "memory", m->memory);
        put_rate(out, m->bytes, end - begin);
        timeline_slice_end(out);
}

/* A row for the moves from each source to each destination, at both ends, and an arrow between them. */
static void put_move(struct client *c, struct timeline *out, const struct journal_move *m,
                     unsigned layer, uint64_t begin, uint64_t end, bool name) REQUIRES(client_held)
{
        const char *to = server_name(c->servers[m->to]);
        unsigned there = JOURNAL_LINKS + m->to;
        bool host = m->from < 0;
        unsigned from = host ? 0 : (unsigned)m->from;
        uint64_t row = MOVES_FROM + (host ? 0 : from + 1) * LAYERS + layer;
        char text[300];
        if (name) {
                snprintf(text, sizeof(text), "migrations from %.200s",
                         host ? "the program" : server_name(c->servers[from]));
                timeline_thread(out, there, row, text);
        }
        put_slice(out, there, row, m, begin, end, "migration");
        if (host)
                return;
        unsigned here = JOURNAL_LINKS + from;
        uint64_t source = MOVES_TO + (uint64_t)m->to * LAYERS + layer;
        if (name) {
                snprintf(text, sizeof(text), "migrations to %.200s", to);
                timeline_thread(out, here, source, text);
        }
        put_slice(out, here, source, m, begin, end, "source");
        timeline_flow(out, TRACE_FLOW_START, here, source, begin, "migration", m->event);
        timeline_flow(out, TRACE_FLOW_END, there, row, end > begin ? end - 1 : end, "migration",
                      m->event);
}

static void put_moves(struct client *c, struct timeline *out, struct journal_gaps *gaps,
                      size_t count) REQUIRES(client_held)
{
        const struct journal_move **all = mem_alloc((count + 1) * sizeof(*all));
        uint64_t layers[LAYERS] = { 0 };
        unsigned named = 0;
        if (!all) {
                gaps->dropped += count;
                return;
        }
        for (size_t i = 0; i < count; i++)
                all[i] = journal_move_at(i);
        qsort(all, count, sizeof(*all), moves_by_row);
        for (size_t i = 0; i < count; i++) {
                const struct journal_move *m = all[i];
                if (m->to >= c->server_count ||
                    (m->from >= 0 && (unsigned)m->from >= c->server_count))
                        continue;
                if (!i || all[i - 1]->to != m->to || all[i - 1]->from != m->from) {
                        named = 0;
                        for (unsigned k = 0; k < LAYERS; k++)
                                layers[k] = 0;
                }
                uint64_t begin = m->end_ns ? m->start_ns : m->begin_ns;
                uint64_t end = m->end_ns ? m->end_ns : begin;
                unsigned layer = free_layer(layers, begin, end);
                if (layer == LAYERS) {
                        gaps->dropped++;
                        continue;
                }
                put_move(c, out, m, layer, begin, end, !(named & 1u << layer));
                named |= 1u << layer;
        }
        mem_free(all);
}

/* --------------------------------------------------------------------------------------------- */

void journal_write(struct client *c, const struct journal_view *v, struct timeline *out,
                   struct journal_gaps *gaps)
{
        struct journal_counts n;
        journal_count(&n);
        if (!journal_is_kept())
                return;
        gaps->dropped += n.overwritten;
        for (size_t i = 0; i < n.waits; i++)
                put_wait(c, out, v, journal_wait_at(i));
        const struct journal_command **all =
                v->count ? mem_dup(v->by_id, v->count * sizeof(*all)) : NULL;
        if (all) {
                qsort(all, v->count, sizeof(*all), by_row);
                put_commands(c, out, gaps, all, v->count);
                mem_free(all);
        }
        put_moves(c, out, gaps, n.moves);
}
