/* bad_observer ADDRESS PROCESS WAY: an observer of a running session (HELLO_ROLE_OBSERVE) that breaks the protocol, or
 * does not take what it is sent. Prints "ended" when the server has closed the connection. The ways "silent", "deaf"
 * and "stays" print "observes" or "answered", and keep the connection until the end of the standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loop/dial.h"
#include "loop/link.h"

enum {
        FLOOD_MAX = 2 << 20
}; /* queries: more than the session's window and the kernel's buffers hold */

struct observer {
        struct session *session;
        struct link lanes[SESSION_LANES];
        bool answered;
};

static int on_clock_reply(void *user, const struct wire_clock_reply *m)
{
        (void)user, (void)m;
        return 0;
}

static int on_trace(void *user, const struct wire_trace *m)
{
        struct observer *o = user;
        (void)m;
        o->answered = true;
        return 0;
}

static int on_message(void *user, struct bytes msg)
{
        static const struct wire_handlers handlers = { .clock_reply = on_clock_reply,
                                                       .trace = on_trace };
        return wire_dispatch(&handlers, user, msg);
}

static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        (void)user, (void)transfer, (void)offset, (void)inlined, (void)len, (void)ret;
        return SP_E_PROTO;
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        (void)user, (void)transfer, (void)offset, (void)len, (void)ret_below;
        return SP_E_PROTO;
}

/* ---- ways ----------------------------------------------------------------------------------- */

static int start(struct observer *o)
{
        return session_send(o->session, trace_start, .flags = 0);
}

static int query(struct observer *o)
{
        return session_send(o->session, trace_query, .request = 1);
}

static int query_first(struct observer *o)
{
        return query(o);
}

static int query_twice(struct observer *o)
{
        int r = start(o);
        if (!r)
                r = query(o);
        return r ? r : query(o);
}

static int foreign(struct observer *o)
{
        int r = start(o);
        return r ? r
                 : session_send(o->session, buffer_create, .buffer = object_id(OBJECT_BUFFER, 1),
                                .size = 64);
}

static int inline_data(struct observer *o)
{
        int r = start(o);
        return r ? r
                 : session_send(o->session, transfer_data, .transfer = 99, .offset = 0,
                                .data = bytes_of("01234567", 8));
}

/* Send bytes that no session makes. */
static int raw(struct observer *o, const void *bytes, size_t size)
{
        struct conn *c = o->lanes[0].conn;
        int r = start(o);
        if (!r)
                r = link_flush(&o->lanes[0], SIZE_MAX, NULL);
        struct iovec iov = { (void *)(uintptr_t)bytes, size };
        return r ? r : c->ops->sendv(c, &iov, 1) == (ssize_t)size ? 0 : SP_E_LINK;
}

static int bulk_frame(struct observer *o)
{
        uint8_t bytes[FRAME_HEADER_SIZE + 8] = { 0 };
        frame_put(bytes, &(struct frame){ .size = 8, .type = FRAME_BULK, .seq = 7 });
        return raw(o, bytes, sizeof(bytes));
}

static int garbage(struct observer *o)
{
        uint8_t bytes[256];
        memset(bytes, 0xa5, sizeof(bytes));
        return raw(o, bytes, sizeof(bytes));
}

/* Ask for the clock and never read the answers, until the server closes the connection. */
static int flood(struct observer *o)
{
        struct link *k = &o->lanes[0];
        for (int i = 0; i < FLOOD_MAX && !link_is_due(k); i++) {
                int r = session_send(o->session, clock_query, .time_ns = 1);
                if (!r && i % 256 == 0)
                        r = link_flush(k, SIZE_MAX, NULL);
                if (r < 0 && r != SP_E_AGAIN)
                        return r == SP_E_LINK ? 0 : r;
        }
        while (!link_is_due(k)) {
                int r = link_flush(k, SIZE_MAX, NULL);
                if (r == SP_E_LINK)
                        return 0;
                if (!r) /* it took all of them */
                        return SP_E_LIMIT;
                struct pollfd p = { .fd = k->conn->room_fd, .events = k->conn->room_events };
                if (poll(&p, 1, -1) < 0)
                        return SP_E_LINK;
        }
        return 0;
}

/* ---- keeping the connection ----------------------------------------------------------------- */

/* Send and receive until the records are there, or the connection is lost. */
static int drive(struct observer *o, bool for_answer)
{
        for (;;) {
                int r = link_flush(&o->lanes[0], SIZE_MAX, NULL);
                if (r < 0 && r != SP_E_AGAIN)
                        return r;
                if (for_answer && o->answered)
                        return 0;
                (void)!link_wait(o->lanes, -1);
                r = link_receive(&o->lanes[0], LINK_BUDGET, NULL);
                if (r < 0)
                        return r;
        }
}

static void keep(const char *said)
{
        puts(said);
        fflush(stdout);
        while (getchar() != EOF)
                ;
}

/* Returns 0 if it kept the connection as long as it was to. */
static int keep_in(struct observer *o, const char *way)
{
        int r = strcmp(way, "silent") != 0 ? start(o) : 0;
        if (!r && !strcmp(way, "stays"))
                r = query(o);
        if (!r)
                r = link_flush(&o->lanes[0], SIZE_MAX, NULL);
        if (!r && !strcmp(way, "stays"))
                r = drive(o, true);
        if (!r)
                keep(o->answered ? "answered" : "observes");
        return r;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*act)(struct observer *o);
        } ways[] = {
                { "query first", query_first },
                { "query twice", query_twice },
                { "foreign", foreign },
                { "inline data", inline_data },
                { "bulk frame", bulk_frame },
                { "garbage", garbage },
                { "flood", flood },
        };
        static const struct session_ops ops = { on_message, on_place, on_arrived };
        struct observer o = { 0 };
        struct dial_reply reply;
        struct conn *conn;
        if (argc != 4) {
                fprintf(stderr, "usage: bad_observer ADDRESS PROCESS WAY\n");
                return 2;
        }
        const struct dial_params d = {
                .address = argv[1],
                .timeout_ms = 600000,
                .role = DIAL_OBSERVE,
                .session_id = { 0, strtoull(argv[2], NULL, 10) },
                .name = "bad_observer",
        };
        int r = session_new(&(struct session_params){ .ops = &ops, .user = &o }, &o.session);
        if (!r)
                r = loop_connect(&d, &conn, &reply);
        if (!r)
                r = link_up(&o.lanes[0], o.session, 0, conn, reply.next_seq);
        if (r < 0) {
                fprintf(stderr, "bad_observer: %s\n", status_text(r));
                return 1;
        }
        const char *way = argv[3];
        int (*act)(struct observer * o) = NULL;
        for (size_t i = 0; i < array_size(ways); i++)
                if (!strcmp(way, ways[i].name))
                        act = ways[i].act;
        r = act ? act(&o) : keep_in(&o, way);
        if (act && !r && drive(&o, false) < 0)
                puts("ended");
        if (r < 0)
                fprintf(stderr, "bad_observer: %s\n", status_text(r));
        link_down(&o.lanes[0]);
        session_free(o.session);
        return r < 0;
}
