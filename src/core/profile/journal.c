#include "core/profile/journal.h"

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

/* Each of the arrays is a ring: entry n is at n % its size. They are never freed, so they are not counted as blocks. */
static struct {
        struct journal_command *commands;
        struct journal_wait *waits;
        struct journal_move *moves;
        uint64_t command_count, wait_count, move_count; /* ever put */
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
        command_max = (size_t)(bytes / 8 * 5 / sizeof(struct journal_command));
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
        journal.commands = calloc(command_max, sizeof(*journal.commands));
        journal.waits = calloc(wait_max, sizeof(*journal.waits));
        journal.moves = calloc(move_max, sizeof(*journal.moves));
        kept = journal.commands && journal.waits && journal.moves;
        /* The flight recorder uses all of it soon, and commands should not wait for the kernel to clear it. */
        for (size_t i = 0; kept && config_number(CONFIG_trace_ring) && i < command_max; i++)
                *(volatile uint8_t *)&journal.commands[i].dims = 0;
        if (!kept)
                log_error("client", "SPANCL_TRACE: out of memory for the names of commands");
        return kept;
}

bool journal_is_kept(void)
{
        return kept;
}

static void copy_sizes(uint64_t ret[3], const size_t *sizes, unsigned dims)
{
        for (unsigned i = 0; i < dims && i < 3; i++)
                ret[i] = sizes ? sizes[i] : 0;
}

void journal_command(const struct command *m, const char *name)
{
        const struct profile_command *p = &m->profile;
        if (!kept)
                return;
        size_t at = journal.command_count++ % command_max;
        struct journal_command *j = &journal.commands[at];
        /* Each field by itself: clearing the entry first costs more than the rest of it. */
        j->id = m->id;
        j->queue = m->queue->id;
        j->bytes = p->bytes;
        j->submit_ns = j->start_ns = j->end_ns = 0;
        j->server = m->server->index;
        j->device = (uint32_t)m->queue->device->index;
        j->dims = p->kernel ? (uint8_t)p->dims : 0;
        j->in_order = queue_in_order(m->queue);
        j->global[0] = j->local[0] = 0; /* none are known */
        copy_sizes(j->global, p->global, j->dims);
        copy_sizes(j->local, p->local, j->dims);
        size_t after = m->wait_count < JOURNAL_AFTER ? m->wait_count : JOURNAL_AFTER;
        for (size_t i = 0; i < after; i++)
                j->after[i] = m->waits[m->wait_count - after + i];
        j->after_count = (uint8_t)after;
        size_t length = strnlen(name, sizeof(j->name) - 1);
        memcpy(j->name, name, length); /* printing it takes ten times as long */
        j->name[length] = 0;
        if (m->event)
                m->event->journal = (uint32_t)at + 1;
}

void journal_timed(const struct _cl_event *e)
{
        struct journal_command *j = kept && e->journal ? &journal.commands[e->journal - 1] : NULL;
        if (!j || j->id != e->id)
                return;
        j->submit_ns = e->submit_ns;
        j->start_ns = e->start_ns;
        j->end_ns = e->end_ns;
}

void journal_wait(const struct journal_wait *w)
{
        if (kept)
                journal.waits[journal.wait_count++ % wait_max] = *w;
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

const struct journal_command *journal_command_at(size_t i)
{
        return &journal.commands[place(journal.command_count, command_max, i)];
}

const struct journal_wait *journal_wait_at(size_t i)
{
        return &journal.waits[place(journal.wait_count, wait_max, i)];
}

const struct journal_move *journal_move_at(size_t i)
{
        return &journal.moves[place(journal.move_count, move_max, i)];
}
