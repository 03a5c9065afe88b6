#include "cli/replay/recording.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/trace/event.h"
#include "cli/trace/file.h"
#include "core/profile/journal.h"
#include "core/profile/queue_rows.h"

#define LARGEST_NS    (UINT64_C(1) << 56)
#define LARGEST_BYTES (UINT64_C(1) << 50)

static const struct trace_arg *arg_of(const struct trace_event *e, const char *name,
                                      enum trace_arg_kind kind)
{
        for (size_t i = 0; i < e->arg_count; i++)
                if (e->args[i].kind == kind && !strcmp(e->args[i].name, name))
                        return &e->args[i];
        return NULL;
}

static uint64_t number_of(const struct trace_event *e, const char *name)
{
        const struct trace_arg *a = arg_of(e, name, TRACE_ARG_NUMBER);
        return a ? a->number : 0;
}

static uint64_t bytes_of_event(const struct trace_event *e)
{
        uint64_t bytes = number_of(e, "bytes");
        return bytes < LARGEST_BYTES ? bytes : LARGEST_BYTES;
}

/* Make room for one more element of an array. NULL: there is none, and the element counts as missing. */
static void *room(struct recording *r, void *all, size_t count, size_t size)
{
        void *more = trace_file_room(all, count, size, RECORDING_EVENTS_MAX);
        r->dropped += !more;
        return more;
}

static void put_call(struct recording *r, const struct trace_event *e)
{
        void *all = room(r, r->calls, r->call_count, sizeof(*r->calls));
        if (!all)
                return;
        r->calls = all;
        r->calls[r->call_count++] = (struct recording_call){ .thread = e->thread,
                                                             .begin_ns = e->begin_ns,
                                                             .end_ns = e->begin_ns + e->duration_ns,
                                                             .event = number_of(e, "event") };
}

static uint32_t server_of(const struct trace_event *e, const struct ledger_file *ledger)
{
        const struct trace_arg *a = arg_of(e, "server", TRACE_ARG_TEXT);
        for (size_t i = 0; a && i < ledger->server_count; i++)
                if (!strcmp(ledger->servers[i].name, a->text))
                        return (uint32_t)ledger->servers[i].index;
        return LEDGER_SERVERS;
}

static void put_wait(struct recording *r, const struct trace_event *e,
                     const struct ledger_file *ledger, enum ledger_kind kind)
{
        void *all = room(r, r->waits, r->wait_count, sizeof(*r->waits));
        if (!all)
                return;
        r->waits = all;
        r->waits[r->wait_count++] = (struct recording_wait){ .thread = e->thread,
                                                             .begin_ns = e->begin_ns,
                                                             .end_ns = e->begin_ns + e->duration_ns,
                                                             .event = number_of(e, "event"),
                                                             .bytes = bytes_of_event(e),
                                                             .server = server_of(e, ledger),
                                                             .kind = kind };
}

static enum recording_way way_of(const char *name)
{
        static const struct {
                const char *name;
                enum recording_way way;
        } all[] = {
                { "write buffer", RECORDING_UP }, { "write image", RECORDING_UP },
                { "unmap", RECORDING_UP },        { "read buffer", RECORDING_DOWN },
                { "read image", RECORDING_DOWN }, { "map", RECORDING_DOWN },
        };
        for (size_t i = 0; i < array_size(all); i++)
                if (!strcmp(all[i].name, name))
                        return all[i].way;
        return RECORDING_STAYS; /* copies, fills */
}

static void put_works(struct recording_command *c, const struct trace_event *e)
{
        const struct trace_arg *size = arg_of(e, "global", TRACE_ARG_TEXT);
        c->works[2] = hash_text(hash_number(1, c->server), e->name);
        c->works[1] = hash_text(hash_number(c->works[2], 2), size ? size->text : "");
        c->works[0] = hash_number(hash_number(c->works[1], 3), c->queue);
}

