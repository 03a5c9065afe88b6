#include "cli/remote.h"

#include <CL/cl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "config/servers.h"
#include "config/variables.h"
#include "loop/dial.h"
#include "loop/link.h"
#include "loop/server_loop.h"
#include "os/clock.h"
#include "os/random.h"
#include "proto/info.h"
#include "transport/address.h"

enum { ROUNDS = 4 };

struct remote {
        char *name;
        char *address;
        int timeout_ms;
        bool share;
        struct server_loop *local;   /* in-process */
        struct config_local options; /* of that */
        char *accelerators;          /* one of them; NULL: none */
        struct session *session;
        struct link lanes[SESSION_LANES];
        enum dial_role role;
        uint64_t id[2], key[2], next;
        uint64_t connect_ns;
        struct session_bulk bulk;
        uint8_t *data; /* of the transfer in flight */
        size_t size;
        /* The answers that have arrived. */
        bool have_info, have_clock;
        uint64_t clock_ns; /* the server's */
        int64_t info_status;
        struct buf info;
        uint64_t done_event;
        int64_t done_status;
        size_t arrived;
        bool have_trace;
        struct buf trace;
        int end; /* the reason for which the server closed the session */
        char end_text[256];
        char failure[REMOTE_TEXT_MAX]; /* the reason for which a measurement failed; "": none */
};

/* ---- messages of the server ------------------------------------------------------------------ */

static int on_server_info(void *user, const struct wire_server_info *m)
{
        struct remote *r = user;
        r->have_info = true;
        r->info_status = m->status;
        return buf_put(&r->info, m->devices.data, m->devices.size);
}

static int on_clock_reply(void *user, const struct wire_clock_reply *m)
{
        struct remote *r = user;
        r->have_clock = true;
        r->clock_ns = m->remote_ns;
        return 0;
}

static int on_event_done(void *user, const struct wire_event_done *m)
{
        struct remote *r = user;
        r->done_event = m->event;
        r->done_status = m->status;
        return 0;
}

/* The first one counts. */
static int on_trace(void *user, const struct wire_trace *m)
{
        struct remote *r = user;
        if (r->role != DIAL_OBSERVE || r->have_trace || info_check(m->threads) < 0)
                return SP_E_PROTO;
        r->have_trace = true;
        return buf_put(&r->trace, m->threads.data, m->threads.size);
}

static int on_close(void *user, const struct wire_close *m)
{
        struct remote *r = user;
        r->end = m->status < 0 ? (int)m->status : SP_E_GONE;
        snprintf(r->end_text, sizeof(r->end_text), "%.*s", (int)m->text.size,
                 (const char *)m->text.data);
        bytes_tame(r->end_text, sizeof(r->end_text));
        return r->end;
}

static int on_output(void *user, const struct wire_output *m)
{
        (void)user;
        fwrite(m->text.data, 1, m->text.size, stdout);
        return 0;
}

static int on_message(void *user, struct bytes msg)
{
        static const struct wire_handlers handlers = {
                .server_info = on_server_info,
                .clock_reply = on_clock_reply,
                .event_done = on_event_done,
                .close = on_close,
                .output = on_output,
                .trace = on_trace,
        };
        return wire_dispatch(&handlers, user, msg);
}

static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        struct remote *r = user;
        (void)transfer;
        (void)inlined;
        if (offset >= r->size || *len > r->size - offset)
                return SP_E_PROTO;
        *ret = r->data + offset;
        return 0;
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        struct remote *r = user;
        (void)transfer;
        (void)offset;
        *ret_below = r->arrived += len; /* the bytes come in order, on one lane */
        return r->arrived == r->size;
}

static const struct session_ops ops = { on_message, on_place, on_arrived };

/* ---- connecting ------------------------------------------------------------------------------ */

const char *remote_without_address(const char *text, const char *address)
{
        char where[ADDRESS_MAX];
        if (!address)
                return text;
        address_show(address, where);
        size_t n = strlen(where);
        return !strncmp(text, where, n) && !strncmp(text + n, ": ", 2) ? text + n + 2 : text;
}

const char *remote_reason(const struct remote *r, int status)
{
        if (!r->end)
                return *r->failure ? r->failure : status_text(status);
        return *r->end_text ? r->end_text : status_text(r->end);
}

void remote_complain(const struct remote *r, int status)
{
        fprintf(stderr, "spancl: %s: %s\n", r->name, remote_reason(r, status));
}

