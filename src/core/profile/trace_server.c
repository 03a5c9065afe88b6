#include "core/profile/trace_server.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/profile/queue_rows.h"
#include "proto/info.h"

static uint64_t local_ns(const struct trace_server *s, uint64_t ns)
{
        return ns - (uint64_t)s->offset_ns;
}

/* Copy a text and tame it. */
static void copy_text(struct bytes from, char *ret, size_t size)
{
        size_t n = from.size < size - 1 ? from.size : size - 1;
        snprintf(ret, size, "%.*s", (int)n, from.size ? (const char *)from.data : "");
        bytes_tame(ret, size);
}

static bool is_older(const struct trace_server *s, uint64_t begin_ns)
{
        return s->skips_older && begin_ns < s->begin_ns;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Return true if the arrow of a record's command begins here. Commands of migrations, and all of an observer's, have no
 * call. A server may submit a command again. */
static bool begins(struct trace_server *s, const struct trace_record *r)
{
        uint64_t *newest = &s->begun[r->value % TRACE_SERVER_BEGUN];
        if (r->probe != TRACE_submit || *newest == r->value ||
            (s->has_call && s->has_call(s->user, r->value)))
                return false;
        *newest = r->value;
        return true;
}

/* One INFO_TRACE_THREAD, brought to this side's clock. */
static void put_thread(struct timeline *out, struct trace_server *s, struct bytes block,
                       size_t *room)
{
        unsigned process = JOURNAL_SERVERS + s->index;
        struct bytes name = { 0 }, records = { 0 };
        char text[17];
        uint64_t lost = info_u64(block, INFO_TRACE_LOST, 0);
        uint64_t thread = info_u64(block, INFO_TRACE_THREAD_ID, 0);
        info_find(block, INFO_TRACE_THREAD_NAME, &name);
        info_find(block, INFO_TRACE_RECORDS, &records);
        copy_text(name, text, sizeof(text));
        /* Records that were lost are older than the oldest one that is there. */
        if (records.size >= 32 && is_older(s, local_ns(s, bytes_get_u64(records.data))))
                lost = 0;
        s->gaps.dropped += lost < UINT32_MAX ? lost : UINT32_MAX;
        bool named = false;
        for (const uint8_t *p = records.data; records.size >= 32; p += 32, records.size -= 32) {
                const struct trace_record r = {
                        .begin_ns = local_ns(s, bytes_get_u64(p)),
                        .end_ns = local_ns(s, bytes_get_u64(p + 8)),
                        .probe = bytes_get_u64(p + 16),
                        .value = bytes_get_u64(p + 24),
                };
                if (is_older(s, r.begin_ns))
                        continue;
                if (r.begin_ns < s->begin_ns || r.end_ns > s->end_ns || !*room) {
                        s->gaps.dropped++;
                        continue;
                }
                --*room;
                if (!named)
                        timeline_thread(out, process, thread, text);
                named = true;
                if (r.probe > TRACE_PROBE_MASK) /* servers tell no places */
                        continue;
                if (begins(s, &r))
                        timeline_record_first(out, process, thread, &r);
                else
                        timeline_record(out, process, thread, &r, NULL);
        }
}

void trace_server_put(struct timeline *out, struct trace_server *s, struct bytes info)
{
        struct info_entry e;
        unsigned threads = 0;
        size_t room = TRACE_SERVER_RECORDS;
        timeline_process(out, JOURNAL_SERVERS + s->index, s->name);
        while (info_next(&info, &e) && threads < TRACE_THREADS)
                if (e.key == INFO_TRACE_THREAD) {
                        put_thread(out, s, e.value, &room);
                        threads++;
                }
}

/* ---- commands ------------------------------------------------------------------------------- */

struct commands {
        const struct trace_server *server;
        struct journal_command *all;
        char (*names)[NAMES_LENGTH]; /* of them */
        size_t count;
        char devices[TRACE_SERVER_DEVICES][TRACE_SERVER_NAME];
        size_t device_count;
};

static const char *server_of(void *user, uint32_t server)
{
        const struct commands *c = user;
        return server == c->server->index ? c->server->name : NULL;
}

static const char *device_of(void *user, uint32_t server, uint32_t device)
{
        const struct commands *c = user;
        (void)server;
        return device < c->device_count ? c->devices[device] : "a device";
}

/* False: the command is not to be shown. */
static bool take_command(struct trace_server *s, struct bytes block, char name[NAMES_LENGTH],
                         struct journal_command *ret)
{
        const size_t head = INFO_TRACE_COMMAND_FIELDS * sizeof(uint64_t);
        uint64_t f[INFO_TRACE_COMMAND_FIELDS];
        if (block.size < head) {
                s->gaps.dropped++;
                return false;
        }
        const uint8_t *p = block.data;
        for (size_t i = 0; i < INFO_TRACE_COMMAND_FIELDS; i++)
                f[i] = bytes_get_u64(p + i * sizeof(uint64_t));
        *ret = (struct journal_command){
                .id = f[INFO_TRACE_COMMAND_EVENT],
                .queue = f[INFO_TRACE_COMMAND_QUEUE],
                .bytes = f[INFO_TRACE_COMMAND_BYTES],
                .submit_ns = local_ns(s, f[INFO_TRACE_COMMAND_SUBMIT]),
                .start_ns = local_ns(s, f[INFO_TRACE_COMMAND_START]),
                .end_ns = local_ns(s, f[INFO_TRACE_COMMAND_END]),
                .server = s->index,
                .device = f[INFO_TRACE_COMMAND_DEVICE] < TRACE_SERVER_DEVICES
                                  ? (uint32_t)f[INFO_TRACE_COMMAND_DEVICE]
                                  : UINT32_MAX,
                .dims = f[INFO_TRACE_COMMAND_DIMS] <= 3 ? (uint8_t)f[INFO_TRACE_COMMAND_DIMS] : 0,
                .in_order = f[INFO_TRACE_COMMAND_FLAGS] & TRACE_COMMAND_IN_ORDER,
                .failed = f[INFO_TRACE_COMMAND_FLAGS] & TRACE_COMMAND_FAILED,
                .by_server = f[INFO_TRACE_COMMAND_FLAGS] & TRACE_COMMAND_BY_SERVER,
        };
        for (size_t i = 0; i < 3; i++) {
                ret->global[i] = f[INFO_TRACE_COMMAND_GLOBAL + i];
                ret->local[i] = f[INFO_TRACE_COMMAND_LOCAL + i];
        }
        copy_text(bytes_of(p + head, block.size - head), name, NAMES_LENGTH);
        ret->name = name;
        if (ret->start_ns < s->begin_ns || ret->end_ns > s->end_ns || ret->end_ns < ret->start_ns) {
                s->gaps.dropped += !is_older(s, ret->start_ns);
                return false;
        }
        s->by_server += ret->by_server;
        return true;
}

static void take_entry(struct trace_server *s, struct commands *c, const struct info_entry *e)
{
        switch (e->key) {
        case INFO_TRACE_DEVICE:
                if (c->device_count < TRACE_SERVER_DEVICES)
                        copy_text(e->value, c->devices[c->device_count++], TRACE_SERVER_NAME);
                break;
        case INFO_TRACE_COMMAND:
                if (c->count == TRACE_SERVER_COMMANDS)
                        s->gaps.dropped++;
                else if (take_command(s, e->value, c->names[c->count], &c->all[c->count]))
                        c->count++;
                break;
        default:
                break;
        }
}

/* How many commands there are, at most. */
static size_t count_commands(struct bytes info)
{
        struct info_entry e;
        size_t n = 0;
        while (info_next(&info, &e) && n < TRACE_SERVER_COMMANDS)
                n += e.key == INFO_TRACE_COMMAND;
        return n;
}

void trace_server_put_commands(struct timeline *out, struct trace_server *s, struct bytes info)
{
        struct info_entry e;
        struct commands *c = mem_zalloc(sizeof(*c));
        size_t count = count_commands(info);
        uint64_t lost = info_u64(info, INFO_TRACE_LOST, 0);
        uint64_t untimed = info_u64(info, INFO_TRACE_UNTIMED, 0);
        s->gaps.dropped += lost < UINT32_MAX ? lost : UINT32_MAX;
        s->gaps.untimed += untimed < UINT32_MAX ? untimed : UINT32_MAX;
        if (c) {
                c->all = mem_alloc((count + 1) * sizeof(*c->all));
                c->names = mem_alloc((count + 1) * sizeof(*c->names));
        }
        const struct journal_command **order = mem_alloc((count + 1) * sizeof(*order));
        if (!c || !c->all || !c->names || !order) {
                s->gaps.dropped += count;
        } else {
                c->server = s;
                while (info_next(&info, &e))
                        take_entry(s, c, &e);
                for (size_t i = 0; i < c->count; i++)
                        order[i] = &c->all[i];
                queue_rows_put(out, &s->gaps, order, c->count,
                               &(struct queue_rows_names){ server_of, device_of, c });
        }
        mem_free(order);
        if (c) {
                mem_free(c->all);
                mem_free(c->names);
        }
        mem_free(c);
}
