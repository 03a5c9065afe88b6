#include "cli/replay/fitting.h"

#include <stdlib.h>

enum {
        MESSAGE_MIN = 64, /* bytes of a command's message */
        MESSAGE_MAX = 1024,
        RATE_BYTES = 64 << 10, /* smaller transfers tell nothing of a link's rate */
};

/* ---- the recorded links --------------------------------------------------------------------- */

static enum recording_way way_of(const struct node *n)
{
        if (n->command)
                return (enum recording_way)n->command->way;
        return n->move->from == LEDGER_SERVERS ? RECORDING_UP : RECORDING_STAYS;
}

static uint64_t size_of(const struct node *n)
{
        return n->command ? n->command->bytes : n->move->bytes;
}

/* The time that the data of a transfer took, and perhaps a little more. 0: it is not known. The source is a call that
 * waits for the data that it reads, or for the answer to the data that it writes. `from_ns`: when the link was free. */
static uint64_t transfer_ns(const struct node *n, uint64_t trip_ns, uint64_t from_ns)
{
        if (way_of(n) == RECORDING_UP && n->waited_ns)
                return minus(n->waited_ns, later(from_ns, n->sent_ns) + trip_ns);
        if (way_of(n) == RECORDING_UP)
                return minus(n->end_ns, later(from_ns, n->sent_ns) + trip_ns / 2);
        return minus(n->waited_ns, later(from_ns, n->begin_ns) + trip_ns / 2);
}

void fit_links(struct fitting *f)
{
        for (size_t i = 0; i < f->ledger->server_count; i++) {
                const struct ledger_file_server *s = &f->ledger->servers[i];
                f->links[i].round_trip_ns =
                        s->round_trip_ns < REPLAY_TRIP_MAX ? s->round_trip_ns : REPLAY_TRIP_MAX;
        }
        for (size_t i = 0; i < f->node_count; i++) {
                const struct node *n = &f->nodes[i];
                struct replay_link *l = &f->links[fit_server_of(f, n)];
                uint64_t ns = transfer_ns(n, l->round_trip_ns, 0);
                if (size_of(n) < RATE_BYTES || way_of(n) == RECORDING_STAYS || !ns)
                        continue;
                double rate = (double)size_of(n) * 1e9 / (double)ns;
                if (rate < 1e15)
                        l->bytes_per_s = later(l->bytes_per_s, (uint64_t)rate);
        }
        for (size_t i = 0; i < f->ledger->server_count; i++)
                f->servers[i].bytes_per_s = f->links[i].bytes_per_s;
}

/* The mean size of a message to a server, of which the data in messages and bulk has `data` bytes. */
static uint32_t message_bytes(const struct ledger_file_server *s, uint64_t data)
{
        uint64_t mean = s->messages ? minus(s->sent, data) / s->messages : 0;
        return mean < MESSAGE_MIN ? MESSAGE_MIN : mean > MESSAGE_MAX ? MESSAGE_MAX : (uint32_t)mean;
}

/* ---- servers -------------------------------------------------------------------------------- */

static bool is_kernel(const struct node *n)
{
        return n->command && n->command->kernel;
}

/* Kernels first, by server and begin. */
static int kernels_by_begin(const void *a, const void *b)
{
        const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
        if (is_kernel(x) != is_kernel(y))
                return is_kernel(x) ? -1 : 1;
        if (is_kernel(x) && x->command->server != y->command->server)
                return x->command->server < y->command->server ? -1 : 1;
        return x->begin_ns != y->begin_ns ? compare(x->begin_ns, y->begin_ns) : (x > y) - (x < y);
}

/* Execute the kernels of a server on `slots` slots, at their recorded times. False: they need more. The last tenth of a
 * kernel does not count, because the clocks are measured again now and then. Guessed times don't, either. `ret`: for
 * each command, when its slot became free. */
static bool fits(const struct fitting *f, const struct node *const *all, size_t count,
                 uint32_t slots, uint64_t *ret)
{
        uint64_t ends[REPLAY_SLOTS_MAX] = { 0 }, counted[REPLAY_SLOTS_MAX] = { 0 };
        for (size_t i = 0; i < count; i++) {
                uint32_t first = 0;
                for (uint32_t k = 1; k < slots; k++)
                        if (ends[k] < ends[first])
                                first = k;
                if (counted[first] > all[i]->begin_ns && slots < REPLAY_SLOTS_MAX &&
                    !all[i]->guessed)
                        return false;
                ret[all[i] - f->nodes] = ends[first];
                ends[first] = all[i]->end_ns;
                if (!all[i]->guessed)
                        counted[first] =
                                all[i]->begin_ns + (all[i]->end_ns - all[i]->begin_ns) / 10 * 9;
        }
        return true;
}

