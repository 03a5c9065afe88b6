#include "core/link/server.h"

#include <limits.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/event.h"
#include "core/command/transfer.h"
#include "core/command/upload.h"
#include "core/context.h"
#include "core/device.h"
#include "core/link/described.h"
#include "core/link/disconnected.h"
#include "core/link/found.h"
#include "core/link/found_sources.h"
#include "core/link/found_twins.h"
#include "core/link/idle.h"
#include "core/link/io.h"
#include "core/link/listeners.h"
#include "core/link/new_session.h"
#include "core/link/peers.h"
#include "core/link/request.h"
#include "core/memory/migration.h"
#include "core/profile/profile.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/status.h"
#include "core/tracing.h"
#include "proto/info.h"
#include "trace/trace.h"

enum {
        KICK_BYTES = 8 << 10,      /* so much is worth a packet */
        KICK_IDLE_NS = 50000,      /* a link without traffic for so long is idle */
        CLOSE_NS = 200000000,      /* how long a goodbye may take */
        CLOCK_AGE_NS = 1000000000, /* ask for the clock again after so long */
        CLOCK_DRIFT = 20000,       /* clocks may drift by one in so many (50 ppm) */
        CLOCK_PINGS = 4,           /* of these at the start the fastest counts */
};

/* ---- messages from the server --------------------------------------------------------------- */

static int on_server_info(void *user, const struct wire_server_info *m) REQUIRES(client_held)
{
        struct server *s = user;
        cl_int status = m->status ? status_to_cl((int)m->status) : CL_SUCCESS;
        request_answered(s, m->request, status, m->devices);
        return 0;
}

static int on_program_built(void *user, const struct wire_program_built *m) REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, status_to_cl((int)m->status), m->info);
        return 0;
}

static int on_program_binaries(void *user, const struct wire_program_binaries *m)
        REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, status_to_cl((int)m->status), m->parts);
        return 0;
}

static int on_program_inspected(void *user, const struct wire_program_inspected *m)
        REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, status_to_cl((int)m->status), m->parts);
        return 0;
}

static int on_kernel_answer(void *user, const struct wire_kernel_answer *m) REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, status_to_cl((int)m->status), m->value);
        return 0;
}

static int on_launch_answer(void *user, const struct wire_launch_answer *m) REQUIRES(client_held)
{
        struct server *s = user;
        const uint8_t submitted = (uint8_t)m->submitted;
        request_answered(s, m->request, status_to_cl((int)m->status), bytes_of(&submitted, 1));
        return 0;
}

static int on_svm_created(void *user, const struct wire_svm_created *m) REQUIRES(client_held)
{
        struct server *s = user;
        uint8_t address[8];
        bytes_put_u64(address, m->address);
        request_answered(s, m->request, status_to_cl((int)m->status),
                         bytes_of(address, sizeof(address)));
        return 0;
}

static int on_released(void *user, const struct wire_released *m) REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, CL_SUCCESS, (struct bytes){ 0 });
        return 0;
}

static int on_stats(void *user, const struct wire_stats *m) REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, CL_SUCCESS, m->links);
        return 0;
}

static int on_trace(void *user, const struct wire_trace *m) REQUIRES(client_held)
{
        struct server *s = user;
        request_answered(s, m->request, CL_SUCCESS, m->threads);
        return 0;
}

static int on_event_done(void *user, const struct wire_event_done *m) REQUIRES(client_held)
{
        uint64_t times[3] = { 0 };
        if (m->status > 0 || m->status < INT32_MIN || (m->times.count && m->times.count != 3))
                return SP_E_PROTO;
        for (size_t i = 0; i < m->times.count; i++)
                times[i] = wire_u64s_at(m->times, i);
        return event_received(user, m->event, (cl_int)m->status, m->queue, times,
                              m->times.count != 0);
}

static int on_output(void *user, const struct wire_output *m)
{
        struct server *s = user;
        struct client *c = s->client;
        c->io->output(c->io_user, m->text.data, m->text.size);
        return 0;
}

