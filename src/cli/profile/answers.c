#include "cli/profile/answers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
        FEW = 10,              /* fewer waits are no habit of the program */
        SMALL = 4096,          /* bytes of a transfer that is not worth a command */
        SHARE = 20,            /* advice is given for 1/20 of the time */
        SMALL_MANY = 100,      /* small transfers */
        PING_PONG = 4,         /* moves in each direction */
        COMMANDS_PER_WAIT = 4, /* fewer: the program synchronises */
};

/* ---- numbers -------------------------------------------------------------------------------- */

const char *answers_count(uint64_t n, char ret[ANSWERS_NUMBER_MAX])
{
        char digits[24];
        int count = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
        for (int i = 0; i < count; i++) {
                if (i && (count - i) % 3 == 0)
                        ret[at++] = ',';
                ret[at++] = digits[i];
        }
        ret[at] = 0;
        return ret;
}

const char *answers_time(uint64_t ns, char ret[ANSWERS_NUMBER_MAX])
{
        double t = (double)ns;
        if (ns < 10000)
                snprintf(ret, ANSWERS_NUMBER_MAX, "%.1f µs", t / 1e3);
        else if (ns < 1000000)
                snprintf(ret, ANSWERS_NUMBER_MAX, "%.0f µs", t / 1e3);
        else if (ns < 1000000000)
                snprintf(ret, ANSWERS_NUMBER_MAX, "%.1f ms", t / 1e6);
        else
                snprintf(ret, ANSWERS_NUMBER_MAX, "%.2f s", t / 1e9);
        return ret;
}

const char *answers_size(uint64_t bytes, char ret[ANSWERS_NUMBER_MAX])
{
        static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
        double size = (double)bytes / 1024;
        size_t unit = 0;
        if (bytes < 1024) {
                snprintf(ret, ANSWERS_NUMBER_MAX, "%" PRIu64 " B", bytes);
                return ret;
        }
        for (; size >= 1024 && unit + 1 < array_size(units); unit++)
                size /= 1024;
        snprintf(ret, ANSWERS_NUMBER_MAX, "%.1f %s", size, units[unit]);
        return ret;
}

uint64_t answers_cost_ns(const struct ledger_file_row *r)
{
        double ns = r->timed ? (double)r->device_ns / (double)r->timed * (double)r->count : 0;
        return ns < 1e15 ? (uint64_t)ns : 1000000000000000;
}

uint64_t answers_busy_ns(const struct ledger_file *l, uint64_t server)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < l->row_count; i++)
                /* A transfer runs as long as its bytes travel. */
                if (l->rows[i].server == server && (l->rows[i].kernel || !l->rows[i].bytes))
                        sum += answers_cost_ns(&l->rows[i]);
        return sum;
}

uint64_t answers_commands(const struct ledger_file *l, uint64_t server)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < l->row_count; i++)
                if (l->rows[i].server == server)
                        sum += l->rows[i].count;
        return sum;
}

/* ---- where the time went -------------------------------------------------------------------- */

static const struct ledger_file_server *server_at(const struct ledger_file *l, uint64_t index)
{
        for (size_t i = 0; i < l->server_count; i++)
                if (l->servers[i].index == index)
                        return &l->servers[i];
        return NULL;
}

static bool is_synchronisation(enum ledger_kind kind)
{
        return kind == LEDGER_FINISH || kind == LEDGER_EVENTS || kind == LEDGER_BLOCKING;
}

static void sum_up(const struct ledger_file *l, struct answers *a)
{
        uint64_t known = 0;
        a->wall_ns = l->wall_ns;
        a->client_ns = l->call_ns;
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *w = &l->all_waits[i];
                const struct ledger_file_server *s = server_at(l, w->server);
                a->device_ns += w->device_ns;
                a->link_ns += w->link_ns;
                a->server_ns += w->server_ns;
                known += w->device_ns + w->link_ns + w->server_ns;
                if (is_synchronisation(w->kind))
                        a->synchronisations += w->waits;
                /* A wait is as long as the way there and back, or data takes longer. */
                double latency = s ? (double)s->round_trip_ns * (double)w->waits : 0;
                if (w->kind != LEDGER_TAKEN)
                        a->latency_ns +=
                                latency < (double)w->link_ns ? (uint64_t)latency : w->link_ns;
        }
        a->bandwidth_ns = a->link_ns > a->latency_ns ? a->link_ns - a->latency_ns : 0;
        a->waiting_ns = l->wait_ns > known ? l->wait_ns - known : 0;
        uint64_t spent = l->call_ns + l->wait_ns;
        a->program_ns = l->wall_ns > spent ? l->wall_ns - spent : 0;
        for (size_t i = 0; i < l->row_count; i++)
                a->commands += l->rows[i].count;
}

