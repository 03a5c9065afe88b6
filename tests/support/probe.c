#include "support/probe.h"

#include <CL/cl.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/mem.h"
#include "loop/server_loop.h"
#include "os/clock.h"
#include "transport/other_end.h"

static int on_clock_reply(void *user, const struct wire_clock_reply *m)
{
        struct probe *p = user;
        (void)m;
        p->clocks++;
        return 0;
}

static int on_event_done(void *user, const struct wire_event_done *m)
{
        struct probe *p = user;
        p->event = m->event;
        p->event_status = m->status;
        return 0;
}

static int on_close(void *user, const struct wire_close *m)
{
        struct probe *p = user;
        p->closed = true;
        snprintf(p->close_text, sizeof(p->close_text), "%.*s", (int)m->text.size,
                 (const char *)m->text.data);
        return 0;
}

static int on_peer_lost(void *user, const struct wire_peer_lost *m)
{
        struct probe *p = user;
        (void)m;
        p->peers_lost++;
        return 0;
}

/* Every dial says that its side takes them. */
static int on_notice(void *user, const struct wire_notice *m)
{
        (void)user;
        (void)m;
        return 0;
}

static int on_message(void *user, struct bytes msg)
{
        static const struct wire_handlers handlers = {
                .clock_reply = on_clock_reply,
                .event_done = on_event_done,
                .close = on_close,
                .peer_lost = on_peer_lost,
                .notice = on_notice,
        };
        return wire_dispatch(&handlers, user, msg);
}

static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        struct probe *p = user;
        (void)transfer;
        (void)inlined;
        if (offset >= p->size || *len > p->size - offset)
                return SP_E_PROTO;
        *ret = p->data + offset;
        return 0;
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        struct probe *p = user;
        (void)transfer;
        (void)offset;
        *ret_below = p->arrived += len;
        return p->arrived == p->size;
}

void probe_init(struct probe *p, const char *address)
{
        static const struct session_ops ops = { on_message, on_place, on_arrived };
        *p = (struct probe){ .address = address };
        if (getrandom(p->id, sizeof(p->id), 0) != sizeof(p->id) ||
            getrandom(p->key, sizeof(p->key), 0) != sizeof(p->key) ||
            session_new(&(struct session_params){ .ops = &ops, .user = p }, &p->session) < 0)
                p->session = NULL;
}

void probe_fini(struct probe *p)
{
        for (unsigned i = 0; i < SESSION_LANES; i++)
                link_down(&p->lanes[i]);
        session_free(p->session);
        mem_free(p->data);
        *p = (struct probe){ 0 };
}

void probe_drop(struct probe *p, unsigned lane)
{
        if (p->lanes[lane].conn)
                conn_reset(p->lanes[lane].conn);
        link_down(&p->lanes[lane]);
}

int probe_attach(struct probe *p, unsigned lane)
{
        struct conn *conn;
        bool again = !lane && session_next_seq(p->session);
        const struct dial_params d = {
                .address = p->address,
                .timeout_ms = 30000,
                .lane = lane,
                .session_id = { p->id[0], p->id[1] },
                .key = { p->key[0], p->key[1] },
                .next_seq = lane ? 0 : session_next_seq(p->session),
                .generation = session_generation(p->session) + again,
                .name = "probe",
                .share = p->share,
        };
        int r = p->local ? server_loop_connect(p->local, &d, &conn, &p->reply)
                         : loop_connect(&d, &conn, &p->reply);
        if (r == 0)
                r = link_up(&p->lanes[lane], p->session, lane, conn, p->reply.next_seq);
        return r == 0 && again ? session_resume(p->session, d.generation) : r;
}

static int flush(struct probe *p)
{
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                int r = p->lanes[i].conn ? link_flush(&p->lanes[i], SIZE_MAX, NULL) : 0;
                if (r < 0 && r != SP_E_AGAIN)
                        return r;
        }
        return 0;
}