static int on_notice(void *user, const struct wire_notice *m) REQUIRES(client_held)
{
        enum { PAUSE_NS = 10000000 }; /* a server must not fill this process with callbacks */
        struct server *s = user;
        uint64_t now = client_now_ns(s->client);
        char line[512], text[320];
        if (s->noticed_ns && now - s->noticed_ns < PAUSE_NS)
                return 0;
        s->noticed_ns = now;
        snprintf(text, sizeof(text), "%.*s", (int)m->text.size, (const char *)m->text.data);
        bytes_tame(text, sizeof(text));
        snprintf(line, sizeof(line), "SpanCL: %s: %s", server_name(s), text);
        log_info("client", "%s", line);
        contexts_notify(s, line);
        return 0;
}

static int on_clock_query(void *user, const struct wire_clock_query *m)
{
        struct server *s = user;
        return session_send(s->session, clock_reply, .time_ns = m->time_ns,
                            .remote_ns = client_now_ns(s->client));
}

static void clock_take(struct server *s, uint64_t sent_ns, uint64_t received_ns, uint64_t remote_ns)
{
        uint64_t rtt = received_ns - sent_ns;
        if (s->clock.at_ns && rtt > s->clock.rtt_ns + (received_ns - s->clock.at_ns) / CLOCK_DRIFT)
                return;
        s->clock.rtt_ns = rtt;
        s->clock.at_ns = received_ns;
        s->clock.offset = (int64_t)(remote_ns - (sent_ns + rtt / 2));
        /* Clocks of two hosts, which count from their start, do not agree by chance: the other side is on
         * this host and has the same clock. */
        if (remote_ns >= sent_ns && remote_ns <= received_ns)
                s->clock.offset = 0;
}

static int clock_ask(struct server *s)
{
        int r = session_send(s->session, clock_query, .time_ns = client_now_ns(s->client));
        s->clock.pings += r == 0;
        return r;
}

static int on_clock_reply(void *user, const struct wire_clock_reply *m) REQUIRES(client_held)
{
        struct server *s = user;
        uint64_t now = client_now_ns(s->client);
        s->clock.pongs++;
        if (m->time_ns <= now)
                clock_take(s, m->time_ns, now, m->remote_ns);
        if (!s->clock.due)
                return 0;
        /* While we wait for its devices anyway. */
        s->clock.due--;
        int r = clock_ask(s);
        server_send(s);
        return r;
}

static int on_close(void *user, const struct wire_close *m)
{
        struct server *s = user;
        if (m->text.size)
                log_warn("client", "%s ends the session: %.*s", server_name(s), (int)m->text.size,
                         (const char *)m->text.data);
        return SP_E_GONE;
}

/* Contexts that have its devices go on; new ones do not get them. */
static int on_drain(void *user, const struct wire_drain *m) REQUIRES(client_held)
{
        struct server *s = user;
        char line[256];
        if (s->drains)
                return 0;
        s->drains = true;
        log_warn("client", "the server %s: %.*s", server_name(s), (int)m->text.size,
                 (const char *)m->text.data);
        snprintf(line, sizeof(line), "SpanCL: the server %s drains: new contexts do not get it",
                 server_name(s));
        contexts_notify(s, line);
        server_set_available(s, false);
        client_changed(s->client);
        return 0;
}

static const struct wire_handlers handlers = {
        .server_info = on_server_info,
        .program_built = on_program_built,
        .program_binaries = on_program_binaries,
        .program_inspected = on_program_inspected,
        .kernel_answer = on_kernel_answer,
        .launch_answer = on_launch_answer,
        .svm_created = on_svm_created,
        .released = on_released,
        .stats = on_stats,
        .trace = on_trace,
        .event_done = on_event_done,
        .transfer_cut = transfer_cut,
        .upload_answer = upload_answered,
        .transfer_orphaned = migration_orphaned,
        .peer_lost = peers_lost,
        .peer_direct = peers_direct,
        .relay_hello = peers_relay_hello,
        .relay_again = peers_relay_again,
        .relay_data = peers_relay_data,
        .relay_taken = peers_relay_taken,
        .output = on_output,
        .notice = on_notice,
        .clock_query = on_clock_query,
        .clock_reply = on_clock_reply,
        .close = on_close,
        .drain = on_drain,
};

static int on_message(void *user, struct bytes msg)
{
        const struct server *s = user;
        return s->state == SERVER_IDLE ? 0 : wire_dispatch(&handlers, user, msg);
}

static const struct session_ops session_ops = {
        .message = on_message,
        .bulk_place = transfer_place,
        .bulk_arrived = transfer_arrived,
        .bulk_restart = transfer_restart,
};