static int attach(struct remote *r, unsigned lane, char text[REMOTE_TEXT_MAX])
{
        struct conn *conn;
        struct dial_reply reply;
        const struct dial_params p = {
                .address = r->address,
                .timeout_ms = r->timeout_ms,
                .role = r->role,
                .lane = lane,
                .session_id = { r->id[0], r->id[1] },
                .key = { r->key[0], r->key[1] },
                .next_seq = lane ? 0 : session_next_seq(r->session),
                .name = "spancl",
                .share = r->share && r->role == DIAL_CLIENT,
        };
        uint64_t before = clock_now_ns();
        int status = r->local ? server_loop_connect(r->local, &p, &conn, &reply)
                              : loop_connect(&p, &conn, &reply);
        if (status < 0) {
                snprintf(text, REMOTE_TEXT_MAX, "%s", reply.text);
                return status;
        }
        if (!lane)
                r->connect_ns = clock_now_ns() - before;
        status = link_up(&r->lanes[lane], r->session, lane, conn, reply.next_seq);
        if (status < 0)
                snprintf(text, REMOTE_TEXT_MAX, "%s: %s", r->name, status_text(status));
        return status;
}

/* `process`: of the session to observe; 0: this is a client. */
static int connect_to(const struct server_spec *spec, const char *address, uint64_t process,
                      int timeout_ms, struct remote **ret, char text[REMOTE_TEXT_MAX])
{
        struct remote *r = mem_zalloc(sizeof(*r));
        int status = r ? 0 : SP_E_NOMEM;
        if (!status) {
                r->role = process ? DIAL_OBSERVE : DIAL_CLIENT;
                r->timeout_ms = timeout_ms;
                r->share = config_number(CONFIG_client_share) == 1;
                r->name = mem_strdup(spec->name);
                r->address = address ? mem_strdup(address) : NULL;
                if (!r->name || (address && !r->address))
                        status = SP_E_NOMEM;
        }
        if (!status && process)
                r->id[1] = process;
        else if (!status &&
                 (!random_fill(r->id, sizeof(r->id)) || !random_fill(r->key, sizeof(r->key))))
                status = SP_E_UNSUPP;
        if (!status)
                status = session_new(&(struct session_params){ .ops = &ops, .user = r },
                                     &r->session);
        char *error = NULL;
        if (!status && spec->accelerators)
                status = config_accelerators(&r->accelerators, &error);
        if (!status && spec->in_process) {
                config_local_options(r->accelerators, spec->accelerators, &r->options);
                r->options.options.values[CONFIG_devices] = spec->devices;
                status = server_loop_new(
                        &(struct server_loop_params){ .options = &r->options.options,
                                                      .backend = backend_find(spec->backend),
                                                      .output_fd = -1 },
                        &r->local);
        }
        if (status < 0)
                snprintf(text, REMOTE_TEXT_MAX, "%s: %s", spec->name,
                         error ? error : status_text(status));
        else
                status = attach(r, 0, text);
        mem_free(error);
        if (status < 0) {
                remote_close(r);
                return status;
        }
        *ret = r;
        return 0;
}

int remote_try(const struct server_spec *spec, int timeout_ms, struct remote **ret,
               char text[REMOTE_TEXT_MAX])
{
        return connect_to(spec, spec->address, 0, timeout_ms, ret, text);
}

int remote_observe(const struct server_spec *spec, const char *address, uint64_t process,
                   int timeout_ms, struct remote **ret, char text[REMOTE_TEXT_MAX])
{
        int status = connect_to(spec, address, process, timeout_ms, ret, text);
        if (!status && session_send((*ret)->session, trace_start, .flags = 0) < 0) {
                snprintf(text, REMOTE_TEXT_MAX, "%s: out of memory", spec->name);
                *ret = remote_close(*ret);
                return SP_E_NOMEM;
        }
        return status;
}

int remote_open(const struct server_spec *spec, int timeout_ms, struct remote **ret)
{
        char text[REMOTE_TEXT_MAX];
        int status = remote_try(spec, timeout_ms, ret, text);
        if (status < 0)
                fprintf(stderr, "spancl: %s\n", text);
        return status;
}

struct remote *remote_close(struct remote *r)
{
        if (!r)
                return NULL;
        if (r->session && r->lanes[0].conn && !r->end &&
            !session_send(r->session, close, .status = 0))
                (void)!link_flush(&r->lanes[0], SIZE_MAX, NULL);
        for (unsigned i = 0; i < SESSION_LANES; i++)
                link_down(&r->lanes[i]);
        session_free(r->session);
        server_loop_free(r->local);
        mem_free(r->accelerators);
        buf_fini(&r->info);
        buf_fini(&r->trace);
        mem_free(r->name);
        mem_free(r->address);
        mem_free(r);
        return NULL;
}

