/* bad_client ADDRESS: a client that speaks the protocol and breaks it, in each way on a session
 * of its own. Prints for each whether the server ended that session, and nothing else. Status 0:
 * it ended all. */
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#include "support/probe.h"

#define ID(type, n) object_id(OBJECT_##type, n)

static bool has_closed(const struct probe *p)
{
        return p->closed;
}

/* Ids of the wrong type in each place that has one; some objects stand ready. */
static int queue_as_buffer(struct session *s)
{
        return session_send(s, buffer_create, .buffer = ID(QUEUE, 5), .size = 64);
}

static int buffer_as_queue(struct session *s)
{
        return session_send(s, marker, .event = ID(EVENT, 2), .queue = ID(BUFFER, 1));
}

static int kernel_as_event(struct session *s)
{
        return session_send(s, marker, .event = ID(KERNEL, 2), .queue = ID(QUEUE, 1));
}

static int queue_in_wait_list(struct session *s)
{
        uint64_t waits[] = { ID(QUEUE, 1) };
        return session_send(s, marker, .event = ID(EVENT, 2), .queue = ID(QUEUE, 1),
                            .waits = { waits, 1 });
}

static int unknown_type(struct session *s)
{
        return session_send(s, release, .object = UINT64_MAX);
}

static int id_taken(struct session *s)
{
        return session_send(s, buffer_create, .buffer = ID(BUFFER, 1), .size = 64);
}

static int unknown_queue(struct session *s)
{
        return session_send(s, marker, .event = ID(EVENT, 2), .queue = ID(QUEUE, 77));
}

static int answer_to_nobody(struct session *s)
{
        return session_send(s, server_info, .request = 1);
}

static int raw(struct session *s, uint64_t header, uint64_t slot)
{
        int r = buf_put_u64(session_outbox(s), header);
        if (!r)
                r = buf_put_u64(session_outbox(s), slot);
        return session_commit(s, r);
}

static int unknown_message(struct session *s)
{
        return raw(s, 0x7777 | 16ull << 32, 0);
}

static int message_cut_short(struct session *s)
{
        return raw(s, WIRE_marker | 16ull << 32, ID(EVENT, 2));
}

static int count_too_large(struct session *s)
{
        return raw(s, WIRE_output | 16ull << 32, UINT64_MAX);
}

static int bulk_for_nobody_inline(struct session *s)
{
        return session_send(s, transfer_data, .transfer = 99, .offset = 5,
                            .data = bytes_of("01234567", 8));
}

/* 1: the server ended the session; 0: it did not; negative: could not be tried. */
static int try(const char *address, int (*misbehave)(struct session *s))
{
        struct probe p;
        probe_init(&p, address);
        int r = p.session ? probe_attach(&p, 0) : SP_E_NOMEM;
        if (!r)
                r = probe_create(&p, 1, 4096);
        if (!r)
                r = probe_ping(&p);
        if (!r)
                r = misbehave(p.session);
        if (!r) {
                r = probe_drive(&p, has_closed, 20000);
                r = r == SP_E_TIMEOUT ? 0 : 1;
        }
        probe_fini(&p);
        return r;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*misbehave)(struct session *s);
        } ways[] = {
                { "queue as buffer", queue_as_buffer },
                { "buffer as queue", buffer_as_queue },
                { "kernel as event", kernel_as_event },
                { "queue in a wait list", queue_in_wait_list },
                { "id of no type", unknown_type },
                { "id that is taken", id_taken },
                { "queue that does not exist", unknown_queue },
                { "answer to nobody", answer_to_nobody },
                { "unknown message", unknown_message },
                { "message cut short", message_cut_short },
                { "count too large", count_too_large },
                { "data for nobody", bulk_for_nobody_inline },
        };
        if (argc != 2) {
                fprintf(stderr, "usage: bad_client ADDRESS\n");
                return 2;
        }
        int bad = 0;
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
                int r = try(argv[1], ways[i].misbehave);
                printf("%s: %s\n", ways[i].name,
                       r > 0    ? "ended"
                       : r == 0 ? "NOT ENDED"
                                : status_text(r));
                bad += r <= 0;
        }
        return bad ? 1 : 0;
}