static void put_command(struct recording *r, const struct trace_event *e)
{
        void *all = room(r, r->commands, r->command_count, sizeof(*r->commands));
        if (!all)
                return;
        r->commands = all;
        struct recording_command *c = &r->commands[r->command_count++];
        *c = (struct recording_command){
                .event = number_of(e, "event"),
                .queue = e->thread / QUEUE_ROWS_LAYERS,
                .begin_ns = e->begin_ns,
                .end_ns = e->begin_ns + e->duration_ns,
                .server = e->process - JOURNAL_DEVICES,
                .kernel = !strcmp(e->category, "kernel"),
                .asked = number_of(e, "asked") != 0,
                .untimed = number_of(e, "untimed") != 0,
                .beside = e->thread % QUEUE_ROWS_LAYERS != 0,
        };
        if (c->kernel)
                put_works(c, e);
        if (!strcmp(e->category, "transfer"))
                c->way = (uint8_t)way_of(e->name);
        if (c->way)
                c->bytes = bytes_of_event(e);
        const struct trace_arg *after = arg_of(e, "after", TRACE_ARG_TEXT);
        for (const char *p = after ? after->text : ""; *p && c->after_count < RECORDING_AFTER;) {
                char *next;
                c->after[c->after_count++] = strtoull(p, &next, 10);
                p = next > p ? next : p + strlen(p);
        }
}

static void put_move(struct recording *r, const struct trace_event *e)
{
        uint64_t from = e->thread / QUEUE_ROWS_LAYERS - JOURNAL_MOVES_FROM / QUEUE_ROWS_LAYERS;
        uint64_t queued = number_of(e, "queued_ns");
        void *all = room(r, r->moves, r->move_count, sizeof(*r->moves));
        if (!all)
                return;
        r->moves = all;
        r->moves[r->move_count++] = (struct recording_move){
                .event = number_of(e, "event"),
                .asked_ns = queued < e->begin_ns ? e->begin_ns - queued : 0,
                .begin_ns = e->begin_ns,
                .end_ns = e->begin_ns + e->duration_ns,
                .bytes = bytes_of_event(e),
                .from = from && from <= LEDGER_SERVERS ? (uint32_t)from - 1 : LEDGER_SERVERS,
                .to = e->process - JOURNAL_LINKS,
        };
}

static void put_own(struct recording *r, const struct trace_event *e,
                    const struct ledger_file *ledger)
{
        static const char *const kinds[] = {
                [LEDGER_FINISH] = "clFinish",
                [LEDGER_EVENTS] = "clWaitForEvents",
                [LEDGER_BLOCKING] = "blocking command",
                [LEDGER_TAKEN] = "until the link has the bytes",
                [LEDGER_ROOM] = "until the session has room",
                [LEDGER_ANSWER] = "answer",
        };
        bool waited = !strcmp(e->category, "waited");
        if (!waited && strcmp(e->category, "client") != 0)
                return;
        if (!waited && !strcmp(e->name, "enqueue"))
                put_call(r, e);
        for (unsigned i = 0; waited && i < array_size(kinds); i++)
                if (!strcmp(e->name, kinds[i]))
                        put_wait(r, e, ledger, (enum ledger_kind)i);
}

static bool is_within(uint32_t process, unsigned first)
{
        return process >= first && process - first < LEDGER_SERVERS;
}

/* A recording while it is read. */
struct reading {
        struct recording r;
        const struct ledger_file *ledger;
};

static void put_event(void *user, const struct trace_event *e, const char *at)
{
        struct reading *reading = user;
        struct recording *r = &reading->r;
        (void)at;
        if (e->phase == 'M' && is_within(e->process, JOURNAL_LINKS)) {
                const struct trace_arg *name = arg_of(e, "name", TRACE_ARG_TEXT);
                r->tls |= name && strstr(name->text, ": link (tls");
        }
        if (e->phase != 'X' || e->begin_ns > LARGEST_NS || e->duration_ns > LARGEST_NS)
                return;
        if (e->process == JOURNAL_CLIENT)
                put_own(r, e, reading->ledger);
        else if (is_within(e->process, JOURNAL_DEVICES))
                put_command(r, e);
        else if (is_within(e->process, JOURNAL_LINKS) && !strcmp(e->category, "migration"))
                put_move(r, e);
}

static void take_other(void *user, struct json *j)
{
        struct reading *reading = user;
        bool first = true;
        char member[32];
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "dropped_client"))
                        reading->r.dropped += trace_value_number(j);
                else
                        json_skip(j);
        }
}

int recording_read(const char *text, size_t size, const struct ledger_file *ledger,
                   struct recording *ret)
{
        static const struct trace_reader reader = { put_event, take_other };
        struct reading reading = { .ledger = ledger };
        int status = trace_read_all(text, size, &reader, &reading);
        if (status < 0)
                recording_fini(&reading.r);
        else
                *ret = reading.r;
        return status;
}

void recording_fini(struct recording *r)
{
        mem_free(r->calls);
        mem_free(r->waits);
        mem_free(r->commands);
        mem_free(r->moves);
        *r = (struct recording){ 0 };
}