static enum answers_bound bound_of(const struct answers *a)
{
        bool often =
                a->synchronisations >= FEW && a->commands < a->synchronisations * COMMANDS_PER_WAIT;
        const struct {
                uint64_t ns;
                enum answers_bound bound;
        } all[] = {
                { a->program_ns, BOUND_PROGRAM },
                { a->client_ns, BOUND_CLIENT },
                { a->device_ns, BOUND_DEVICE },
                { a->latency_ns, often ? BOUND_SYNCHRONISATION : BOUND_LATENCY },
                { a->bandwidth_ns, BOUND_BANDWIDTH },
                { a->server_ns, BOUND_SERVER },
                { a->waiting_ns, BOUND_WAITING },
        };
        enum answers_bound bound = BOUND_NOTHING;
        uint64_t most = 0;
        for (size_t i = 0; i < array_size(all); i++) {
                if (all[i].ns > most) {
                        most = all[i].ns;
                        bound = all[i].bound;
                }
        }
        return bound;
}

const char *answers_bound_name(enum answers_bound b)
{
        static const char *const names[] = {
                [BOUND_PROGRAM] = "program",
                [BOUND_CLIENT] = "client",
                [BOUND_DEVICE] = "device",
                [BOUND_LATENCY] = "latency",
                [BOUND_SYNCHRONISATION] = "synchronisation",
                [BOUND_BANDWIDTH] = "bandwidth",
                [BOUND_SERVER] = "server",
                [BOUND_WAITING] = "waiting",
                [BOUND_NOTHING] = "nothing",
        };
        return names[b];
}

/* ---- the dearest ---------------------------------------------------------------------------- */

/* Return the cost of a row: time of the device, and of calls that wait for it. */
static uint64_t weight(const struct ledger_file_row *r)
{
        uint64_t cost = answers_cost_ns(r);
        return cost > r->wait_ns ? cost : r->wait_ns;
}

static bool is_dearer(const struct ledger_file_row *a, const struct ledger_file_row *b)
{
        return weight(a) != weight(b) ? weight(a) > weight(b)
               : a->bytes != b->bytes ? a->bytes > b->bytes
                                      : a->count > b->count;
}

static size_t dearest(const struct ledger_file *l, bool kernels,
                      const struct ledger_file_row *ret[ANSWERS_TOP])
{
        size_t count = 0;
        for (size_t i = 0; i < l->row_count; i++) {
                const struct ledger_file_row *r = &l->rows[i];
                size_t at = count;
                if (r->kernel != kernels)
                        continue;
                while (at && is_dearer(r, ret[at - 1]))
                        at--;
                if (at == ANSWERS_TOP)
                        continue;
                count += count < ANSWERS_TOP;
                for (size_t k = count - 1; k > at; k--)
                        ret[k] = ret[k - 1];
                ret[at] = r;
        }
        return count;
}