void fit_slots(const struct fitting *f, const struct node **order, uint64_t *ret)
{
        size_t count = f->node_count, end;
        for (size_t i = 0; i < count; i++) {
                order[i] = &f->nodes[i];
                ret[i] = 0;
        }
        qsort(order, count, sizeof(*order), kernels_by_begin);
        for (size_t i = 0; i < count && is_kernel(order[i]); i = end) {
                uint32_t server = fit_server_of(f, order[i]), slots = 1;
                for (end = i + 1; end < count && is_kernel(order[end]) &&
                                  fit_server_of(f, order[end]) == server;)
                        end++;
                while (!fits(f, order + i, end - i, slots, ret))
                        slots += (slots + 3) / 4 < REPLAY_SLOTS_MAX - slots
                                         ? (slots + 3) / 4
                                         : REPLAY_SLOTS_MAX - slots;
                f->servers[server].slots = slots;
        }
}

/* ---- commands ------------------------------------------------------------------------------- */

/* The state of the recorded link to a server, and of its commands. */
struct line {
        uint64_t messages_ns, up_ns, down_ns; /* when messages and bulk data have left */
        uint64_t up_bytes;                    /* of all commands */
        uint32_t message_bytes;
        bool open;
};

static void depend(struct fitting *f, struct replay_command *m, uint32_t on)
{
        if (on == REPLAY_NONE || f->after_count == REPLAY_ENTRIES_MAX)
                return;
        f->after[f->after_count++] = on;
        m->after_count++;
}

/* The command that wrote the bytes of a move: of the commands of the move's source, the last one that ended before. */
static uint32_t source_of(const struct fitting *f, const struct node *n, uint32_t i)
{
        uint32_t best = REPLAY_NONE, server = fit_place_of(f, n->move->from);
        for (uint32_t k = 0; server != REPLAY_NONE && k < FIT_LOOK_BACK && k < i; k++) {
                const struct node *o = &f->nodes[i - 1 - k];
                if (fit_server_of(f, o) == server && o->end_ns <= n->begin_ns &&
                    (best == REPLAY_NONE || o->end_ns > f->nodes[best].end_ns))
                        best = i - 1 - k;
        }
        return best;
}

static void find_dependencies(struct fitting *f, uint32_t i, uint32_t before)
{
        const struct node *n = &f->nodes[i];
        struct replay_command *m = &f->commands[i];
        m->after = (uint32_t)f->after_count;
        if (n->move) {
                depend(f, m, source_of(f, n, i));
                return;
        }
        depend(f, m, before);
        for (unsigned k = 0; k < n->command->after_count; k++) {
                uint32_t on = fit_node_of(f, n->command->after[k]);
                if (on != REPLAY_NONE && on < i && on != before)
                        depend(f, m, on);
        }
}

static uint64_t travel_ns(const struct replay_link *l, uint64_t bytes)
{
        double ns = l->bytes_per_s ? (double)bytes * 1e9 / (double)l->bytes_per_s : 0;
        return ns < (double)REPLAY_TIME_MAX ? (uint64_t)ns : REPLAY_TIME_MAX;
}

static void fit_times(struct fitting *f, uint32_t i, struct line *line, uint64_t slot_ns)
{
        struct node *n = &f->nodes[i];
        struct replay_command *m = &f->commands[i];
        const struct replay_link *l = &f->links[m->server];
        uint64_t half = l->round_trip_ns / 2;
        bool bulk = m->up_bytes > REPLAY_INLINE, reads = m->down_bytes > REPLAY_INLINE;
        line->messages_ns = later(line->messages_ns, n->sent_ns) +
                            travel_ns(l, m->message_bytes + (bulk ? 0 : m->up_bytes));
        uint64_t at = later(line->messages_ns + half, slot_ns);
        uint64_t opened = n->sent_ns + (m->opens ? REPLAY_OPEN_TRIPS * l->round_trip_ns : 0);
        if (bulk) {
                m->carry_ns = travel_ns(l, m->up_bytes);
                if (n->waited_ns)
                        m->carry_ns = later(m->carry_ns, transfer_ns(n, l->round_trip_ns,
                                                                     later(line->up_ns, opened)));
                line->up_ns = later(line->up_ns, opened) + m->carry_ns;
                n->data_ns = line->up_ns + half;
        } else if (m->opens) {
                n->data_ns = opened - half;
        }
        for (uint32_t k = 0; k < m->after_count; k++)
                at = later(at, f->nodes[f->after[m->after + k]].end_ns);
        if (n->end_ns == n->begin_ns && n->move) /* its times are not known */
                n->begin_ns = n->end_ns = later(at, n->data_ns);
        m->before_ns = minus(n->begin_ns, at);
        uint64_t begin = later(later(n->begin_ns, at), n->data_ns);
        m->device_ns = minus(n->end_ns, begin);
        n->known_ns = n->end_ns + half + (reads ? 0 : travel_ns(l, m->down_bytes));
        if (!reads)
                return;
        m->carry_ns =
                later(travel_ns(l, m->down_bytes), transfer_ns(n, l->round_trip_ns, line->down_ns));
        line->down_ns = later(line->down_ns, begin) + m->carry_ns;
        n->known_ns = later(n->known_ns, line->down_ns + half);
}

