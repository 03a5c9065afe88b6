#include "cli/trace/packets.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum {
        NAMES_MAX = 1 << 14,
        SLOTS = 2 * NAMES_MAX,
        EVENT_NAMES = 2 + 2 * TRACE_EVENT_ARGS, /* that an event has at most */
        SEQUENCE = 1,                           /* any number: all packets have the same writer */
};

/* The numbers of fields in Perfetto's messages. */
enum {
        TRACE_PACKET = 1,

        PACKET_TIMESTAMP = 8,
        PACKET_SEQUENCE = 10,
        PACKET_EVENT = 11,
        PACKET_INTERNED = 12,
        PACKET_FLAGS = 13,
        PACKET_TRACK = 60,

        TRACK_UUID = 1,
        TRACK_NAME = 2,
        TRACK_PROCESS = 3,
        TRACK_PARENT = 5,
        TRACK_COUNTER = 8,
        TRACK_MERGE = 15,
        PROCESS_PID = 1,
        PROCESS_NAME = 6,

        EVENT_CATEGORY = 3,
        EVENT_ARG = 4,
        EVENT_TYPE = 9,
        EVENT_NAME = 10,
        EVENT_TRACK = 11,
        EVENT_COUNT = 44,
        EVENT_FLOW = 47,
        EVENT_FLOW_END = 48,
        ARG_NAME = 1,
        ARG_NUMBER = 3,
        ARG_REAL = 5,
        ARG_TEXT = 17,

        INTERNED_CATEGORY = 1,
        INTERNED_NAME = 2,
        INTERNED_ARG_NAME = 3,
        INTERNED_ARG_TEXT = 29,
        INTERNED_NUMBER = 1,
        INTERNED_TEXT = 2,
};

/* Values of PACKET_FLAGS and TRACK_MERGE. */
enum { NAMES_BEGIN = 1, NEEDS_NAMES = 2, MERGE_NONE = 2 };

struct name {
        char *text; /* NULL: free */
        unsigned kind;
        uint64_t number;
};

struct packets {
        FILE *to;
        bool begun; /* the table of names has begun in the file */
        struct name names[SLOTS];
        size_t name_count;
        struct protobuf_writer packet, event, interned; /* what is being written */
};

int packets_new(FILE *to, struct packets **ret)
{
        struct packets *p = mem_zalloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        p->to = to;
        *ret = p;
        return 0;
}

static void forget_names(struct packets *p)
{
        for (size_t i = 0; i < SLOTS; i++) {
                mem_free(p->names[i].text);
                p->names[i].text = NULL;
        }
        p->name_count = 0;
        p->begun = false;
}

void packets_free(struct packets *p)
{
        if (!p)
                return;
        forget_names(p);
        mem_free(p);
}

/* The number of a name. One that is new goes into the packet. */
static uint64_t number_of(struct packets *p, unsigned kind, const char *text)
{
        uint32_t h = 2166136261u ^ kind;
        for (const char *c = text; *c; c++)
                h = (h ^ (unsigned char)*c) * 16777619u;
        for (h %= SLOTS; p->names[h].text; h = (h + 1) % SLOTS)
                if (p->names[h].kind == kind && !strcmp(p->names[h].text, text))
                        return p->names[h].number;
        p->names[h] = (struct name){ mem_strdup(text), kind, p->name_count + 1 };
        if (!p->names[h].text)
                return 0; /* out of memory: the event has no such name */
        p->name_count++;
        size_t entry = protobuf_open(&p->interned, kind);
        protobuf_u64(&p->interned, INTERNED_NUMBER, p->names[h].number);
        protobuf_bytes(&p->interned, INTERNED_TEXT, bytes_str(text));
        protobuf_close(&p->interned, entry);
        return p->names[h].number;
}

static void put(struct packets *p)
{
        uint8_t head[1 + PROTOBUF_VARINT] = { TRACE_PACKET << 3 | 2 };
        size_t size = 1 + protobuf_varint(p->packet.size, head + 1);
        assert(!p->packet.full && !p->event.full && !p->interned.full); /* see EVENT_NAMES */
        fwrite(head, 1, size, p->to);
        fwrite(p->packet.data, 1, p->packet.size, p->to);
}

/* ---- tracks --------------------------------------------------------------------------------- */

static size_t begin_track(struct packets *p, uint64_t track, uint64_t parent)
{
        protobuf_clear(&p->packet);
        protobuf_u64(&p->packet, PACKET_SEQUENCE, SEQUENCE);
        size_t place = protobuf_open(&p->packet, PACKET_TRACK);
        protobuf_u64(&p->packet, TRACK_UUID, track);
        if (parent)
                protobuf_u64(&p->packet, TRACK_PARENT, parent);
        return place;
}

