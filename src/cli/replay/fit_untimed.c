/* Launches that the recording has no times of, because timing all of them would make the program slower. Each one
 * takes as long as the median of the timed launches that are most like it. It began when what it depends on had ended,
 * its message was there, and its server had a free slot. It had ended before a timed command began that depends on it,
 * and before a wait for it was over. */
#include "cli/replay/fitting.h"

#include <stdlib.h>

/* A launch that was timed, by one of its works. */
struct sample {
        uint64_t work, ns;
};

struct guess {
        struct sample *samples;
        size_t sample_count;
        const struct node **order;
        uint64_t *slots;  /* for fit_slots; then of each server, when its slots are free */
        uint64_t *limits; /* of each node, its latest end */
        uint64_t *floors; /* of each node, the end of the timed ones that it depends on */
};

static int samples_by_work(const void *a, const void *b)
{
        const struct sample *x = a, *y = b;
        return x->work != y->work ? compare(x->work, y->work) : compare(x->ns, y->ns);
}

/* Also of commands whose call is not in the recording. */
static void take_samples(const struct recording *r, struct guess *g)
{
        for (size_t i = 0; i < r->command_count; i++) {
                const struct recording_command *c = &r->commands[i];
                for (unsigned k = 0; k < RECORDING_WORKS && c->kernel && !c->untimed; k++)
                        g->samples[g->sample_count++] =
                                (struct sample){ c->works[k], minus(c->end_ns, c->begin_ns) };
        }
        if (g->sample_count)
                qsort(g->samples, g->sample_count, sizeof(*g->samples), samples_by_work);
}

/* The first sample of this work, or of greater numbers. */
static size_t first_of(const struct guess *g, uint64_t work)
{
        size_t low = 0, high = g->sample_count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (g->samples[middle].work < work)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* 0: no launch of this kernel was timed. */
static uint64_t median_of(const struct guess *g, const struct recording_command *c)
{
        for (unsigned k = 0; k < RECORDING_WORKS; k++) {
                size_t first = first_of(g, c->works[k]), end = first_of(g, c->works[k] + 1);
                if (first < end)
                        return g->samples[first + (end - first) / 2].ns;
        }
        return 0;
}

static void find_limits(const struct fitting *f, const struct guess *g)
{
        for (size_t i = 0; i < f->node_count; i++)
                g->limits[i] = UINT64_MAX;
        for (size_t i = 0; i < f->wait_count; i++) {
                const struct recording_wait *w = &f->waits[i];
                uint32_t n = w->kind <= LEDGER_BLOCKING ? fit_node_of(f, w->event) : REPLAY_NONE;
                if (n == REPLAY_NONE || f->nodes[n].sent_ns > w->begin_ns)
                        continue;
                uint64_t half = f->links[fit_server_of(f, &f->nodes[n])].round_trip_ns / 2;
                uint64_t limit = minus(w->end_ns, half);
                g->limits[n] = limit < g->limits[n] ? limit : g->limits[n];
        }
}

static unsigned dependency_count(const struct node *n)
{
        return n->command ? 1u + n->command->after_count : 0;
}

/* The k-th command that node `i` depends on; REPLAY_NONE: there is none. */
static uint32_t dependency(const struct fitting *f, size_t i, unsigned k)
{
        const struct recording_command *c = f->nodes[i].command;
        uint32_t on = k ? fit_node_of(f, c->after[k - 1]) : f->before[i];
        return on < i ? on : REPLAY_NONE;
}

/* The slot of the server that is free first. */
static uint64_t *free_slot(const struct fitting *f, const struct guess *g, const struct node *n)
{
        uint32_t server = fit_server_of(f, n);
        uint64_t *slots = g->slots + (size_t)server * REPLAY_SLOTS_MAX, *first = slots;
        for (uint32_t i = 1; i < f->servers[server].slots; i++)
                if (slots[i] < *first)
                        first = &slots[i];
        return first;
}

/* As early as possible, in the order in which they were sent. */
static void guess_begin(const struct fitting *f, const struct guess *g, size_t i)
{
        struct node *n = &f->nodes[i];
        uint64_t *slot = n->command && n->command->kernel ? free_slot(f, g, n) : NULL;
        uint64_t begin = n->sent_ns + f->links[fit_server_of(f, n)].round_trip_ns / 2;
        g->floors[i] = 0;
        for (unsigned k = 0; k < dependency_count(n); k++) {
                uint32_t on = dependency(f, i, k);
                if (on == REPLAY_NONE)
                        continue;
                const struct node *o = &f->nodes[on];
                begin = later(begin, o->end_ns);
                g->floors[i] = later(g->floors[i], o->guessed ? g->floors[on] : o->end_ns);
        }
        if (n->guessed) {
                uint64_t ns = median_of(g, n->command);
                n->begin_ns = slot ? later(begin, *slot) : begin;
                n->end_ns = n->begin_ns + (ns < REPLAY_TIME_MAX ? ns : REPLAY_TIME_MAX);
                if (n->end_ns > REPLAY_TIME_MAX)
                        n->begin_ns = n->end_ns = REPLAY_TIME_MAX;
        }
        if (slot)
                *slot = later(*slot, n->end_ns);
}

/* Not later than the limits allow; the last ones first. */
static void guess_end(const struct fitting *f, const struct guess *g, size_t i)
{
        struct node *n = &f->nodes[i];
        if (n->guessed && n->end_ns > g->limits[i]) {
                uint64_t ns = n->end_ns - n->begin_ns;
                n->end_ns = later(g->limits[i], g->floors[i]);
                n->begin_ns = later(minus(n->end_ns, ns), g->floors[i]);
        }
        for (unsigned k = 0; k < dependency_count(n); k++) {
                uint32_t on = dependency(f, i, k);
                if (on != REPLAY_NONE && n->begin_ns < g->limits[on])
                        g->limits[on] = n->begin_ns;
        }
}

static void guess_all(struct fitting *f, struct guess *g, size_t slot_count)
{
        take_samples(f->r, g);
        find_limits(f, g);
        fit_slots(f, g->order, g->slots);
        for (size_t i = 0; i < slot_count; i++)
                g->slots[i] = 0;
        for (size_t i = 0; i < f->node_count; i++)
                guess_begin(f, g, i);
        for (size_t i = f->node_count; i-- > 0;)
                guess_end(f, g, i);
}

int fit_untimed(struct fitting *f)
{
        size_t n = f->node_count + 1, slots = (f->ledger->server_count + 1) * REPLAY_SLOTS_MAX;
        size_t samples = (f->r->command_count + 1) * RECORDING_WORKS;
        struct guess g = {
                .samples = mem_alloc(samples * sizeof(*g.samples)),
                .order = mem_alloc(n * sizeof(struct node *)),
                .slots = mem_alloc((n > slots ? n : slots) * sizeof(*g.slots)),
                .limits = mem_alloc(n * sizeof(*g.limits)),
                .floors = mem_alloc(n * sizeof(*g.floors)),
        };
        int r = g.samples && g.order && g.slots && g.limits && g.floors ? 0 : SP_E_NOMEM;
        if (r == 0)
                guess_all(f, &g, slots);
        mem_free(g.samples);
        mem_free(g.order);
        mem_free(g.slots);
        mem_free(g.limits);
        mem_free(g.floors);
        return r;
}
