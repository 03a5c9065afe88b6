#include "core/profile/profile.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "config/variables.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/queue.h"
#include "core/link/server.h"
#include "core/memory/placement.h"
#include "core/profile/journal.h"
#include "core/profile/ledger.h"
#include "os/clock.h"

enum {
        TIMED_FIRST = 16, /* launches of a kernel */
        TIMED_EACH = 16,  /* one of so many after them */
        LARGE = 1 << 20,  /* bytes from which on a command travels in parts */
};

enum { TIMES_SOME = 2 }; /* of SPANCL_TRACE_TIMES */

bool profile_on, profile_timing;
static bool journal_only; /* nothing will ask for the ledger */
static bool some;         /* the journal, too, has only some launches timed */
struct ledger profile_ledger;

/* Of this thread: its waits so far, and the last one. */
static _Thread_local uint64_t waited_ns;
static _Thread_local struct {
        uint64_t begin_ns, ns;
} last;

void profile_start(void) LOCK_UNCHECKED
{
        bool ledger = *config_text(CONFIG_profile_file) != 0, journal = journal_start();
        profile_on = ledger || journal;
        journal_only = journal && !ledger;
        profile_timing = ledger || (journal && config_number(CONFIG_trace_times));
        some = ledger && journal && config_number(CONFIG_trace_times) == TIMES_SOME;
        profile_ledger.begin_ns = clock_now_ns();
}

void profile_stop(void)
{
        profile_on = false;
}

/* ---- tables --------------------------------------------------------------------------------- */

static struct ledger_row *row_of(const struct server *s, const char *name, bool kernel)
        REQUIRES(client_held)
{
        uint64_t h = hash_text(hash_number(kernel, s->index), name);
        /* An entry has few places, so that a full table costs little. */
        for (unsigned i = 0; i < 8; i++) {
                struct ledger_row *r = &profile_ledger.rows[1 + (h + i) % (LEDGER_ROWS - 1)];
                if (!r->used) {
                        r->used = true;
                        r->kernel = kernel;
                        r->server = s->index;
                        snprintf(r->name, sizeof(r->name), "%s", name);
                }
                if (r->server == s->index && r->kernel == kernel &&
                    !strncmp(r->name, name, sizeof(r->name) - 1))
                        return r;
        }
        struct ledger_row *others = &profile_ledger.rows[0];
        others->used = true;
        others->server = CLIENT_SERVERS_MAX;
        snprintf(others->name, sizeof(others->name), "(others)");
        return others;
}

void profile_move(const struct _cl_mem *root, const struct share *share, const struct server *to,
                  uint64_t event)
{
        journal_move(root, share, to, event);
        if (journal_only)
                return;
        int from = share->server == PLACEMENT_HOST ? LEDGER_HOST : (int)share->server;
        uint64_t h = hash_number(hash_number(hash_number(0, root->id), (uint64_t)from), to->index);
        struct ledger_move *m = &profile_ledger.moves[0];
        for (unsigned i = 0; i < 8; i++) {
                struct ledger_move *at = &profile_ledger.moves[1 + (h + i) % (LEDGER_MOVES - 1)];
                if (!at->used)
                        *at = (struct ledger_move){ .used = true,
                                                    .id = root->id,
                                                    .size = root->size,
                                                    .from = from,
                                                    .to = to->index };
                if (at->id == root->id && at->from == from && at->to == to->index) {
                        m = at;
                        break;
                }
        }
        profile_ledger.carried[to->index] += share->part.end - share->part.begin;
        m->used = true;
        m->count++;
        m->bytes += share->part.end - share->part.begin;
}

/* ---- waits ---------------------------------------------------------------------------------- */

void profile_waited(struct client *c, uint64_t begin_ns)
{
        last.begin_ns = begin_ns;
        last.ns = begin_ns ? client_now_ns(c) - begin_ns : 0;
        waited_ns += last.ns;
        profile_ledger.waits += last.ns != 0;
        profile_ledger.wait_ns += last.ns;
}

/* The length that two spans have in common. */
static uint64_t overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
        uint64_t begin = a > b ? a : b, end = a_end < b_end ? a_end : b_end;
        return end > begin ? end - begin : 0;
}