static void end_track(struct packets *p, size_t place)
{
        protobuf_close(&p->packet, place);
        put(p);
}

void packets_process(struct packets *p, uint64_t track, uint32_t process, const char *name)
{
        size_t place = begin_track(p, track, 0);
        size_t inner = protobuf_open(&p->packet, TRACK_PROCESS);
        protobuf_u64(&p->packet, PROCESS_PID, process & INT32_MAX);
        protobuf_bytes(&p->packet, PROCESS_NAME, bytes_str(name));
        protobuf_close(&p->packet, inner);
        end_track(p, place);
}

void packets_track(struct packets *p, uint64_t track, uint64_t parent, const char *name)
{
        size_t place = begin_track(p, track, parent);
        protobuf_bytes(&p->packet, TRACK_NAME, bytes_str(name));
        /* Threads of one name are different ones. */
        protobuf_u64(&p->packet, TRACK_MERGE, MERGE_NONE);
        end_track(p, place);
}

void packets_counter_track(struct packets *p, uint64_t track, uint64_t parent, const char *name)
{
        size_t place = begin_track(p, track, parent);
        protobuf_bytes(&p->packet, TRACK_NAME, bytes_str(name));
        protobuf_close(&p->packet, protobuf_open(&p->packet, TRACK_COUNTER));
        end_track(p, place);
}

/* ---- events --------------------------------------------------------------------------------- */

static void put_args(struct packets *p, const struct trace_event *e)
{
        for (size_t i = 0; i < e->arg_count; i++) {
                const struct trace_arg *a = &e->args[i];
                size_t place = protobuf_open(&p->event, EVENT_ARG);
                protobuf_u64(&p->event, ARG_NAME, number_of(p, INTERNED_ARG_NAME, a->name));
                if (a->kind == TRACE_ARG_NUMBER)
                        protobuf_u64(&p->event, ARG_NUMBER, a->number);
                else if (a->kind == TRACE_ARG_REAL)
                        protobuf_double(&p->event, ARG_REAL, a->real);
                else
                        protobuf_u64(&p->event, ARG_TEXT, number_of(p, INTERNED_ARG_TEXT, a->text));
                protobuf_close(&p->event, place);
        }
}

static void begin_event(struct packets *p, enum packets_type type, uint64_t track)
{
        if (p->name_count > NAMES_MAX - EVENT_NAMES)
                forget_names(p);
        protobuf_clear(&p->event);
        protobuf_clear(&p->interned);
        protobuf_u64(&p->event, EVENT_TYPE, type);
        protobuf_u64(&p->event, EVENT_TRACK, track);
}

static void end_event(struct packets *p, uint64_t ns)
{
        protobuf_clear(&p->packet);
        protobuf_u64(&p->packet, PACKET_TIMESTAMP, ns);
        protobuf_u64(&p->packet, PACKET_SEQUENCE, SEQUENCE);
        protobuf_u64(&p->packet, PACKET_FLAGS, NEEDS_NAMES | (p->begun ? 0 : NAMES_BEGIN));
        p->begun = true;
        if (p->interned.size)
                protobuf_bytes(&p->packet, PACKET_INTERNED,
                               bytes_of(p->interned.data, p->interned.size));
        protobuf_bytes(&p->packet, PACKET_EVENT, bytes_of(p->event.data, p->event.size));
        put(p);
}

void packets_event(struct packets *p, enum packets_type type, uint64_t track, uint64_t ns,
                   const struct trace_event *e, const struct packets_flow *flows, size_t count)
{
        begin_event(p, type, track);
        if (e) {
                protobuf_u64(&p->event, EVENT_NAME, number_of(p, INTERNED_NAME, e->name));
                if (*e->category)
                        protobuf_u64(&p->event, EVENT_CATEGORY,
                                     number_of(p, INTERNED_CATEGORY, e->category));
                put_args(p, e);
        }
        for (size_t i = 0; i < count && i < PACKETS_FLOWS; i++)
                protobuf_fixed64(&p->event, flows[i].ends ? EVENT_FLOW_END : EVENT_FLOW,
                                 flows[i].id);
        end_event(p, ns);
}

void packets_count(struct packets *p, uint64_t track, uint64_t ns, double value)
{
        begin_event(p, PACKETS_COUNTER, track);
        protobuf_double(&p->event, EVENT_COUNT, value);
        end_event(p, ns);
}