/* ---- life ----------------------------------------------------------------------------------- */

int server_new(struct client *c, unsigned index, const struct server_spec *spec,
               struct server **ret)
{
        struct server *s = mem_zalloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        s->client = c;
        s->index = index;
        s->spec = spec;
        s->sessions.first = s->sessions.last = s;
        list_init(&s->sub_devices);
        list_init(&s->sessions.retired);
        s->peers.id = client_new_id(c, OBJECT_PEER);
        c->io->random(c->io_user, s->id, sizeof(s->id));
        c->io->random(c->io_user, s->key, sizeof(s->key));
        struct session_params params = { .ops = &session_ops, .user = s, .place = index + 1 };
        int r = session_new(&params, &s->session);
        if (r < 0) {
                mem_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void server_reap(struct server *s, bool after_fork)
{
        struct client *c = s->client;
        struct io_link *link = s->link;
        s->reaped = true;
        s->link = NULL;
        if (link)
                c->io->close(c->io_user, link, after_fork);
        s->session = session_free(s->session);
}

static void drop_devices(struct server *s)
{
        for (cl_uint i = 0; i < s->device_count; i++)
                device_free(s->devices[i]);
        mem_free(s->devices);
        s->devices = NULL;
        s->device_count = 0;
}

struct server *server_free(struct server *s, bool after_fork)
{
        if (!s)
                return NULL;
        server_reap(s, after_fork);
        list_each(d, &s->sub_devices, struct _cl_device_id, link) device_free(d);
        drop_devices(s);
        map_fini(&s->contents);
        mem_free(s);
        return NULL;
}

void server_abandon(struct server *s)
{
        struct client *c = s->client;
        s->state = SERVER_LOST;
        s->idle.awaited = false;
        s->reaped = true; /* session and link are left alone: their lists may be half changed */
        if (s->link)
                c->io->close(c->io_user, s->link, true);
}

void server_halt(struct server *s)
{
        struct client *c = s->client;
        if (s->link && c->io->halt)
                c->io->halt(c->io_user, s->link);
}

void server_lost(struct server *s, int status, const char *text)
{
        struct client *c = s->client;
        if (s->state == SERVER_LOST)
                return;
        enum server_state before = s->state;
        c->disconnected.count -= s->state == SERVER_DISCONNECTED;
        s->state = SERVER_LOST;
        s->idle.awaited = false;
        s->sending.unsent_since = 0;
        s->sending.backlog = false;
        if (before == SERVER_NEW) {
                if (s->link)
                        server_begin_session(s);
                client_changed(c);
                return;
        }
        if (!c->closing) {
                char line[160];
                TRACE(lost, s->index);
                recorder_trigger("lost the server", server_name(s));
                snprintf(line, sizeof(line), "is lost: %s", text);
                server_log(s, found_is_gone(s) || s->drains ? LOG_INFO : LOG_ERROR, line);
        }
        server_halt(s);
        server_set_available(s, false);
        if (before != SERVER_IDLE)
                server_notify_lost(s, &(struct server_loss){ status, text });
        client_changed(c);
        /* Also before it sleeps: the receiver may just have found out while it sent. */
        c->io->wake(c->io_user);
        server_begin_session(s);
        found_lost(s);
}

void server_idle(struct server *s)
{
        struct client *c = s->client;
        if (session_send(s->session, close, .status = 0) == 0)
                server_send(s);
        if (s->state != SERVER_UP) /* sending has shown that it is lost */
                return;
        s->state = SERVER_IDLE;
        server_halt(s);
        server_notify_lost(s, &(struct server_loss){ SP_E_GONE, "nothing uses it" });
        client_changed(c);
        c->io->wake(c->io_user);
}

void server_broken(struct server *s, int status)
{
        if (server_may_return(s, status) && server_tries_in_vain(s))
                server_lost(
                        s, status,
                        "its connections are lost again and again, and nothing came through the last 16");
        else if (server_may_return(s, status))
                server_disconnected(s);
        else
                server_lost(s, status, status_text(status));
}

struct goodbye {
        struct client *client;
        bool exiting;
};

/* Is it one of those that are left alone? */
static bool is_left(const struct server *s, const struct goodbye *g)
{
        return g->exiting && s->spec->in_process;
}

/* Is a goodbye on its way to it? */
static bool says_goodbye(const struct server *s)
{
        return s->state == SERVER_UP || (s->state == SERVER_IDLE && s->link);
}

/* Is no server left that the goodbye must reach? */
static bool all_gone(void *arg) REQUIRES(client_held)
{
        struct goodbye *g = arg;
        for (unsigned i = 0; i < g->client->server_count; i++)
                if (says_goodbye(g->client->servers[i]) && !is_left(g->client->servers[i], g))
                        return false;
        return true;
}

void servers_close(struct client *c, bool exiting)
{
        struct goodbye g = { c, exiting };
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (s->state == SERVER_UP && !is_left(s, &g) &&
                    session_send(s->session, close, .status = 0) == 0)
                        server_send(s);
        }
        /* The servers close the connections when they have read it. Closing them first, with something of
         * theirs unread, could take the goodbye away. */
        client_wait_until(c, all_gone, &g, client_now_ns(c) + CLOSE_NS);
        for (unsigned i = 0; i < c->server_count; i++) {
                struct server *s = c->servers[i];
                if (is_left(s, &g))
                        continue;
                if (s->state == SERVER_UP || s->state == SERVER_DISCONNECTED || s->link)
                        server_lost(s, SP_E_GONE, "the client ends");
                if (!c->wait.sleeping && !s->receiving && !s->reaped)
                        server_reap(s, false);
        }
}

/* ---- connecting ----------------------------------------------------------------------------- */

static bool wanted(const struct server_spec *spec, unsigned index)
{
        for (size_t i = 0; i < spec->device_count; i++)
                if (spec->device_list[i] == index)
                        return true;
        return !spec->device_count;
}

/* Does the configuration name the server with that device before? */
static bool named_before(const struct client *c, const struct server_spec *spec, unsigned index)
        REQUIRES(client_held)
{
        if (spec < c->specs.list || spec >= c->specs.list + c->specs.count)
                return false; /* it was found */
        for (size_t i = 0; &c->specs.list[i] != spec; i++)
                if (wanted(&c->specs.list[i], index) && found_same_server(&c->specs.list[i], spec))
                        return true;
        return false;
}

/* All its devices? The same for its number of devices, which is not known yet. */
static bool all_named_before(const struct client *c, const struct server_spec *spec)
        REQUIRES(client_held)
{
        bool all = true;
        for (size_t i = 0; i < spec->device_count; i++)
                all &= named_before(c, spec, spec->device_list[i]);
        return spec->device_count ? all : named_before(c, spec, UINT_MAX);
}

int server_take_devices(struct server *s, struct bytes info)
{
        unsigned count = 0;
        struct info_entry e;
        for (struct bytes b = info; info_next(&b, &e);)
                if (e.key == INFO_SERVER)
                        s->load = info_u64(e.value, INFO_SERVER_SESSIONS, 0);
                else
                        count += e.key == INFO_DEVICE;
        for (size_t i = 0; i < s->spec->device_count; i++)
                if (s->spec->device_list[i] >= count)
                        log_warn("client", "%s has no device %u, it has %u in all", server_name(s),
                                 s->spec->device_list[i], count);
        s->devices = mem_alloc(count * sizeof(cl_device_id));
        if (!s->devices)
                return SP_E_NOMEM;
        unsigned index = 0;
        for (struct bytes b = info; info_next(&b, &e);) {
                if (e.key != INFO_DEVICE)
                        continue;
                if (wanted(s->spec, index) && !named_before(s->client, s->spec, index)) {
                        int r = device_new(s->client, s, e.value, &s->devices[s->device_count]);
                        if (r < 0) {
                                drop_devices(s);
                                return r;
                        }
                        s->device_count++;
                }
                index++;
        }
        return 0;
}

static void ask_devices(struct server *s, struct request *q) REQUIRES(client_held)
{
        if (request_begin(s->client, s, q) < 0) {
                q->done = true;
                q->status = CL_OUT_OF_HOST_MEMORY;
                return;
        }
        if (session_send(s->session, server_info_query, .request = q->id) < 0)
                request_done(s->client, q->id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
        if (clock_ask(s) == 0)
                s->clock.due = CLOCK_PINGS;
        server_send(s);
}

void server_connected(struct server *s, struct io_connect *at, struct request *q)
{
        if (at->status < 0) {
                s->state = SERVER_LOST;
                enum log_level level = s->spec->implied ? LOG_INFO : LOG_ERROR;
                if (at->text[0])
                        log_at(level, "client", "%s", at->text);
                else
                        log_at(level, "client", "%s: %s", server_name(s), status_text(at->status));
                return;
        }
        memcpy(s->identity, at->identity, sizeof(s->identity));
        memcpy(s->local_path, at->local_path, sizeof(s->local_path));
        s->transfers.uploads = at->uploads;
        s->sending.last_traffic = at->received_ns;
        clock_take(s, at->sent_ns, at->received_ns, at->remote_ns);
        if (at->described) {
                (void)!server_described(s, at); /* else it is lost */
                return;
        }
        s->state = SERVER_UP;
        s->link = at->link;
        tracing_server(s, at->knows_recorder);
        ask_devices(s, q);
}

void servers_connect(struct client *c)
{
        static const size_t max = CLIENT_SERVERS_MAX;
        size_t n = c->specs.count < max ? c->specs.count : max;
        struct io_connect *all = mem_zalloc(n * sizeof(*all));
        struct request *asked = mem_zalloc(n * sizeof(*asked));
        bool describe = servers_describe(c);
        for (size_t i = 0; i < n && all && asked; i++) {
                struct server *s;
                if (all_named_before(c, &c->specs.list[i])) {
                        log_info("client", "%s is named twice", c->specs.list[i].name);
                        continue;
                }
                if (server_new(c, c->server_count, &c->specs.list[i], &s) < 0)
                        break;
                c->servers[c->server_count++] = s;
                all[s->index] = (struct io_connect){ .spec = s->spec,
                                                     .session = s->session,
                                                     .describe = describe,
                                                     .id = { s->id[0], s->id[1] },
                                                     .key = { s->key[0], s->key[1] } };
        }
        /* A server that is lost meanwhile may begin a session, which is one server more. */
        const unsigned count = c->server_count;
        if (all && asked) {
                uint64_t begin_ns = profile_is_on() ? client_now_ns(c) : 0;
                c->io->connect(c->io_user, all, count);
                if (profile_is_on())
                        profile_waited(c, begin_ns);
        }
        for (unsigned i = 0; i < count; i++)
                server_connected(c->servers[i], &all[i], &asked[i]);

        for (unsigned i = 0; i < count; i++) {
                struct server *s = c->servers[i];
                if (!asked[i].server && !asked[i].done)
                        continue;
                request_wait(c, &asked[i]);
                int r = asked[i].status ? SP_E_LINK
                                        : server_take_devices(s, bytes_of(asked[i].info.data,
                                                                          asked[i].info.size));
                if (r < 0 && s->state != SERVER_LOST)
                        server_lost(s, r, "it could not tell its devices");
                buf_fini(&asked[i].info);
        }
        /* With many servers the buffers of those that nobody uses would be most of the memory. */
        for (unsigned i = 0; i < count && !c->wait.pumping; i++)
                if (c->servers[i]->session)
                        session_trim(c->servers[i]->session);
        for (unsigned i = 0; i < count && all; i++)
                hello_devices_fini(&all[i].devices);
        servers_settled(c);
        mem_free(all);
        mem_free(asked);
}

/* ---- sending and receiving ------------------------------------------------------------------ */

struct session *server_session(struct server *s)
{
        bool there = s->state == SERVER_UP || s->state == SERVER_DISCONNECTED;
        return there && !server_ends(s) ? s->session : NULL;
}

unsigned server_index(const struct server *s)
{
        return s->index;
}

const char *server_name(const struct server *s)
{
        return s->spec->name;
}

void server_send(struct server *s)
{
        struct client *c = s->client;
        if (s->state != SERVER_UP || s->lost_status)
                return;
        bool something = session_unsent(s->session) != 0;
        int r = c->io->send(c->io_user, s->link);
        if (r < 0 && r != SP_E_AGAIN) {
                s->lost_status = r;
                if (!s->receiving)
                        server_broken(s, r);
                return;
        }
        s->sending.unsent_since = 0;
        s->sending.fresh_bulk = false;
        if (something)
                s->sending.last_traffic = client_now_ns(c);
        bool had = s->sending.backlog;
        s->sending.backlog = r == SP_E_AGAIN || session_bulk_pending(s->session);
        if (!s->sending.backlog || had)
                return;
        /* Somebody has to wait for room. */
        if (c->wait.sleeping)
                c->io->wake(c->io_user);
        else if (!c->wait.waiters)
                progress_wake(c);
}

bool server_receive(struct server *s)
{
        struct client *c = s->client;
        if (s->state == SERVER_LOST && !s->reaped && !s->receiving)
                server_reap(s, false);
        if (s->state == SERVER_NEW)
                return server_opening(s);
        if (s->state == SERVER_IDLE)
                return server_closing(s);
        bool disconnected = s->state == SERVER_DISCONNECTED;
        if ((s->state != SERVER_UP && !disconnected) || s->receiving)
                return false;
        s->receiving = true;
        int r = s->lost_status;
        if (!r && disconnected)
                r = server_redial(s);
        if (!r)
                r = c->io->receive(c->io_user, s->link);
        s->receiving = false;
        if (s->lost_status && (r >= 0 || r == SP_E_LINK)) /* the worse */
                r = s->lost_status;
        if (r < 0)
                server_broken(s, r);
        else if (r > 0 && disconnected)
                server_back(s);
        else if (r > 0)
                s->sending.last_traffic = client_now_ns(c);
        return r != 0;
}

void server_flush(struct server *s)
{
        server_send(s);
}

void server_kick(struct server *s)
{
        struct client *c = s->client;
        if (s->state != SERVER_UP)
                return;
        uint64_t now = client_now_ns(c);
        /* Lanes with threads of their own need no help: they only must hear of new transfers. */
        bool bulk = s->sending.fresh_bulk ||
                    (session_bulk_pending(s->session) && !session_has_wide_lanes(s->session));
        if (bulk || session_unsent(s->session) >= KICK_BYTES ||
            now - s->sending.last_traffic > KICK_IDLE_NS) {
                server_send(s);
                return;
        }
        if (s->sending.unsent_since || !session_unsent(s->session))
                return; /* the progress thread knows, or has nothing to do */
        s->sending.unsent_since = now;
        progress_wake(c);
        if (c->wait.progress_pumping && c->wait.sleeping)
                c->io->wake(c->io_user); /* it sleeps for longer than these may wait */
}

void server_want_bulk(struct server *s, uint64_t size)
{
        struct client *c = s->client;
        if (size <= SESSION_INLINE_DEFAULT || !server_session(s))
                return;
        if (s->state == SERVER_DISCONNECTED || s->lost_status) {
                s->sending.bulk_lane = true; /* attached when lane 0 is (server_back) */
                return;
        }
        if ((size >= SESSION_WIDE_DEFAULT || c->transfers.moving >= SESSION_WIDE_DEFAULT) &&
            c->io->widen)
                c->io->widen(c->io_user, s->link, &c->lock);
        if (s->sending.bulk_lane)
                return;
        s->sending.bulk_lane = true;
        int r = c->io->attach(c->io_user, s->link, 1);
        if (r < 0)
                s->lost_status = r; /* the next send or receive ends it */
}

/* ---- clocks --------------------------------------------------------------------------------- */

uint64_t server_local_ns(const struct server *s, uint64_t remote_ns)
{
        return remote_ns - (uint64_t)s->clock.offset;
}

uint64_t server_clock_error_ns(const struct server *s)
{
        if (s->spec->in_process || !s->clock.offset) /* the same clock */
                return 0;
        return s->clock.rtt_ns / 2 + (client_now_ns(s->client) - s->clock.at_ns) / CLOCK_DRIFT;
}

void server_ask_clock(struct server *s)
{
        uint64_t now = client_now_ns(s->client);
        if (s->clock.asked_ns && now - s->clock.asked_ns < CLOCK_AGE_NS)
                return;
        struct session *session = server_session(s);
        if (session && clock_ask(s) == 0)
                s->clock.asked_ns = now;
}

struct round_trip {
        struct server *server;
        uint64_t ping;
};

static bool is_back(void *arg) REQUIRES(client_held)
{
        const struct round_trip *t = arg;
        return t->server->clock.pongs >= t->ping || server_fails(t->server);
}

int server_round_trip(struct server *s)
{
        int r = server_fails(s) ? SP_E_GONE : clock_ask(s);
        struct round_trip t = { s, s->clock.pings };
        if (r == 0)
                client_wait(s->client, is_back, &t);
        if (r == 0 && profile_is_on())
                profile_wait_was(PROFILE_ANSWER, s, NULL, 0);
        return r;
}