static void fit_command(struct fitting *f, uint32_t i, struct line *line, const uint64_t *slots)
{
        struct node *n = &f->nodes[i];
        struct replay_command *m = &f->commands[i];
        enum recording_way way = way_of(n);
        m->server = fit_server_of(f, n);
        m->kind = n->move ? REPLAY_MOVE : n->command->kernel ? REPLAY_KERNEL : REPLAY_OTHER;
        m->asked = n->asked;
        m->message_bytes = line->message_bytes;
        m->up_bytes = way == RECORDING_UP ? size_of(n) : 0;
        m->down_bytes = way == RECORDING_DOWN ? size_of(n) : 0;
        m->opens = !line->open && (m->up_bytes > REPLAY_INLINE || m->down_bytes > REPLAY_INLINE);
        line->open |= m->opens;
        find_dependencies(f, i, f->before[i]);
        fit_times(f, i, line, slots[i]);
}

/* The commands of each queue as they were sent. Nodes stand in that order, too. */
static int nodes_by_queue(const void *a, const void *b)
{
        const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
        if (!x->command != !y->command)
                return x->command ? -1 : 1;
        if (x->command && x->command->server != y->command->server)
                return x->command->server < y->command->server ? -1 : 1;
        return x->queue != y->queue ? compare(x->queue, y->queue) : (x > y) - (x < y);
}

static bool same_queue(const struct node *a, const struct node *b)
{
        return a->command && b->command && a->command->server == b->command->server &&
               a->queue == b->queue;
}

/* If commands of a queue ran at the same time, it has no order. */
int fit_before(struct fitting *f)
{
        size_t count = f->node_count, end;
        const struct node **order = mem_alloc((count + 1) * sizeof(*order));
        if (!order)
                return SP_E_NOMEM;
        for (size_t i = 0; i < count; i++)
                order[i] = &f->nodes[i];
        qsort(order, count, sizeof(*order), nodes_by_queue);
        for (size_t i = 0; i < count; i = end) {
                bool beside = !order[i]->command || order[i]->command->beside;
                for (end = i + 1; end < count && same_queue(order[i], order[end]); end++)
                        beside |= order[end]->command->beside;
                for (size_t k = i; k < end; k++)
                        f->before[order[k] - f->nodes] =
                                k > i && !beside ? (uint32_t)(order[k - 1] - f->nodes)
                                                 : REPLAY_NONE;
        }
        mem_free(order);
        return 0;
}

int fit_commands(struct fitting *f)
{
        size_t n = f->node_count + 1;
        struct line *lines = mem_zalloc((f->ledger->server_count + 1) * sizeof(*lines));
        const struct node **order = mem_alloc(n * sizeof(*order));
        uint64_t *slots = mem_alloc(n * sizeof(*slots));
        int r = lines && order && slots ? 0 : SP_E_NOMEM;
        if (r == 0) {
                for (size_t i = 0; i < f->node_count; i++)
                        if (way_of(&f->nodes[i]) == RECORDING_UP)
                                lines[fit_server_of(f, &f->nodes[i])].up_bytes +=
                                        size_of(&f->nodes[i]);
                for (size_t i = 0; i < f->ledger->server_count; i++)
                        lines[i].message_bytes =
                                message_bytes(&f->ledger->servers[i], lines[i].up_bytes);
                fit_slots(f, order, slots);
                for (uint32_t i = 0; i < f->node_count; i++)
                        fit_command(f, i, &lines[fit_server_of(f, &f->nodes[i])], slots);
        }
        mem_free(lines);
        mem_free(order);
        mem_free(slots);
        return r;
}