/* ---- what to do ----------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void advise(struct answers *a, const char *fmt, ...)
{
        if (a->advice_count == ANSWERS_ADVICE)
                return;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(a->advice[a->advice_count++], ANSWERS_TEXT_MAX, fmt, ap);
        va_end(ap);
}

static bool is_worth(const struct answers *a, uint64_t ns)
{
        return ns && ns >= a->wall_ns / SHARE;
}

static unsigned percent(const struct answers *a, uint64_t ns)
{
        double share = a->wall_ns ? (double)ns * 100 / (double)a->wall_ns : 0;
        return share < 1e9 ? (unsigned)(share + 0.5) : 1000000000;
}

static const char *calls_of(enum ledger_kind kind)
{
        switch (kind) {
        case LEDGER_FINISH:
                return "clFinish calls";
        case LEDGER_EVENTS:
                return "clWaitForEvents calls";
        case LEDGER_BLOCKING:
                return "blocking commands";
        case LEDGER_TAKEN:
                return "blocking writes";
        default:
                return "calls";
        }
}

static void advise_waits(const struct ledger_file *l, struct answers *a)
{
        char n[ANSWERS_NUMBER_MAX], each[ANSWERS_NUMBER_MAX], all[ANSWERS_NUMBER_MAX];
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *w = &l->all_waits[i];
                const struct ledger_file_server *s = server_at(l, w->server);
                if (w->waits < FEW || w->kind > LEDGER_TAKEN || !is_worth(a, w->link_ns))
                        continue;
                bool data = w->kind == LEDGER_TAKEN ||
                            (s && w->link_ns / w->waits > 2 * s->round_trip_ns);
                advise(a, "%s %s waited %s each for the link to %s: %s, %u %% of the time. %s",
                       answers_count(w->waits, n), calls_of(w->kind),
                       answers_time(w->link_ns / w->waits, each), s ? s->name : "several servers",
                       answers_time(w->link_ns, all), percent(a, w->link_ns),
                       data ? "Transfer less, let transfers overlap with kernels (without blocking, "
                              "from another queue), or use a faster link."
                       : w->kind == LEDGER_FINISH || w->kind == LEDGER_EVENTS
                               ? "Enqueue more commands before each wait: a wait costs a round trip, "
                                 "however little it waits for. Or let waits return early: "
                                 "SPANCL_FINISH=optimistic."
                               : "Enqueue more commands before each wait: a wait costs a round trip, "
                                 "however little it waits for.");
        }
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *w = &l->all_waits[i];
                if (w->kind == LEDGER_ANSWER && is_worth(a, w->ns))
                        advise(a,
                               "%s builds and queries waited %s for %s: %u %% of the time. Keep programs "
                               "and kernels instead of making them again; servers cache builds (--cache).",
                               answers_count(w->waits, n), answers_time(w->ns, all),
                               ledger_server_name(l, w->server), percent(a, w->ns));
        }
}

size_t answers_buffer_number(const struct ledger_file *l, uint64_t id)
{
        size_t number = 1;
        for (size_t i = 0; i < l->move_count; i++) {
                bool known = l->moves[i].id >= id || !l->moves[i].id;
                for (size_t k = 0; k < i && !known; k++)
                        known = l->moves[k].id == l->moves[i].id;
                number += !known;
        }
        return number;
}

/* Memory that moves to and fro: one move, and the one back. */
struct ping_pong {
        const struct ledger_file_move *there, *back;
};

static uint64_t bytes_of_both(const struct ping_pong *p)
{
        return p->there->bytes + p->back->bytes;
}

/* Find those with the most bytes. Return how many were found. */
static size_t ping_pongs(const struct ledger_file *l, struct ping_pong ret[ANSWERS_MOVES])
{
        size_t count = 0;
        for (size_t i = 0; i < l->move_count; i++) {
                for (size_t k = 0; k < l->move_count; k++) {
                        const struct ping_pong p = { &l->moves[i], &l->moves[k] };
                        if (p.there->from_host || p.back->from_host || p.back->id != p.there->id ||
                            !p.there->id || p.back->from != p.there->to ||
                            p.back->to != p.there->from || p.there->from > p.there->to)
                                continue;
                        if (p.there->count < PING_PONG || p.back->count < PING_PONG ||
                            (p.there->from == p.there->to && k <= i))
                                continue;
                        size_t at = count;
                        while (at && bytes_of_both(&ret[at - 1]) < bytes_of_both(&p))
                                at--;
                        if (at == ANSWERS_MOVES)
                                continue;
                        count += count < ANSWERS_MOVES;
                        for (size_t m = count - 1; m > at; m--)
                                ret[m] = ret[m - 1];
                        ret[at] = p;
                }
        }
        return count;
}

