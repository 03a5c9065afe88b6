#include "core/profile/journal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/variables.h"
#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/queue.h"
#include "core/link/server.h"
#include "core/memory/placement.h"
#include "core/profile/ledger.h"
#include "trace/trace.h"

/* A command, as it is recorded: one cache line, because recording costs most where it writes to memory. */
struct slot {
        _Alignas(64) uint64_t id;
        uint64_t queue, bytes, global, local;
        uint32_t device;
        uint16_t server, name; /* names_text */
        uint8_t dims, after_count;
        bool in_order, timed, asked;
};

/* The remainder of it, for the commands that have one. */
struct slot_more {
        uint64_t submit_ns, start_ns,
                end_ns;               /* where slot.timed; start: of the call, where asked */
        uint64_t global[2], local[2]; /* of the further dimensions */
        uint64_t after[JOURNAL_AFTER];
};

static_assert(sizeof(struct slot) == 64, "a cache line");

/* Each of the arrays is a ring: entry n is at n % its size. They are never freed, so they are not counted as blocks. */
static struct {
        struct slot *commands;
        struct slot_more *more;
        struct journal_wait *waits;
        struct journal_move *moves;
        uint64_t command_count, wait_count, move_count; /* ever put */
        size_t command_next;                            /* the place of the next command */
} journal GUARDED_BY(client_held);
static bool kept;
static size_t command_max = 1 << 15, wait_max = 1 << 15, move_max = 1 << 13;

/* How many of the entries that were ever put are still there, and where the i-th of these is, the oldest first. */
static size_t there(uint64_t ever, size_t max)
{
        return ever < max ? (size_t)ever : max;
}

static size_t place(uint64_t ever, size_t max, size_t i)
{
        return (size_t)((ever - there(ever, max) + i) % max);
}

/* Use at most about so many bytes. */
static void limit(uint64_t bytes)
{
        command_max = (size_t)(bytes / 8 * 5 / (sizeof(struct slot) + sizeof(struct slot_more)));
        wait_max = (size_t)(bytes / 8 * 2 / sizeof(struct journal_wait));
        move_max = (size_t)(bytes / 8 / sizeof(struct journal_move));
}

bool journal_start(void) LOCK_UNCHECKED
{
        if (!*config_text(CONFIG_trace))
                return false;
        uint64_t mib = config_number(config_number(CONFIG_trace_ring) ? CONFIG_trace_ring
                                                                      : CONFIG_trace_size);
        if (mib)
                limit(mib << 19); /* half of it */
        journal.commands = aligned_alloc(sizeof(struct slot), command_max * sizeof(struct slot));
        journal.more = calloc(command_max, sizeof(*journal.more));
        journal.waits = calloc(wait_max, sizeof(*journal.waits));
        journal.moves = calloc(move_max, sizeof(*journal.moves));
        kept = journal.commands && journal.more && journal.waits && journal.moves;
        if (!kept)
                log_error("client", "SPANCL_TRACE: out of memory for the sizes of commands");
        if (kept && config_number(CONFIG_trace_ring)) { /* as the rings of the flight recorder */
                mem_touch(journal.commands, command_max * sizeof(struct slot));
                mem_touch(journal.more, command_max * sizeof(*journal.more));
                mem_touch(journal.waits, wait_max * sizeof(*journal.waits));
        }
        return kept;
}

bool journal_is_kept(void)
{
        return kept;
}

/* Put the parts that few commands have: further dimensions, and a wait list. */
static void put_more(struct slot_more *ret, const struct command *m, unsigned dims, size_t after)
{
        const struct profile_command *p = &m->profile;
        for (unsigned i = 1; i < dims; i++) {
                ret->global[i - 1] = p->global ? p->global[i] : 0;
                ret->local[i - 1] = p->local ? p->local[i] : 0;
        }
        for (size_t i = 0; i < after; i++)
                ret->after[i] = m->waits[m->wait_count - after + i];
}