const char *remote_transport(const struct remote *r)
{
        return r->lanes[0].conn ? conn_name(r->lanes[0].conn) : "none";
}

uint64_t remote_connect_ns(const struct remote *r)
{
        return r->connect_ns;
}

/* ---- as the server's own user ---------------------------------------------------------------- */

int remote_greet(const char *address, enum dial_role role, struct dial_reply *reply)
{
        struct conn *conn;
        const struct dial_params p = {
                .address = address,
                .timeout_ms = options_timeout(),
                .role = role,
                .name = "spancl",
                .own_user = role == DIAL_DRAIN,
        };
        int r = loop_connect(&p, &conn, reply);
        if (r == 0)
                conn_close(conn);
        return r;
}

int remote_own_address(const struct server_spec *spec, char ret[ADDRESS_MAX],
                       struct dial_reply *reply)
{
        struct address named, path;
        snprintf(ret, ADDRESS_MAX, "%s", spec->address);
        int r = remote_greet(spec->address, DIAL_LOOK, reply);
        bool knows_user =
                address_parse(spec->address, &named) == 0 && named.ops->caps & TRANSPORT_KNOWS_USER;
        if (r == 0 && !knows_user && *reply->local_path &&
            !address_of_path(reply->local_path, &path))
                address_put(&path, ret);
        return r;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int drive(struct remote *r, bool (*done)(struct remote *r))
{
        uint64_t deadline = clock_now_ns() + (uint64_t)r->timeout_ms * 1000000;
        for (;;) {
                for (unsigned i = 0; i < SESSION_LANES; i++) {
                        if (!r->lanes[i].conn)
                                continue;
                        int status = link_flush(&r->lanes[i], SIZE_MAX, NULL);
                        if (status < 0 && status != SP_E_AGAIN)
                                return status;
                }
                if (done(r))
                        return 0;
                if (clock_now_ns() >= deadline)
                        return SP_E_TIMEOUT;
                if (link_wait(r->lanes, clock_poll_ms(deadline)) < 0)
                        continue;
                for (unsigned i = 0; i < SESSION_LANES; i++) {
                        int status = r->lanes[i].conn
                                             ? link_receive(&r->lanes[i], LINK_BUDGET, NULL)
                                             : 0;
                        if (status < 0)
                                return r->end ? r->end : status;
                }
        }
}

static bool info_came(struct remote *r)
{
        return r->have_info;
}

int remote_devices(struct remote *r, struct bytes *ret)
{
        r->have_info = false;
        r->info.size = 0;
        int status = session_send(r->session, server_info_query, .request = 1);
        if (!status)
                status = drive(r, info_came);
        if (!status)
                status = r->info_status ? SP_E_NODEV
                                        : info_check(bytes_of(r->info.data, r->info.size));
        if (!status)
                *ret = bytes_of(r->info.data, r->info.size);
        return status;
}

static bool clock_came(struct remote *r)
{
        return r->have_clock;
}

int remote_clock(struct remote *r, struct remote_clock *ret)
{
        uint64_t begin = clock_now_ns();
        r->have_clock = false;
        int status = session_send(r->session, clock_query, .time_ns = begin);
        if (!status)
                status = drive(r, clock_came);
        if (status < 0)
                return status;
        uint64_t took = clock_now_ns() - begin;
        *ret = (struct remote_clock){
                .here_ns = begin + took / 2,
                .there_ns = r->clock_ns,
                .round_trip_ns = took,
        };
        return 0;
}

static bool trace_came(struct remote *r)
{
        return r->have_trace;
}

int remote_trace(struct remote *r, bool ask, struct bytes *ret)
{
        int status = 0;
        if (!r->have_trace && !ask)
                return SP_E_AGAIN;
        if (!r->have_trace)
                status = session_send(r->session, trace_query, .request = 1);
        /* The answer is large: it may take longer, as long as it comes. */
        for (uint64_t before = UINT64_MAX; !status || status == SP_E_TIMEOUT;) {
                uint64_t now = session_get_stats(r->session)->bytes_received;
                if (r->have_trace || now == before)
                        break;
                before = now;
                status = drive(r, trace_came);
        }
        if (r->have_trace)
                status = 0; /* the connection may have ended behind it */
        if (!status)
                *ret = bytes_of(r->trace.data, r->trace.size);
        return status;
}

int remote_ping(struct remote *r, uint64_t *ret_ns)
{
        struct remote_clock c;
        int status = remote_clock(r, &c);
        if (!status)
                *ret_ns = c.round_trip_ns;
        return status;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

int remote_median(struct remote *r, double *ret_us)
{
        uint64_t ns[REMOTE_PINGS];
        for (size_t i = 0; i < REMOTE_PINGS; i++) {
                int status = remote_ping(r, &ns[i]);
                if (status < 0)
                        return status;
        }
        qsort(ns, REMOTE_PINGS, sizeof(ns[0]), compare);
        *ret_us = (double)ns[REMOTE_PINGS / 2] / 1000;
        return 0;
}

/* ---- bandwidth ------------------------------------------------------------------------------- */

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        struct remote *r = container_of(b, struct remote, bulk);
        *ret_len = r->size - (size_t)offset;
        return r->data + offset;
}

static void bulk_done(struct session_bulk *b, int status)
{
        (void)status;
        b->transfer = 0;
}

static bool command_done(struct remote *r)
{
        return r->done_event && !r->bulk.transfer && r->arrived == r->size;
}

static int finish(struct remote *r, uint64_t begin, double *best)
{
        int status = drive(r, command_done);
        if (status < 0)
                return status;
        if (r->done_status) {
                snprintf(r->failure, sizeof(r->failure), "the device failed (%" PRId64 ")",
                         r->done_status);
                return SP_E_UNSUPP;
        }
        double speed = (double)r->size * 1e9 / (double)(clock_now_ns() - begin);
        if (speed > *best)
                *best = speed;
        return 0;
}

static int write_once(struct remote *r, uint64_t queue, uint64_t buffer, double *best)
{
        uint64_t event = object_id(OBJECT_EVENT, ++r->next), begin = clock_now_ns();
        r->done_event = 0;
        r->arrived = r->size;
        r->bulk = (struct session_bulk){
                .transfer = event,
                .total = r->size,
                .at = bulk_at,
                .done = bulk_done,
        };
        int status = session_send(r->session, buffer_write, .event = event, .queue = queue,
                                  .flags = COMMAND_NOTIFY, .buffer = buffer, .size = r->size,
                                  .transfer = event);
        if (!status)
                status = session_bulk_send(r->session, &r->bulk, r->size);
        return status < 0 ? status : finish(r, begin, best);
}

static int read_once(struct remote *r, uint64_t queue, uint64_t buffer, double *best)
{
        uint64_t event = object_id(OBJECT_EVENT, ++r->next), begin = clock_now_ns();
        r->done_event = 0;
        r->arrived = 0;
        int status = session_send(r->session, buffer_read, .event = event, .queue = queue,
                                  .flags = COMMAND_NOTIFY, .buffer = buffer, .size = r->size,
                                  .transfer = event);
        return status < 0 ? status : finish(r, begin, best);
}

static int measure(struct remote *r, unsigned device, struct remote_speed *ret)
{
        uint64_t queue = object_id(OBJECT_QUEUE, ++r->next);
        uint64_t buffer = object_id(OBJECT_BUFFER, ++r->next);
        int status = session_send(r->session, queue_create, .queue = queue, .device = device);
        if (!status)
                status = session_send(r->session, buffer_create, .buffer = buffer,
                                      .flags = CL_MEM_READ_WRITE, .size = r->size);
        for (int i = 0; i < ROUNDS && !status; i++)
                status = write_once(r, queue, buffer, &ret->write);
        for (int i = 0; i < ROUNDS && !status; i++)
                status = read_once(r, queue, buffer, &ret->read);
        if (!status)
                status = session_send(r->session, release, .object = buffer);
        if (!status)
                status = session_send(r->session, release, .object = queue);
        return status;
}

int remote_measure(struct remote *r, unsigned device, size_t size, struct remote_speed *ret)
{
        struct remote_speed speed = { 0 };
        char text[REMOTE_TEXT_MAX];
        r->failure[0] = 0;
        int status = r->lanes[1].conn ? 0 : attach(r, 1, text);
        if (status < 0) {
                snprintf(r->failure, sizeof(r->failure), "%s",
                         remote_without_address(text, r->address));
                return status;
        }
        r->size = size;
        r->data = mem_zalloc(size);
        status = r->data ? measure(r, device, &speed) : SP_E_NOMEM;
        if (status < 0)
                link_down(&r->lanes[1]); /* before the memory that it may still receive into */
        mem_free(steal(r->data));
        r->size = 0;
        if (!status)
                *ret = speed;
        return status;
}
