#include "cli/replay/fitting.h"

#include <stdlib.h>

static int items_by_time(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        return x->thread != y->thread       ? compare(x->thread, y->thread)
               : x->begin_ns != y->begin_ns ? compare(x->begin_ns, y->begin_ns)
               : !x->wait != !y->wait       ? (x->wait ? 1 : -1)
                                            : compare(x->event, y->event);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* The command for which a wait without a known command waits: of the sent commands of the server, the one that
 * ended last. */
static uint32_t last_of(const struct fitting *f, uint32_t server, uint64_t before_ns)
{
        uint32_t best = REPLAY_NONE;
        size_t low = 0, high = f->node_count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (f->nodes[middle].sent_ns <= before_ns)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (size_t k = 0; k < FIT_LOOK_BACK && k < low; k++) {
                uint32_t i = (uint32_t)(low - 1 - k);
                if (fit_server_of(f, &f->nodes[i]) == server &&
                    (best == REPLAY_NONE || f->nodes[i].end_ns > f->nodes[best].end_ns))
                        best = i;
        }
        return best;
}

/* The command for which a wait waits; REPLAY_NONE: none is known. */
static uint32_t awaited(const struct fitting *f, const struct recording_wait *w)
{
        uint32_t server = fit_place_of(f, w->server), target = fit_node_of(f, w->event);
        if (target == REPLAY_NONE && w->kind == LEDGER_FINISH && server != REPLAY_NONE)
                target = last_of(f, server, w->begin_ns);
        return target == REPLAY_NONE || f->nodes[target].sent_ns > w->begin_ns ? REPLAY_NONE
                                                                               : target;
}

/* When a thread that waits knows that the command is complete. If nobody tells, it asks. */
static uint64_t known_ns(const struct fitting *f, const struct node *n, uint64_t waits_ns)
{
        uint64_t half = f->links[fit_server_of(f, n)].round_trip_ns / 2;
        return n->asked ? later(n->known_ns, waits_ns + 2 * half) : n->known_ns;
}

/* Make a step of a wait. False: the replay has nothing for which it waits, so it is the program's own time. */
static bool fit_wait(const struct fitting *f, const struct item *i, uint32_t last_sent,
                     struct replay_step *step)
{
        const struct recording_wait *w = i->wait;
        uint32_t server = fit_place_of(f, w->server), target;
        uint64_t ns = w->end_ns - w->begin_ns, trip, known;
        switch (w->kind) {
        case LEDGER_FINISH:
        case LEDGER_EVENTS:
        case LEDGER_BLOCKING:
                target = awaited(f, w);
                if (target == REPLAY_NONE)
                        return false;
                step->action = REPLAY_WAIT;
                step->target = target;
                known = known_ns(f, &f->nodes[target], w->begin_ns);
                step->ns = minus(w->end_ns, later(w->begin_ns, known));
                step->slept_ns = minus(known, w->begin_ns);
                return true;
        case LEDGER_TAKEN:
                if (last_sent == REPLAY_NONE || f->nodes[last_sent].sent_ns > w->begin_ns)
                        return false;
                trip = f->links[fit_server_of(f, &f->nodes[last_sent])].round_trip_ns;
                step->action = REPLAY_TAKEN;
                step->target = last_sent;
                step->ns = minus(w->end_ns,
                                 later(w->begin_ns, f->nodes[last_sent].data_ns + trip / 2));
                return true;
        case LEDGER_ANSWER:
                if (server == REPLAY_NONE)
                        return false;
                /* An earlier answer had an earlier request, as the answers of several servers to a build. */
                trip = f->links[server].round_trip_ns;
                step->action = REPLAY_ANSWER;
                step->target = server;
                step->trips = ns >= trip;
                step->ns = step->trips ? ns - trip : ns;
                return true;
        default:
                return false;
        }
}

static uint32_t node_sent(const struct fitting *f, const struct item *i)
{
        uint32_t n = fit_node_of(f, i->event);
        /* An event may be named twice, but only one of them is a node. */
        return n != REPLAY_NONE && f->nodes[n].sent_ns == i->begin_ns && !f->sent[n] ? n
                                                                                     : REPLAY_NONE;
}

/* The steps of a thread from item `i` on. Returns the item behind them. */
static size_t put_thread(struct fitting *f, struct replay_run *run, size_t i)
{
        struct replay_thread *t = &f->threads[f->thread_count++];
        uint64_t thread = f->items[i].thread, now = f->items[i].begin_ns;
        uint32_t last_sent = REPLAY_NONE;
        *t = (struct replay_thread){ .first = (uint32_t)run->step_count,
                                     .after_step = REPLAY_NONE,
                                     .begin_ns = now };
        for (; i < f->item_count && f->items[i].thread == thread; i++) {
                const struct item *it = &f->items[i];
                struct replay_step step = { .own_ns = minus(it->begin_ns, now) };
                if (it->wait && (it->begin_ns < now || !fit_wait(f, it, last_sent, &step)))
                        continue;
                if (!it->wait) {
                        last_sent = node_sent(f, it);
                        if (last_sent == REPLAY_NONE)
                                continue;
                        f->sent[last_sent] = true;
                        step.action = REPLAY_SEND;
                        step.target = last_sent;
                }
                now = later(now, it->end_ns);
                f->step_ends[run->step_count] = now;
                f->steps[run->step_count++] = step;
        }
        t->count = (uint32_t)run->step_count - t->first;
        return i;
}

struct ending {
        uint64_t ns;
        uint32_t step;
};

static int endings_by_time(const void *a, const void *b)
{
        const struct ending *x = a, *y = b;
        return x->ns != y->ns ? compare(x->ns, y->ns) : compare(x->step, y->step);
}

/* If a thread begins after others, one of them has made it. It begins after their last step that had ended. */
static int join_threads(struct fitting *f, const struct replay_run *run, uint64_t begin_ns)
{
        struct ending *endings = mem_alloc((run->step_count + 1) * sizeof(*endings));
        if (!endings)
                return SP_E_NOMEM;
        for (size_t i = 0; i < run->step_count; i++)
                endings[i] = (struct ending){ f->step_ends[i], (uint32_t)i };
        qsort(endings, run->step_count, sizeof(*endings), endings_by_time);
        for (size_t i = 0; i < f->thread_count; i++) {
                struct replay_thread *t = &f->threads[i];
                size_t low = 0, high = run->step_count;
                while (low < high) {
                        size_t middle = low + (high - low) / 2;
                        if (endings[middle].ns < t->begin_ns)
                                low = middle + 1;
                        else
                                high = middle;
                }
                uint64_t after = low ? endings[low - 1].ns : begin_ns;
                if (low)
                        t->after_step = endings[low - 1].step;
                t->begin_ns = minus(t->begin_ns, after);
        }
        mem_free(endings);
        return 0;
}

static void put_waits(struct fitting *f)
{
        for (size_t i = 0; i < f->wait_count; i++) {
                const struct recording_wait *w = &f->waits[i];
                if (w->kind != LEDGER_ROOM && w->end_ns >= w->begin_ns)
                        f->items[f->item_count++] = (struct item){ .thread = w->thread,
                                                                   .begin_ns = w->begin_ns,
                                                                   .end_ns = w->end_ns,
                                                                   .wait = w };
        }
        qsort(f->items, f->item_count, sizeof(*f->items), items_by_time);
}

int fit_threads(struct fitting *f, struct replay_run *run, uint64_t *ret_span_ns)
{
        uint64_t begin = UINT64_MAX, end = 0;
        put_waits(f);
        for (size_t i = 0; i < f->item_count;) {
                if (f->thread_count == REPLAY_THREADS_MAX)
                        return SP_E_LIMIT;
                begin = f->items[i].begin_ns < begin ? f->items[i].begin_ns : begin;
                i = put_thread(f, run, i);
        }
        for (size_t i = 0; i < run->step_count; i++)
                end = later(end, f->step_ends[i]);
        if (!run->step_count)
                return SP_E_NOENT;
        if (run->step_count > REPLAY_ENTRIES_MAX)
                return SP_E_LIMIT;
        *ret_span_ns = end - begin;
        return join_threads(f, run, begin);
}