void journal_command(const struct command *m)
{
        const struct profile_command *p = &m->profile;
        size_t at = journal.command_next;
        journal.command_next = at + 1 < command_max ? at + 1 : 0; /* a division is slow */
        journal.command_count++;
        unsigned dims = !p->kernel ? 0 : p->dims < 3 ? p->dims : 3;
        size_t after = m->wait_count < JOURNAL_AFTER ? m->wait_count : JOURNAL_AFTER;
        struct slot *s = &journal.commands[at];
        s->id = m->id;
        s->queue = m->queue->id;
        s->bytes = p->bytes;
        s->name = (uint16_t)(p->kernel ? names_of_kernel(p->kernel)
                                       : names_of_kind(m->enqueue->type));
        s->server = (uint16_t)m->server->index;
        s->device = m->queue->device->index;
        s->dims = (uint8_t)dims;
        s->after_count = (uint8_t)after;
        s->in_order = queue_in_order(m->queue);
        s->timed = false;
        s->asked = p->untimed;
        s->global = dims && p->global ? p->global[0] : 0; /* 0: none are known */
        s->local = dims && p->local ? p->local[0] : 0;
        if (dims > 1 || after)
                put_more(&journal.more[at], m, dims, after);
        if (p->untimed)
                journal.more[at].start_ns = p->begin_ns;
        if (m->event)
                m->event->journal = (uint32_t)at + 1;
}

void journal_timed(const struct _cl_event *e)
{
        struct slot *s = kept && e->journal ? &journal.commands[e->journal - 1] : NULL;
        if (!s || s->id != e->id)
                return;
        struct slot_more *more = &journal.more[e->journal - 1];
        more->submit_ns = e->submit_ns;
        more->start_ns = e->start_ns;
        more->end_ns = e->end_ns;
        s->timed = true;
}

void journal_wait(const struct journal_wait *w)
{
        if (!kept)
                return;
        struct journal_wait *to = &journal.waits[journal.wait_count++ % wait_max];
        *to = *w;
        to->thread = trace_thread_number();
}

void journal_move(const struct _cl_mem *root, const struct share *share, const struct server *to,
                  uint64_t event)
{
        if (!kept)
                return;
        journal.moves[journal.move_count++ % move_max] = (struct journal_move){
                .event = event,
                .memory = root->id,
                .bytes = share->part.end - share->part.begin,
                .begin_ns = client_now_ns(to->client),
                .from = share->server == PLACEMENT_HOST ? LEDGER_HOST : (int)share->server,
                .to = to->index,
        };
}

void profile_moved(const struct server *to, uint64_t event, const uint64_t times[3])
{
        uint64_t now = client_now_ns(to->client);
        size_t count = there(journal.move_count, move_max);
        for (size_t i = 0; kept && i < count; i++) { /* the newest first */
                struct journal_move *j =
                        &journal.moves[place(journal.move_count, move_max, count - 1 - i)];
                if (j->event != event || j->to != to->index)
                        continue;
                /* The server's times are not to be trusted. */
                uint64_t start = server_local_ns(to, times[1]), end = server_local_ns(to, times[2]);
                j->end_ns = end < j->begin_ns || end > now ? now : end;
                j->start_ns = start < j->begin_ns || start > j->end_ns ? j->begin_ns : start;
                return;
        }
}

/* ---- reading -------------------------------------------------------------------------------- */

void journal_count(struct journal_counts *ret)
{
        *ret = (struct journal_counts){
                .commands = there(journal.command_count, command_max),
                .waits = there(journal.wait_count, wait_max),
                .moves = there(journal.move_count, move_max),
        };
        ret->overwritten = journal.command_count - ret->commands + journal.wait_count - ret->waits +
                           journal.move_count - ret->moves;
}

void journal_command_at(size_t i, struct journal_command *ret)
{
        size_t at = place(journal.command_count, command_max, i);
        const struct slot *s = &journal.commands[at];
        const struct slot_more *more = &journal.more[at];
        *ret = (struct journal_command){
                .id = s->id,
                .queue = s->queue,
                .bytes = s->bytes,
                .global = { s->global },
                .local = { s->local },
                .server = s->server,
                .device = s->device,
                .dims = s->dims,
                .after_count = s->after_count,
                .in_order = s->in_order,
                .asked = s->asked,
                .untimed = s->asked && !s->timed,
                .name = names_text(s->name),
        };
        for (unsigned d = 1; d < s->dims; d++) {
                ret->global[d] = more->global[d - 1];
                ret->local[d] = more->local[d - 1];
        }
        for (unsigned d = 0; d < s->after_count; d++)
                ret->after[d] = more->after[d];
        if (s->timed) {
                ret->submit_ns = more->submit_ns;
                ret->start_ns = more->start_ns;
                ret->end_ns = more->end_ns;
        } else if (s->asked) {
                ret->start_ns = more->start_ns;
        }
}

const struct journal_wait *journal_wait_at(size_t i)
{
        return &journal.waits[place(journal.wait_count, wait_max, i)];
}

const struct journal_move *journal_move_at(size_t i)
{
        return &journal.moves[place(journal.move_count, move_max, i)];
}
