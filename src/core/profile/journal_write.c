#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/device.h"
#include "core/link/server.h"
#include "core/profile/journal.h"
#include "core/profile/ledger.h"
#include "core/profile/queue_rows.h"

/* ---- devices -------------------------------------------------------------------------------- */

static const char *name_of_server(void *user, uint32_t server) LOCK_UNCHECKED
{
        const struct client *c = user;
        return server < c->server_count ? server_name(c->servers[server]) : NULL;
}

static const char *name_of_device(void *user, uint32_t server, uint32_t device) LOCK_UNCHECKED
{
        const struct server *s = ((const struct client *)user)->servers[server];
        for (cl_uint i = 0; i < s->device_count; i++)
                if (s->devices[i]->index == device)
                        return device_text(s->devices[i], CL_DEVICE_NAME);
        return "part of a device";
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void put_wait(struct client *c, struct timeline *out, const struct calls *calls,
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
        const char *what = w->event ? calls_name(calls, w->event) : NULL;
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
        timeline_arg(out, "event", m->event);
        if (begin > m->begin_ns)
                timeline_arg(out, "queued_ns", begin - m->begin_ns);
        timeline_arg(out, "memory", m->memory);
        queue_rows_put_rate(out, m->bytes, end - begin);
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
        uint64_t row = JOURNAL_MOVES_FROM + (host ? 0 : from + 1) * QUEUE_ROWS_LAYERS + layer;
        char text[300];
        /* The source comes first, because both have the same times: viewers take an arrow's end only behind its begin. */
        if (!host) {
                unsigned here = JOURNAL_LINKS + from;
                uint64_t source = JOURNAL_MOVES_TO + (uint64_t)m->to * QUEUE_ROWS_LAYERS + layer;
                if (name) {
                        snprintf(text, sizeof(text), "migrations to %.200s", to);
                        timeline_thread(out, here, source, text);
                }
                put_slice(out, here, source, m, begin, end, "source");
                timeline_flow(out, TRACE_FLOW_START, here, source, begin, "migration", m->event);
        }
        if (name) {
                snprintf(text, sizeof(text), "migrations from %.200s",
                         host ? "the program" : server_name(c->servers[from]));
                timeline_thread(out, there, row, text);
        }
        put_slice(out, there, row, m, begin, end, "migration");
        if (!host)
                timeline_flow(out, TRACE_FLOW_END, there, row, end > begin ? end - 1 : end,
                              "migration", m->event);
}

static void put_moves(struct client *c, struct timeline *out, struct journal_gaps *gaps,
                      size_t count) REQUIRES(client_held)
{
        const struct journal_move **all = mem_alloc((count + 1) * sizeof(*all));
        uint64_t layers[QUEUE_ROWS_LAYERS] = { 0 };
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
                        for (unsigned k = 0; k < QUEUE_ROWS_LAYERS; k++)
                                layers[k] = 0;
                }
                uint64_t begin = m->end_ns ? m->start_ns : m->begin_ns;
                uint64_t end = m->end_ns ? m->end_ns : begin;
                unsigned layer = queue_rows_free_layer(layers, begin, end);
                if (layer == QUEUE_ROWS_LAYERS) {
                        gaps->dropped++;
                        continue;
                }
                put_move(c, out, m, layer, begin, end, !(named & 1u << layer));
                named |= 1u << layer;
        }
        mem_free(all);
}

/* --------------------------------------------------------------------------------------------- */

static int put_commands(struct client *c, struct calls *calls, struct timeline *out,
                        struct journal_gaps *gaps, size_t count) REQUIRES(client_held)
{
        int r = 0;
        struct journal_command *commands = mem_alloc((count + 1) * sizeof(*commands));
        const struct journal_command **all = mem_alloc((count + 1) * sizeof(*all));
        if (commands && all) {
                for (size_t i = 0; i < count; i++) {
                        journal_command_at(i, &commands[i]);
                        calls_journaled(calls, commands[i].id);
                        all[i] = &commands[i];
                }
                queue_rows_put(out, gaps, all, count,
                               &(struct queue_rows_names){ name_of_server, name_of_device, c });
        } else {
                r = SP_E_NOMEM;
        }
        mem_free(all);
        mem_free(commands);
        return r;
}

int journal_write(struct client *c, struct calls *calls, struct timeline *out,
                  struct journal_gaps *gaps)
{
        struct journal_counts n;
        journal_count(&n);
        if (!journal_is_kept())
                return 0;
        gaps->dropped += n.overwritten;
        for (size_t i = 0; i < n.waits; i++)
                put_wait(c, out, calls, journal_wait_at(i));
        int r = put_commands(c, calls, out, gaps, n.commands);
        gaps->untimed += calls_count_others(calls);
        put_moves(c, out, gaps, n.moves);
        return r;
}