int probe_drive(struct probe *p, bool (*done)(const struct probe *p), int timeout_ms)
{
        for (uint64_t begin = clock_now_ns();;) {
                int r = flush(p);
                if (r < 0 || done(p))
                        return r;
                if (link_wait(p->lanes, timeout_ms) < 0) {
                        /* Perhaps it was woken for what was seen already. */
                        if (clock_now_ns() - begin >= (uint64_t)timeout_ms * 1000000)
                                return SP_E_TIMEOUT;
                        continue;
                }
                begin = clock_now_ns();
                for (unsigned i = 0; i < SESSION_LANES; i++) {
                        r = p->lanes[i].conn ? link_receive(&p->lanes[i], LINK_BUDGET, NULL) : 0;
                        if (r < 0)
                                return done(p) ? 0 : r;
                }
        }
}

static bool clock_came(const struct probe *p)
{
        return p->clocks > 0;
}

int probe_ping(struct probe *p)
{
        p->clocks = 0;
        int r = session_send(p->session, clock_query, .time_ns = clock_now_ns());
        return r < 0 ? r : probe_drive(p, clock_came, 20000);
}

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        struct probe *p = container_of(b, struct probe, bulk);
        *ret_len = p->size - (size_t)offset;
        return p->data + offset;
}

static void bulk_done(struct session_bulk *b, int status)
{
        (void)status;
        b->transfer = 0;
}

static bool transfer_done(const struct probe *p)
{
        return p->event && !p->bulk.transfer && p->arrived == p->size;
}

int probe_create(struct probe *p, unsigned n, size_t size)
{
        int r = session_send(p->session, queue_create, .queue = object_id(OBJECT_QUEUE, n));
        return r < 0 ? r
                     : session_send(p->session, buffer_create,
                                    .buffer = object_id(OBJECT_BUFFER, n),
                                    .flags = CL_MEM_READ_WRITE, .size = size);
}

static uint8_t pattern(size_t i, unsigned seed)
{
        return (uint8_t)((i * 31 + seed) >> 3);
}

/* A transfer is over, one way or the other; its memory must not be written to any more. */
static int finish(struct probe *p, int r)
{
        if (!r)
                r = probe_drive(p, transfer_done, 30000);
        if (!r && p->event_status)
                r = SP_E_UNSUPP;
        if (r < 0)
                probe_drop(p, 1);
        return r;
}

static int begin(struct probe *p, size_t size, size_t arrived)
{
        p->data = mem_zalloc(size);
        p->size = size;
        p->arrived = arrived;
        p->event = 0;
        return p->data ? 0 : SP_E_NOMEM;
}

int probe_write(struct probe *p, unsigned n, uint64_t event, size_t size, unsigned seed)
{
        int r = begin(p, size, size);
        if (r < 0)
                return r;
        for (size_t i = 0; i < size; i++)
                p->data[i] = pattern(i, seed);
        p->bulk = (struct session_bulk){
                .transfer = event, .total = size, .at = bulk_at, .done = bulk_done
        };
        r = session_send(p->session, buffer_write, .event = event,
                         .queue = object_id(OBJECT_QUEUE, n), .flags = COMMAND_NOTIFY,
                         .buffer = object_id(OBJECT_BUFFER, n), .size = size, .transfer = event);
        if (!r)
                r = session_bulk_send(p->session, &p->bulk, size);
        r = finish(p, r);
        mem_free(steal(p->data));
        return r;
}

bool probe_read(struct probe *p, unsigned n, uint64_t event, size_t size, unsigned seed)
{
        int r = begin(p, size, 0);
        if (r < 0)
                return false;
        r = session_send(p->session, buffer_read, .event = event,
                         .queue = object_id(OBJECT_QUEUE, n), .flags = COMMAND_NOTIFY,
                         .buffer = object_id(OBJECT_BUFFER, n), .size = size, .transfer = event);
        bool same = !finish(p, r);
        for (size_t i = 0; i < size && same; i++)
                same = p->data[i] == pattern(i, seed);
        mem_free(steal(p->data));
        return same;
}

bool probe_echo(struct probe *p, size_t size, unsigned seed)
{
        unsigned n = seed + 1;
        return !probe_create(p, n, size) &&
               !probe_write(p, n, object_id(OBJECT_EVENT, 2 * n), size, seed) &&
               probe_read(p, n, object_id(OBJECT_EVENT, 2 * n + 1), size, seed);
}