static void advise_moves(const struct ledger_file *l, struct answers *a)
{
        char times[ANSWERS_NUMBER_MAX], size[ANSWERS_NUMBER_MAX], sum[ANSWERS_NUMBER_MAX];
        struct ping_pong all[ANSWERS_MOVES];
        size_t count = ping_pongs(l, all);
        for (size_t i = 0; i < count; i++)
                advise(a,
                       "buffer %zu (%s) migrates %s times between %s and %s, %s in all. Run the "
                       "kernels that use it on one server, or divide it between them.",
                       answers_buffer_number(l, all[i].there->id),
                       answers_size(all[i].there->size, size),
                       answers_count(all[i].there->count + all[i].back->count, times),
                       ledger_server_name(l, all[i].there->from),
                       ledger_server_name(l, all[i].there->to),
                       answers_size(bytes_of_both(&all[i]), sum));
}

static void advise_transfers(const struct ledger_file *l, struct answers *a)
{
        char n[ANSWERS_NUMBER_MAX], size[ANSWERS_NUMBER_MAX];
        for (size_t i = 0; i < l->row_count; i++) {
                const struct ledger_file_row *r = &l->rows[i];
                if (!r->kernel && r->bytes && r->count >= SMALL_MANY &&
                    r->bytes / r->count < SMALL && is_worth(a, r->wait_ns))
                        advise(a,
                               "%s commands `%s` to %s move %s each. Join them: a command costs more than "
                               "its bytes.",
                               answers_count(r->count, n), r->name,
                               ledger_server_name(l, r->server),
                               answers_size(r->bytes / r->count, size));
        }
}

static void advise_balance(const struct ledger_file *l, struct answers *a)
{
        const struct ledger_file_server *most = NULL, *least = NULL;
        uint64_t high = 0, low = UINT64_MAX;
        char first[ANSWERS_NUMBER_MAX], second[ANSWERS_NUMBER_MAX];
        for (size_t i = 0; i < l->server_count; i++) {
                uint64_t busy = answers_busy_ns(l, l->servers[i].index);
                if (!answers_commands(l, l->servers[i].index))
                        continue;
                if (busy > high) {
                        high = busy;
                        most = &l->servers[i];
                }
                if (busy < low) {
                        low = busy;
                        least = &l->servers[i];
                }
        }
        if (most && least && most != least && is_worth(a, high) && high - low > high / 3)
                advise(a,
                       "the devices of %s computed for %s, those of %s for %s. Divide the work by what "
                       "they can do.",
                       most->name, answers_time(high, first), least->name,
                       answers_time(low, second));
}

static void advise_bound(struct answers *a)
{
        char text[ANSWERS_NUMBER_MAX];
        if (a->bound == BOUND_DEVICE && a->kernel_count)
                advise(a,
                       "the program waits for its devices: %u %% of the time. The kernel `%s` costs most, "
                       "about %s in all. SpanCL has little to gain here; a second device has.",
                       percent(a, a->device_ns), a->kernels[0]->name,
                       answers_time(answers_cost_ns(a->kernels[0]), text));
        if (a->bound == BOUND_PROGRAM)
                advise(a,
                       "the program spends %u %% of the time in its own code, between OpenCL calls. Let "
                       "devices compute meanwhile.",
                       percent(a, a->program_ns));
        if (a->bound == BOUND_CLIENT)
                advise(a,
                       "the calls of clEnqueue* themselves take %u %% of the time. Use fewer and larger "
                       "commands, or a command buffer (cl_khr_command_buffer).",
                       percent(a, a->client_ns));
}

void answers_find(const struct ledger_file *l, struct answers *ret)
{
        *ret = (struct answers){ 0 };
        sum_up(l, ret);
        ret->bound = bound_of(ret);
        ret->kernel_count = dearest(l, true, ret->kernels);
        ret->transfer_count = dearest(l, false, ret->transfers);
        advise_waits(l, ret);
        advise_moves(l, ret);
        advise_transfers(l, ret);
        advise_balance(l, ret);
        advise_bound(ret);
}
