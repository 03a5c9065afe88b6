#include "cli/replay/fitting.h"

#include <stdlib.h>

enum {
        LOOK_WAITS = 16,   /* within a call */
        MANY_CALLS = 1000, /* of a thread */
};

static int calls_by_time(const void *a, const void *b)
{
        const struct recording_call *x = a, *y = b;
        return x->thread != y->thread ? compare(x->thread, y->thread)
                                      : compare(x->begin_ns, y->begin_ns);
}

static int waits_by_time(const void *a, const void *b)
{
        const struct recording_wait *x = a, *y = b;
        return x->thread != y->thread       ? compare(x->thread, y->thread)
               : x->begin_ns != y->begin_ns ? compare(x->begin_ns, y->begin_ns)
                                            : compare(y->end_ns, x->end_ns);
}

static int nodes_by_time(const void *a, const void *b)
{
        const struct node *x = a, *y = b;
        return x->sent_ns != y->sent_ns ? compare(x->sent_ns, y->sent_ns)
                                        : compare(x->event, y->event);
}

static int nodes_by_event(const void *a, const void *b)
{
        const struct node *x = a, *y = b;
        return x->event != y->event ? compare(x->event, y->event) : compare(x->sent_ns, y->sent_ns);
}

static int events_by_number(const void *a, const void *b)
{
        return compare(((const struct event_index *)a)->event,
                       ((const struct event_index *)b)->event);
}

uint32_t fit_node_of(const struct fitting *f, uint64_t event)
{
        const struct event_index key = { .event = event }, *found = NULL;
        if (event && f->node_count)
                found = bsearch(&key, f->events, f->node_count, sizeof(key), events_by_number);
        return found ? found->node : REPLAY_NONE;
}

/* ---- when commands were sent ---------------------------------------------------------------- */

/* A call sends at its end, or before it waits for its own command. */
static uint64_t sends_at(const struct fitting *f, const struct recording_call *c, size_t *at,
                         uint64_t *ret_waited_ns)
{
        while (*at < f->wait_count &&
               (f->waits[*at].thread < c->thread ||
                (f->waits[*at].thread == c->thread && f->waits[*at].begin_ns < c->begin_ns)))
                ++*at;
        for (size_t i = *at; i < f->wait_count && i < *at + LOOK_WAITS &&
                             f->waits[i].thread == c->thread && f->waits[i].begin_ns <= c->end_ns;
             i++)
                if (f->waits[i].kind == LEDGER_BLOCKING || f->waits[i].kind == LEDGER_TAKEN) {
                        *ret_waited_ns = f->waits[i].end_ns;
                        return f->waits[i].begin_ns;
                }
        *ret_waited_ns = 0;
        return c->end_ns;
}

static int commands_by_event(const void *a, const void *b)
{
        return compare((*(const struct recording_command *const *)a)->event,
                       (*(const struct recording_command *const *)b)->event);
}

static const struct recording_command *command_of(const struct recording_command *const *all,
                                                  size_t count, uint64_t event)
{
        struct recording_command key = { .event = event };
        const struct recording_command *wanted = &key, *const *found = NULL;
        if (count && event)
                found = bsearch(&wanted, all, count, sizeof(*all), commands_by_event);
        return found ? *found : NULL;
}

static void put_node(struct fitting *f, const struct node *n, uint64_t thread)
{
        f->nodes[f->node_count++] = *n;
        f->items[f->item_count++] = (struct item){
                .thread = thread, .begin_ns = n->sent_ns, .end_ns = n->sent_ns, .event = n->event
        };
}

static int moves_by_time(const void *a, const void *b)
{
        const struct recording_move *x = a, *y = b;
        return x->asked_ns != y->asked_ns ? compare(x->asked_ns, y->asked_ns)
                                          : compare(x->event, y->event);
}

/* The moves that a call asks for. They go before its command. */
static void put_moves(struct fitting *f, const struct recording_call *c, uint64_t sent_ns)
{
        size_t count = f->r->move_count, low = 0, high = count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (f->moves[middle].asked_ns < c->begin_ns)
                        low = middle + 1;
                else
                        high = middle;
        }
        size_t end = low + FIT_LOOK_BACK < count ? low + FIT_LOOK_BACK : count;
        for (; low < end && f->moves[low].asked_ns <= c->end_ns; low++) {
                struct recording_move *m = &f->moves[low];
                if (!m->event || f->taken[low] || fit_place_of(f, m->to) == REPLAY_NONE)
                        continue;
                f->taken[low] = true;
                put_node(f,
                         &(struct node){ .sent_ns = sent_ns,
                                         .begin_ns = m->begin_ns,
                                         .end_ns = m->end_ns,
                                         .event = m->event,
                                         .move = m },
                         c->thread);
        }
}

