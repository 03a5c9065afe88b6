/* Launches that the recording has no times of, because timing all of them would make the program slower. Each one
 * takes as long as the median of the timed launches of the same kernel and size. It began when the command before it in
 * its queue had ended and its message was there. It had ended before the next timed one began, and before a wait for it
 * was over. */
#include "cli/replay/fitting.h"

#include <stdlib.h>

/* A launch that was timed. */
struct sample {
        uint64_t work, ns;
};

static int samples_by_work(const void *a, const void *b)
{
        const struct sample *x = a, *y = b;
        return x->work != y->work ? compare(x->work, y->work) : compare(x->ns, y->ns);
}

static size_t take_samples(const struct fitting *f, struct sample *ret)
{
        size_t count = 0;
        for (size_t i = 0; i < f->node_count; i++) {
                const struct node *n = &f->nodes[i];
                if (n->command && n->command->kernel && !n->guessed)
                        ret[count++] = (struct sample){ n->command->work, n->end_ns - n->begin_ns };
        }
        if (count)
                qsort(ret, count, sizeof(*ret), samples_by_work);
        return count;
}

/* The first sample of this work, or of greater numbers. */
static size_t first_of(const struct sample *all, size_t count, uint64_t work)
{
        size_t low = 0, high = count;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (all[middle].work < work)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static uint64_t median_of(const struct sample *all, size_t count, uint64_t work)
{
        size_t first = first_of(all, count, work), end = first_of(all, count, work + 1);
        return first < end ? all[first + (end - first) / 2].ns : 0;
}

/* For each node, the latest end that the waits for it leave. */
static void find_limits(const struct fitting *f, uint64_t *ret)
{
        for (size_t i = 0; i < f->node_count; i++)
                ret[i] = UINT64_MAX;
        for (size_t i = 0; i < f->wait_count; i++) {
                const struct recording_wait *w = &f->waits[i];
                uint32_t n = w->kind <= LEDGER_BLOCKING ? fit_node_of(f, w->event) : REPLAY_NONE;
                if (n == REPLAY_NONE || f->nodes[n].sent_ns > w->begin_ns)
                        continue;
                uint64_t half = f->links[fit_server_of(f, &f->nodes[n])].round_trip_ns / 2;
                uint64_t limit = minus(w->end_ns, half);
                ret[n] = limit < ret[n] ? limit : ret[n];
        }
}

/* Each queue's commands in the order in which they were sent. */
static int nodes_by_queue(const void *a, const void *b)
{
        const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
        if (x->command->server != y->command->server)
                return compare(x->command->server, y->command->server);
        return x->queue != y->queue ? compare(x->queue, y->queue) : (x > y) - (x < y);
}

static bool same_queue(const struct node *a, const struct node *b)
{
        return a->command->server == b->command->server && a->queue == b->queue;
}

/* Guess the times of `count` launches in a row, which began at `from_ns` or later, and had ended by `until_ns`. */
static void guess(const struct fitting *f, struct node *const *all, size_t count, uint64_t from_ns,
                  uint64_t until_ns, const uint64_t *limits, const uint64_t *medians)
{
        uint64_t at = from_ns;
        for (size_t i = 0; i < count; i++) {
                struct node *n = all[i];
                uint64_t half = f->links[fit_server_of(f, n)].round_trip_ns / 2;
                n->begin_ns = later(at, n->sent_ns + half);
                n->end_ns = at = n->begin_ns + medians[n - f->nodes];
        }
        for (size_t i = count; i-- > 0;) {
                struct node *n = all[i];
                uint64_t ns = n->end_ns - n->begin_ns, limit = limits[n - f->nodes];
                until_ns = later(limit < until_ns ? limit : until_ns, from_ns);
                if (n->end_ns > until_ns) {
                        n->end_ns = until_ns;
                        n->begin_ns = later(minus(until_ns, ns), from_ns);
                }
                until_ns = n->begin_ns;
        }
}

static void guess_all(const struct fitting *f, struct node **order, size_t count,
                      const uint64_t *limits, const uint64_t *medians)
{
        for (size_t i = 0, end; i < count; i = end) {
                end = i + 1;
                if (!order[i]->guessed)
                        continue;
                while (end < count && order[end]->guessed && same_queue(order[i], order[end]))
                        end++;
                bool after = i && same_queue(order[i - 1], order[i]);
                bool before = end < count && same_queue(order[i], order[end]);
                guess(f, order + i, end - i, after ? order[i - 1]->end_ns : 0,
                      before ? order[end]->begin_ns : UINT64_MAX, limits, medians);
        }
}

int fit_untimed(struct fitting *f)
{
        size_t n = f->node_count + 1, count = 0;
        struct sample *samples = mem_alloc(n * sizeof(*samples));
        struct node **order = mem_alloc(n * sizeof(struct node *));
        uint64_t *limits = mem_alloc(n * sizeof(*limits)),
                 *medians = mem_alloc(n * sizeof(*medians));
        int r = samples && order && limits && medians ? 0 : SP_E_NOMEM;
        if (r == 0) {
                size_t sample_count = take_samples(f, samples);
                find_limits(f, limits);
                for (size_t i = 0; i < f->node_count; i++) {
                        if (!f->nodes[i].command)
                                continue;
                        order[count++] = &f->nodes[i];
                        medians[i] = f->nodes[i].guessed ? median_of(samples, sample_count,
                                                                     f->nodes[i].command->work)
                                                         : 0;
                }
                if (count)
                        qsort(order, count, sizeof(struct node *), nodes_by_queue);
                guess_all(f, order, count, limits, medians);
        }
        mem_free(samples);
        mem_free(order);
        mem_free(limits);
        mem_free(medians);
        return r;
}