/* Return true if the command is none of the application, but a marker that its wait needs. */
static bool is_own_marker(const struct _cl_event *e)
{
        return e && e->command == CL_COMMAND_MARKER && !e->profile_row && !e->stands_in;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Divide the last wait, of a command with `bytes` or 0. The command's times are on the client's clock. The time in
 * which it waits in the server counts as the device's if commands were before it. A large transfer runs on the device
 * as long as its bytes travel, so this is the link's time. The remainder is the way there and back. It is the link's if
 * data travels; of that, commands before this one take what they took at other times. Without data at most a round
 * trip is the link's. The rest is the server's, or the device's if commands were before it, as the server gives a
 * device a few at a time. */
static void divide(struct ledger_wait *w, const struct server *s, const struct _cl_event *e,
                   uint64_t bytes) REQUIRES(client_held)
{
        uint64_t end = last.begin_ns + last.ns, device = 0, server = 0, link = 0;
        bool timed = e && e->start_ns && e->end_ns, here = s->spec->in_process;
        bool behind = profile_ledger.awaited[s->index] > (is_own_marker(e) ? 0 : 1);
        if (timed) {
                uint64_t before = overlap(last.begin_ns, end, e->submit_ns, e->start_ns);
                *(bytes >= LARGE && !here ? &link : &device) +=
                        overlap(last.begin_ns, end, e->start_ns, e->end_ns);
                *(behind ? &device : &server) += before;
        }
        uint64_t rest = last.ns - device - server - link, way = 0;
        uint64_t carried = timed ? profile_ledger.carried[s->index] : 0;
        if (here)
                way = 0;
        else if (bytes || (carried && !behind))
                way = rest;
        else if (carried)
                way = rest - lesser(rest, profile_ledger.expected[s->index]);
        else
                way = lesser(rest, s->clock.rtt_ns);
        w->link_ns += link + way;
        w->device_ns += device + (timed && !behind ? 0 : rest - way);
        w->server_ns += server + (timed && !behind ? rest - way : 0);
}

void profile_wait_was(enum profile_wait kind, const struct server *s, const struct _cl_event *e,
                      uint64_t bytes)
{
        struct ledger_wait *w = &profile_ledger.by_server[s ? s->index : CLIENT_SERVERS_MAX][kind];
        w->calls++;
        if (!last.ns)
                return;
        journal_wait(&(struct journal_wait){ .begin_ns = last.begin_ns,
                                             .end_ns = last.begin_ns + last.ns,
                                             .event = e ? e->id : 0,
                                             .bytes = bytes,
                                             .server = s ? s->index : CLIENT_SERVERS_MAX,
                                             .kind = kind });
        if (journal_only) {
                last.ns = 0;
                return;
        }
        w->waits++;
        w->ns += last.ns;
        switch (kind) {
        case PROFILE_ANSWER:
                w->server_ns += last.ns;
                break;
        case PROFILE_TAKEN:
                *(s && s->spec->in_process ? &w->server_ns : &w->link_ns) += last.ns;
                break;
        case PROFILE_ROOM:
                w->device_ns += last.ns;
                break;
        default:
                if (s)
                        divide(w, s, e, bytes);
        }
        if (s && kind <= PROFILE_BLOCKING)
                profile_ledger.awaited[s->index] = profile_ledger.carried[s->index] =
                        profile_ledger.expected[s->index] = 0;
        last.ns = 0; /* it has its reason */
}

/* ---- commands ------------------------------------------------------------------------------- */

void profile_begin(struct command *m)
{
        struct profile_command *p = &m->profile;
        if (!journal_only) {
                *p = (struct profile_command){ .begin_ns = client_now_ns(m->client),
                                               .waited_ns = waited_ns };
                return;
        }
        p->bytes = 0;
        p->untimed = false;
        /* Only the ledger needs the time, and a reading of the clock is dear. The journal has only what may be timed. */
        if (!profile_timing && !(m->queue->properties & CL_QUEUE_PROFILING_ENABLE))
                return;
        p->begin_ns = 1;
        p->kernel = NULL;
}

bool profile_times(const struct profile_command *p)
{
        return profile_timing && journal_is_kept() && !(p && p->untimed);
}

bool profile_launch(struct command *m, struct kernel_info *k, cl_uint dims, const size_t *global,
                    const size_t *local)
{
        struct profile_command *p = &m->profile;
        p->kernel = k;
        p->global = global;
        p->local = local;
        p->dims = dims;
        if (journal_is_kept() && !(some && queue_in_order(m->queue)))
                return profile_timing;
        /* Not each 16th: a program may launch in turn what takes long and what does not. */
        uint64_t count = row_of(m->server, k->name, true)->count;
        p->untimed = count >= TIMED_FIRST && hash_number(0, count) % TIMED_EACH != 0;
        return !p->untimed;
}

static void count(struct command *m) REQUIRES(client_held)
{
        struct profile_command *p = &m->profile;
        struct ledger_row *r =
                p->kernel ? row_of(m->server, p->kernel->name, true)
                          : row_of(m->server, names_text(names_of_kind(m->enqueue->type)), false);
        r->count++;
        r->bytes += p->bytes;
        profile_ledger.awaited[m->server->index]++;
        profile_ledger.carried[m->server->index] += p->bytes;
        profile_ledger.expected[m->server->index] += r->timed ? r->device_ns / r->timed : 0;
        p->row = (uint32_t)(r - profile_ledger.rows) + 1;
        if (m->event)
                m->event->profile_row = p->row;
}

void profile_sent(struct command *m)
{
        if (!journal_only)
                count(m);
        if (journal_is_kept() && (m->event || m->profile.untimed))
                journal_command(m);
        if (m->event &&
            m->event->end_ns) /* it completed while the call waited for its bytes to go */
                profile_timed(m->event);
}

void profile_end(struct command *m)
{
        const struct profile_command *p = &m->profile;
        if (journal_only)
                return;
        uint64_t ns = client_now_ns(m->client) - p->begin_ns, waits = waited_ns - p->waited_ns;
        profile_ledger.calls++;
        profile_ledger.call_ns += ns > waits ? ns - waits : 0;
        if (p->row)
                profile_ledger.rows[p->row - 1].wait_ns += waits;
}

void profile_timed(const struct _cl_event *e)
{
        if (e->end_ns)
                journal_timed(e);
        if (!e->profile_row || e->end_ns <= e->start_ns)
                return;
        struct ledger_row *r = &profile_ledger.rows[e->profile_row - 1];
        r->timed++;
        r->device_ns += e->end_ns - e->start_ns;
}