/* Order the nodes as they were sent. An event stands for one node only. */
static void sort_nodes(struct fitting *f)
{
        size_t count = 0;
        qsort(f->nodes, f->node_count, sizeof(*f->nodes), nodes_by_event);
        for (size_t i = 0; i < f->node_count; i++)
                if (!i || f->nodes[i].event != f->nodes[count - 1].event)
                        f->nodes[count++] = f->nodes[i];
        f->node_count = count;
        qsort(f->nodes, f->node_count, sizeof(*f->nodes), nodes_by_time);
}

static void put_nodes(struct fitting *f, const struct recording_command *const *by_event)
{
        size_t wait = 0;
        for (size_t i = 0; i < f->call_count; i++) {
                const struct recording_call *c = &f->calls[i];
                const struct recording_command *m =
                        command_of(by_event, f->r->command_count, c->event);
                uint64_t waited_ns, sent_ns = sends_at(f, c, &wait, &waited_ns);
                put_moves(f, c, sent_ns);
                if (m && fit_place_of(f, m->server) != REPLAY_NONE)
                        put_node(f,
                                 &(struct node){ .sent_ns = sent_ns,
                                                 .begin_ns = m->begin_ns,
                                                 .end_ns = later(m->begin_ns, m->end_ns),
                                                 .event = c->event,
                                                 .queue = m->queue,
                                                 .asked = m->asked || m->untimed,
                                                 .guessed = m->untimed,
                                                 .waited_ns = waited_ns,
                                                 .command = m },
                                 c->thread);
        }
        sort_nodes(f);
        for (size_t i = 0; i < f->node_count; i++)
                f->events[i] = (struct event_index){ f->nodes[i].event, (uint32_t)i };
        qsort(f->events, f->node_count, sizeof(*f->events), events_by_number);
}

/* Find the time from which on no kind of record is missing. Threads with few calls have lost none. */
static uint64_t complete_from(const struct fitting *f)
{
        uint64_t commands = UINT64_MAX, waits = UINT64_MAX, calls = 0;
        for (size_t i = 0; i < f->r->command_count; i++)
                if (f->r->commands[i].begin_ns < commands)
                        commands = f->r->commands[i].begin_ns;
        for (size_t i = 0; i < f->wait_count; i++)
                if (f->waits[i].begin_ns < waits)
                        waits = f->waits[i].begin_ns;
        for (size_t i = 0, end; i < f->call_count; i = end) {
                for (end = i; end < f->call_count && f->calls[end].thread == f->calls[i].thread;)
                        end++;
                if (end - i >= MANY_CALLS)
                        calls = later(calls, f->calls[i].begin_ns);
        }
        return later(calls,
                     later(commands < UINT64_MAX ? commands : 0, waits < UINT64_MAX ? waits : 0));
}

/* Older records are missing: leave out those of other kinds, too. */
static void leave_out_older(struct fitting *f)
{
        uint64_t from = complete_from(f);
        size_t calls = 0, waits = 0;
        for (size_t i = 0; i < f->call_count; i++)
                if (f->calls[i].begin_ns >= from)
                        f->calls[calls++] = f->calls[i];
        for (size_t i = 0; i < f->wait_count; i++)
                if (f->waits[i].begin_ns >= from)
                        f->waits[waits++] = f->waits[i];
        f->call_count = calls;
        f->wait_count = waits;
}

int fit_nodes(struct fitting *f)
{
        size_t count = f->r->command_count;
        const struct recording_command **by_event = mem_alloc((count + 1) * sizeof(*by_event));
        if (!by_event)
                return SP_E_NOMEM;
        qsort(f->calls, f->call_count, sizeof(*f->calls), calls_by_time);
        qsort(f->waits, f->wait_count, sizeof(*f->waits), waits_by_time);
        qsort(f->moves, f->r->move_count, sizeof(*f->moves), moves_by_time);
        if (f->r->dropped)
                leave_out_older(f);
        for (size_t i = 0; i < count; i++)
                by_event[i] = &f->r->commands[i];
        qsort(by_event, count, sizeof(*by_event), commands_by_event);
        put_nodes(f, by_event);
        mem_free(by_event);
        return 0;
}
