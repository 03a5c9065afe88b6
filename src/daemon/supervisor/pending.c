#include "daemon/supervisor/pending.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/accounts.h"
#include "daemon/supervisor/advertising.h"
#include "daemon/supervisor/audit.h"
#include "daemon/supervisor/describing.h"
#include "daemon/supervisor/energy.h"
#include "daemon/supervisor/introduce.h"
#include "daemon/supervisor/observing.h"
#include "daemon/supervisor/report.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/sensing.h"
#include "daemon/supervisor/watching.h"
#include "daemon/supervisor/workers.h"
#include "daemon/system/notify.h"
#include "daemon/system/time_slice.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "session/hello.h"

enum {
        SILENT_MAX = 1024,         /* connections whose hello has not come */
        SILENT_OF_HOST_MAX = 64,   /* the same from one other host */
        WAITING_MAX = 256,         /* new sessions that wait for a worker */
        SERVED_MAX = 256,          /* connections that are sent an answer */
        SERVED_OF_CLIENT_MAX = 64, /* the same of one client */
        HELLO_MS = 10000,          /* for a hello to arrive */
        ANSWER_MS = 10000,         /* for an answer to be taken */
        WAIT_MS = 60000,           /* for a worker to become ready */
        /* Delay before the next warm worker starts, so that it does not slow the new session. */
        RESPAWN_MS = 300,
        ACCEPT_PAUSE_MS = 100, /* when there are no descriptors */
        ACCEPT_BATCH = 64,
};

static const char draining_text[] =
        "this server drains: it takes no new sessions, and ends with the last one";

void pending_init(struct supervisor *s)
{
        list_init(&s->arrivals.silent.all);
        list_init(&s->arrivals.waiting.all);
        list_init(&s->arrivals.served.all);
        list_init(&s->arrivals.dead);
}

static void leave(struct pending *v)
{
        if (!v->in)
                return;
        list_remove(&v->link);
        v->in->count--;
        v->in = NULL;
}

/* Move the connection, perhaps a new one, to the end of this list. All connections of a list get the same time. */
static void move(struct pending *v, struct pending_list *to, uint64_t ms)
{
        leave(v);
        v->in = to;
        v->deadline_ns = clock_now_ns() + ms * MS;
        list_append(&to->all, &v->link);
        to->count++;
}

/* Drop the pending connection, whose conn is closed. Its memory stays until the events at hand
 * are done. */
static void pending_gone(struct supervisor *s, struct pending *v)
{
        leave(v);
        list_append(&s->arrivals.dead, &v->link);
}

static void pending_drop(struct supervisor *s, struct pending *v)
{
        supervisor_unwatch(s, v->conn->room_fd); /* its socket */
        v->conn = conn_close(v->conn);
        pending_gone(s, v);
}

/* Drop a connection that gets no answer, and say why in the log. */
static void drop_refused(struct supervisor *s, struct pending *v, int status, const char *why)
{
        audit_refused(s, v, status, why);
        if (v->conn)
                pending_drop(s, v);
        else
                pending_gone(s, v);
}

static struct pending *first(struct list *l)
{
        return list_empty(l) ? NULL : list_entry(l->next, struct pending, link);
}

/* Keep the connection until it has taken its answer. Strangers can't displace it, because only admitted clients are
 * served. The client with more than its part loses its own oldest one. */
static void serve(struct supervisor *s, struct pending *newest)
{
        struct pending_list *served = &s->arrivals.served;
        struct pending *oldest = NULL;
        size_t count = 0;
        move(newest, served, ANSWER_MS);
        list_each(v, &served->all, struct pending, link)
        {
                if (strcmp(v->grant.who, newest->grant.who) != 0)
                        continue;
                oldest = oldest ? oldest : v;
                count++;
        }
        if (count <= SERVED_OF_CLIENT_MAX)
                oldest = served->count > SERVED_MAX ? first(&served->all) : NULL;
        if (!oldest)
                return;
        log_info(LOG,
                 oldest->query
                         ? "a query that sessions have not answered makes room for another client"
                         : "a client that did not take its answer makes room for another one");
        pending_drop(s, oldest);
}

void pending_bury(struct supervisor *s)
{
        while (!list_empty(&s->arrivals.dead)) {
                struct pending *v = first(&s->arrivals.dead);
                list_remove(&v->link);
                buf_fini(&v->hello);
                describing_end(v);
                if (v->state.data)
                        explicit_bzero(v->state.data, v->state.size);
                buf_fini(&v->state);
                mem_free(v);
        }
}

/* Answer with the reason of a refusal. The caller drops the pending connection. */
static void refuse(struct supervisor *s, struct pending *v, int status, const char *text)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = {
                .status = status,
                .time_ns = clock_now_ns(),
                .text = bytes_str(text),
        };
        audit_refused(s, v, status, text);
        if (hello_put_reply(&out, &m) < 0)
                return;
        struct iovec iov = { out.data, out.size };
        if (v->conn->ops->sendv(v->conn, &iov, 1) > 0)
                socket_end_sending(v->conn->fd);
}

void pending_refuse_waiting(struct supervisor *s, const struct gate_grant *grant, int status,
                            const char *text)
{
        list_each(v, &s->arrivals.waiting.all, struct pending, link)
        {
                if (grant && !grant_is_same(&v->grant, grant))
                        continue;
                refuse(s, v, status, text);
                pending_drop(s, v);
        }
}

void pending_drain(struct supervisor *s)
{
        if (s->end.draining)
                return;
        s->end.draining = true;
        log_warn(LOG, "spancld drains: it takes no new sessions, and ends with the last of %zu",
                 workers_count(s, WORKER_BUSY));
        notify_send("STATUS=draining");
        advertiser_withdraw(s);
        workers_announce_drain(s);
        pending_refuse_waiting(s, NULL, SP_E_GONE, draining_text);
}

/* ---- statistics queries --------------------------------------------------------------------- */

/* Send all of it; after a partial send the caller drops the connection. Any socket's buffer holds
 * these messages many times. */
static bool send_answer(struct pending *v, const struct buf *b)
{
        struct iovec iov = { b->data, b->size };
        return v->conn->ops->sendv(v->conn, &iov, 1) == (ssize_t)b->size;
}

/* Find the worker's slot for the query with this number; NULL: it has none. */
static uint64_t *query_slot(struct worker *w, uint64_t query)
{
        for (int i = 0; i < WORKER_QUERIES; i++)
                if (w->viewers.queries[i] == query)
                        return &w->viewers.queries[i];
        return NULL;
}

/* The answer to the query is complete; the caller drops the connection. */
static void end_query(struct pending *v)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        if (v->exports && !v->missed && !report_put_whole(&out))
                (void)send_answer(v, &out);
}

/* Ask the workers of all sessions for their counters. True: answers will come, unless the pending
 * connection's time is over. */
static bool query(struct supervisor *s, struct pending *v, uint64_t version)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        int r = 0;
        const struct wire_hello_reply m = {
                .version = version,
                .time_ns = clock_now_ns(),
                .local_path = bytes_str(v->from.local ? s->listeners.local_path : ""),
        };
        uint8_t number[8];
        sensors_ask(s);
        if (hello_put_reply(&out, &m) < 0 || report_put(s, &out) < 0 ||
            health_report(s, &out) < 0 || reserving_report(s, &out) < 0 ||
            accounts_report(s, &out) < 0)
                return false;
        list_each(w, &s->workers, struct worker, link)
        {
                if (!r && w->state == WORKER_BUSY)
                        r = report_put_origin(s, w, &out);
        }
        if (r < 0 || !send_answer(v, &out))
                return false;
        v->query = ++s->arrivals.queries;
        bytes_put_u64(number, v->query);
        list_each(w, &s->workers, struct worker, link)
        {
                uint64_t *slot = query_slot(w, 0);
                if (w->state != WORKER_BUSY)
                        continue;
                if (w->gone || !slot ||
                    control_send(w->control, CONTROL_STATS, bytes_of(number, 8), -1) < 0) {
                        v->missed = true;
                        continue;
                }
                *slot = v->query;
                v->answers++;
        }
        if (!v->answers)
                end_query(v);
        return v->answers > 0;
}

/* Find the connection that made the query; NULL: it is gone. */
static struct pending *find_query(struct supervisor *s, uint64_t query)
{
        list_each(v, &s->arrivals.served.all, struct pending, link)
        {
                if (v->query == query)
                        return v;
        }
        return NULL;
}

/* No more comes from this slot's worker for its query. */
static void query_answered(struct supervisor *s, uint64_t *slot, bool missed)
{
        struct pending *v = find_query(s, *slot);
        *slot = 0;
        if (!v)
                return;
        v->missed |= missed;
        if (--v->answers)
                return;
        end_query(v);
        pending_drop(s, v);
}

void pending_worker_ended(struct supervisor *s, struct worker *w)
{
        for (int i = 0; i < WORKER_QUERIES; i++)
                if (w->viewers.queries[i])
                        query_answered(s, &w->viewers.queries[i], false);
}

/* The worker has sent its last answer to this query. It answers in order, so it could not send those
 * to earlier ones. */
static void pass_last(struct supervisor *s, struct worker *w, uint64_t query)
{
        for (int i = 0; i < WORKER_QUERIES; i++)
                if (w->viewers.queries[i] && w->viewers.queries[i] <= query)
                        query_answered(s, &w->viewers.queries[i], w->viewers.queries[i] < query);
}

void pending_pass_on(struct supervisor *s, struct worker *w, const struct control *c)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        uint64_t query = c->size >= 8 ? bytes_get_u64(c->data) : 0;
        if (!query || !query_slot(w, query))
                return; /* it was not asked, or has already sent its last answer */
        if (c->size == 8) {
                pass_last(s, w, query);
                return;
        }
        struct pending *v = find_query(s, query);
        if (!v)
                return;
        const struct wire_session_stats m = {
                .process = (uint64_t)w->pid,
                .name = bytes_str(w->name),
                .links = bytes_of(c->data + 8, c->size - 8),
        };
        if (!report_is_of_session(m.links))
                v->missed = true;
        else if (hello_put_stats(&out, &m) < 0 || !send_answer(v, &out))
                pending_drop(s, v);
}

uint64_t pending_query(struct supervisor *s, int fd, uint64_t before)
{
        struct conn *conn;
        struct pending *v = before && find_query(s, before) ? NULL : mem_zalloc(sizeof(*v));
        if (!v) {
                (void)file_close(fd);
                return before;
        }
        if (conn_from_fd(fd, &conn) < 0) {
                mem_free(v);
                return 0;
        }
        v->source.kind = SOURCE_PENDING;
        v->conn = conn;
        v->tls_known = v->exports = true;
        v->from.local = true;
        serve(s, v);
        if (supervisor_watch(s, conn->fd, v) < 0 || !query(s, v, WIRE_VERSION)) {
                uint64_t number = v->query;
                pending_drop(s, v);
                return number;
        }
        return v->query;
}

/* ---- routing ------------------------------------------------------------------------------------ */

int pending_send(const struct pending *v, struct worker *w, enum control_kind kind,
                 struct bytes between)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        int r = buf_put(&out, v->hello.data, v->hello.size);
        if (!r)
                r = buf_put(&out, between.data, between.size);
        if (!r)
                r = buf_put(&out, v->state.data, v->state.size);
        if (!r)
                r = control_send(w->control, kind, bytes_of(out.data, out.size), v->conn->fd);
        if (out.data)
                explicit_bzero(out.data, out.size);
        w->gone |= r == SP_E_LINK;
        return r;
}

/* Hand the connection to the worker. False: the worker is gone. */
static bool hand_over(struct supervisor *s, struct pending *v, struct worker *w)
{
        auto_clean(buf_fini) struct buf self = { 0 };
        int r = buf_put(&self, s->gate.identity, KEYS_HEX);
        if (!r)
                r = buf_put(&self, s->listeners.local_path, sizeof(s->listeners.local_path));
        if (!r)
                r = pending_send(v, w, CONTROL_CONNECTION, bytes_of(self.data, self.size));
        if (r < 0)
                log_warn(LOG, "worker %d does not take connections: %s", (int)w->pid,
                         status_text(r));
        if (r != SP_E_LINK)
                supervisor_unwatch(s, v->conn->fd); /* else the event would outlive our close */
        return r != SP_E_LINK;
}

/* Tell the worker of a new session how many others there are. */
static void send_load(struct supervisor *s, struct worker *w)
{
        uint8_t count[8];
        bytes_put_u64(count, workers_count(s, WORKER_BUSY));
        if (control_send(w->control, CONTROL_LOAD, bytes_of(count, sizeof(count)), -1) < 0)
                log_debug(LOG, "worker %d does not learn the load", (int)w->pid);
}

/* Add the client that proved the code to the known clients. */
static void pair(struct supervisor *s, struct pending *v, const struct wire_hello *m)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const char *text;
        int r = gate_pair(&s->gate, v->conn, m, &text);
        if (r < 0) {
                refuse(s, v, r, text);
                return;
        }
        const struct wire_hello_reply answer = { .version = WIRE_VERSION,
                                                 .time_ns = clock_now_ns(),
                                                 .identity = bytes_str(s->gate.identity) };
        struct iovec iov;
        if (hello_put_reply(&out, &answer) < 0)
                return;
        iov = (struct iovec){ out.data, out.size };
        (void)!v->conn->ops->sendv(v->conn, &iov, 1);
}

/* Drain if the connection is the server's own user's. */
static void drain_for(struct supervisor *s, struct pending *v, uint64_t version)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = { .version = version, .time_ns = clock_now_ns() };
        if (!gate_is_owner(&v->from, v->conn, &v->grant)) {
                refuse(s, v, SP_E_AUTH,
                       "only the user who runs spancld may drain it: with spancl drain on its host, "
                       "or with a key that counts as its own");
                return;
        }
        pending_drain(s);
        if (hello_put_reply(&out, &m) < 0 || !send_answer(v, &out))
                log_info(LOG, "who has spancld drain does not get an answer");
}

/* Hand the connection to the worker whose session it may observe. */
static void observe(struct supervisor *s, struct pending *v, const struct wire_hello *m)
{
        const char *text;
        int r = observing_admit(s, v, m, &text);
        if (r < 0)
                refuse(s, v, r, text);
        else
                supervisor_unwatch(s, v->conn->fd); /* else the event would outlive our close */
}

/* ROUTED: the caller may drop the pending connection. ROUTED_KEPT: an event or an answer goes on with it. */
enum routed { ROUTED, ROUTED_WAIT, ROUTED_KEPT };

/* Describe the devices to a client that wants no session yet. */
static enum routed list_devices(struct supervisor *s, struct pending *v, struct description *d,
                                const struct wire_hello *m)
{
        log_info(LOG, "a client lists the devices (%.*s)", (int)m->name.size,
                 (const char *)m->name.data);
        int r = describing_begin(s, v, d);
        if (r)
                return ROUTED;
        if (!event_set_change(s->events.set, v->conn->room_fd, EVENT_OUT, v))
                return ROUTED;
        serve(s, v);
        return ROUTED_KEPT;
}

/* Decide on a complete hello. */
static enum routed route(struct supervisor *s, struct pending *v)
{
        struct wire_hello m;
        uint64_t version;
        const char *text;
        int r = hello_get(bytes_of(v->hello.data, v->hello.size), &m);
        if (r < 0) {
                refuse(s, v, r,
                       r == SP_E_LINK ? "the hello was altered on its way"
                                      : "the hello is not valid");
                return ROUTED;
        }
        r = hello_negotiate(&m, &version, &text);
        if (r < 0) {
                refuse(s, v, r, text);
                return ROUTED;
        }
        if (m.role == HELLO_ROLE_PAIR) {
                pair(s, v, &m);
                return ROUTED;
        }
        r = gate_admit(&s->gate, &v->from, v->conn, &m, &v->grant, &text);
        if (r < 0) {
                refuse(s, v, r, text);
                return ROUTED;
        }
        reserving_refresh(s);
        reserving_apply(s, &v->grant);
        if (*v->grant.was) {
                clients_rekeyed(s, &v->grant);
                accounts_rekeyed(s, &v->grant);
        }
        if (m.role == HELLO_ROLE_DRAIN) {
                drain_for(s, v, version);
                return ROUTED;
        }
        if (m.role == HELLO_ROLE_OBSERVE) {
                observe(s, v, &m);
                return ROUTED;
        }
        if (m.role == HELLO_ROLE_LOOK) {
                if (!query(s, v, version))
                        return ROUTED;
                serve(s, v);
                return ROUTED_KEPT;
        }
        v->lists = describing_is_wanted(&m);
        if (v->lists && !s->end.draining) {
                struct description *d = health_holds(s) ? NULL : describing_find(s, &v->grant);
                if (d)
                        return list_devices(s, v, d, &m);
                /* A worker describes them when it is ready. If it could not, the client gets a session. */
                if (health_holds(s) || !workers_find_free(s, &v->grant, WORKER_WARM))
                        return ROUTED_WAIT;
        }
        v->state.size = 0;
        if (conn_export(v->conn, &v->state) < 0) {
                refuse(s, v, SP_E_PROTO, "more was said before the hello was answered");
                return ROUTED;
        }
        struct worker *w = workers_find(s, m.session_hi, m.session_lo);
        if (w && hand_over(s, v, w))
                return ROUTED;
        if (m.role || m.lane || m.next_seq || m.generation) {
                const char *why = workers_why_ended(s, m.session_hi, m.session_lo);
                refuse(s, v, SP_E_GONE, why ? why : "this server has no such session (any more)");
                return ROUTED;
        }
        if (s->end.draining) {
                refuse(s, v, SP_E_GONE, draining_text);
                return ROUTED;
        }
        if (workers_count(s, WORKER_BUSY) >= config_option_number(s->options, CONFIG_sessions)) {
                refuse(s, v, SP_E_LIMIT,
                       "this server has no room for another session (--sessions)");
                return ROUTED;
        }
        text = accounts_refuse(s, &v->grant);
        if (text) {
                refuse(s, v, SP_E_LIMIT, text);
                return ROUTED;
        }
        if (health_holds(s))
                return ROUTED_WAIT;
        while ((w = workers_find_free(s, &v->grant, WORKER_WARM))) {
                send_load(s, w);
                r = accounts_begin(s, w, &v->grant);
                if (r == SP_E_LINK)
                        w->gone = true;
                else if (r < 0) {
                        refuse(s, v, r, "this server can't count the session; see its log");
                        return ROUTED;
                } else if (hand_over(s, v, w))
                        break;
                else
                        accounts_end(s, w, 0);
        }
        if (!w)
                return ROUTED_WAIT;
        w->state = WORKER_BUSY;
        w->grant = v->grant;
        s->counts.begun++;
        audit_begin(w, v);
        energy_begin(s, w);
        introduce_session(s, w);
        w->id[0] = m.session_hi;
        w->id[1] = m.session_lo;
        snprintf(w->name, sizeof(w->name), "%.*s", (int)m.name.size, (const char *)m.name.data);
        log_info(LOG, "worker %d takes a new session (%.*s)", (int)w->pid, (int)m.name.size,
                 (const char *)m.name.data);
        if (*w->grant.reserved)
                log_info(LOG, "worker %d: %s: its session does not get it", (int)w->pid,
                         reserving_reason(s, &w->grant));
        time_slices_share(s);
        workers_provide_at(s, clock_now_ns() + RESPAWN_MS * MS);
        return ROUTED;
}

void pending_serve_waiting(struct supervisor *s)
{
        list_each(v, &s->arrivals.waiting.all, struct pending, link)
        {
                if (route(s, v) == ROUTED)
                        pending_drop(s, v);
        }
}

static void start_waiting(struct supervisor *s, struct pending *v)
{
        if (s->arrivals.waiting.count == WAITING_MAX) {
                refuse(s, v, SP_E_LIMIT, "too many sessions begin at once on this server");
                pending_drop(s, v);
                return;
        }
        move(v, &s->arrivals.waiting, WAIT_MS);
        workers_provide_at(s, s->starts.crashes ? s->starts.next_ns : 0);
}

static void settle(struct supervisor *s, struct pending *v, enum routed how)
{
        if (how == ROUTED)
                pending_drop(s, v);
        else if (how == ROUTED_WAIT)
                start_waiting(s, v);
}

/* Read no more than the hello. 1: it is complete; 0: more has to come; negative: it is malformed. */
static int read_hello(struct pending *v)
{
        for (;;) {
                int whole = hello_size(bytes_of(v->hello.data, v->hello.size));
                if (whole < 0)
                        return whole;
                if (v->hello.size == (size_t)whole)
                        return 1;
                size_t left = (size_t)whole - v->hello.size;
                int r = buf_reserve(&v->hello, left);
                if (r < 0)
                        return r;
                struct iovec iov = { v->hello.data + v->hello.size, left };
                ssize_t n = v->conn->ops->recvv(v->conn, &iov, 1);
                if (n <= 0)
                        return n == SP_E_AGAIN ? 0 : SP_E_LINK;
                v->hello.size += (size_t)n;
        }
}

/* Drop a connection that was closed without a byte. Programs that see whether a port is open, as `spancl doctor` does,
 * leave such. */
static void drop_silent(struct supervisor *s, struct pending *v, int status)
{
        report_refused(s, status);
        log_info(LOG, "a connection was closed before its hello");
        pending_drop(s, v);
}

void pending_event(struct supervisor *s, struct pending *v)
{
        if (!v->conn)
                return; /* an earlier event has dropped it */
        if (v->telling.description) {
                if (describing_go_on(v))
                        pending_drop(s, v);
                return;
        }
        if (v->in != &s->arrivals.silent) { /* the peer closed it, or wrote before the answer */
                pending_drop(s, v);
                return;
        }
        int r = v->tls_known ? 0 : gate_listen(&s->gate, &v->conn);
        if (r == SP_E_AGAIN)
                return;
        if (!v->conn) {
                drop_refused(s, v, r, "no memory for its encryption");
                return;
        }
        if (r < 0) {
                drop_silent(s, v, r);
                return;
        }
        v->tls_known = true;
        r = read_hello(v);
        if (!r)
                return;
        if (r == SP_E_LINK && !v->hello.size && !(v->conn->ops->caps & TRANSPORT_ENCRYPTED)) {
                drop_silent(s, v, r);
                return;
        }
        if (r == SP_E_VERSION) {
                refuse(s, v, r, HELLO_BIG_ENDIAN);
                pending_drop(s, v);
        } else if (r < 0)
                drop_refused(s, v, r,
                             r == SP_E_PROTO  ? "it does not speak SpanCL"
                             : r == SP_E_LINK ? "it ended before its hello, or its handshake failed"
                                              : status_text(r));
        else
                settle(s, v, route(s, v));
}

/* ---- accepting ---------------------------------------------------------------------------------- */

void pending_pause(struct supervisor *s)
{
        for (size_t i = 0; i < s->listeners.count; i++)
                supervisor_unwatch(s, s->listeners.all[i].listener->fd);
        s->arrivals.accept_ns = clock_now_ns() + ACCEPT_PAUSE_MS * MS;
}

int pending_resume(struct supervisor *s)
{
        s->arrivals.accept_ns = UINT64_MAX;
        for (size_t i = 0; i < s->listeners.count; i++) {
                const struct listening *l = &s->listeners.all[i];
                s->events.listeners[i] =
                        (struct listener_source){ .source = { SOURCE_LISTENER }, .where = l };
                if (supervisor_watch(s, l->listener->fd, &s->events.listeners[i]) < 0)
                        return SP_E_LIMIT;
        }
        return 0;
}

/* Find the oldest pending connection of the same host if that host has too many; else NULL. */
static struct pending *oldest_of_crowd(struct supervisor *s, const struct pending *newest)
{
        struct pending *oldest = NULL;
        size_t count = 0;
        list_each(v, &s->arrivals.silent.all, struct pending, link)
        {
                if (memcmp(v->from.net, newest->from.net, sizeof(v->from.net)) != 0)
                        continue;
                oldest = oldest ? oldest : v;
                count++;
        }
        return count > SILENT_OF_HOST_MAX ? oldest : NULL;
}

static int welcome(struct supervisor *s, struct conn *conn, bool tls_only)
{
        struct pending *v = mem_zalloc(sizeof(*v));
        if (!v) {
                conn_close(conn);
                return SP_E_NOMEM;
        }
        v->source.kind = SOURCE_PENDING;
        v->conn = conn;
        v->from = gate_origin_of(&s->gate, conn, tls_only);
        if (!v->from.local && s->arrivals.rate_per_s &&
            !rate_allows(&s->arrivals.rate, v->from.net, s->arrivals.rate_per_s, clock_now_ns())) {
                audit_refused(s, v, SP_E_BUSY,
                              "its host connects more often than --connection-rate allows");
                conn_close(conn);
                mem_free(v);
                return 0;
        }
        if (supervisor_watch(s, conn->fd, v) < 0) {
                conn_close(conn);
                mem_free(v);
                return SP_E_LIMIT;
        }
        move(v, &s->arrivals.silent, HELLO_MS);
        struct pending *crowd = v->from.local ? NULL : oldest_of_crowd(s, v);
        if (crowd)
                drop_refused(s, crowd, SP_E_BUSY,
                             "its host has too many connections without a hello");
        if (s->arrivals.silent.count > SILENT_MAX)
                drop_refused(s, first(&s->arrivals.silent.all), SP_E_BUSY,
                             "there are too many connections without a hello");
        return 0;
}

void pending_accept(struct supervisor *s, const struct listening *l)
{
        for (int i = 0; i < ACCEPT_BATCH; i++) {
                struct conn *conn;
                int r = spare_fill(&s->spare) ? l->listener->ops->accept(l->listener, &conn)
                                              : SP_E_LIMIT;
                if (!r)
                        r = welcome(s, conn, l->tls_only);
                switch (r) {
                case 0:
                case SP_E_LINK:
                        continue;
                case SP_E_AGAIN:
                        return;
                default:
                        break;
                }
                log_warn(LOG, "no more connections can be taken: %s", status_text(r));
                struct pending *oldest = first(&s->arrivals.silent.all);
                if (oldest) {
                        pending_drop(s, oldest);
                        continue;
                }
                pending_pause(s);
                return;
        }
}

/* ---- time --------------------------------------------------------------------------------------- */

uint64_t pending_deadline(const struct supervisor *s)
{
        const struct pending_list *lists[] = { &s->arrivals.silent, &s->arrivals.waiting,
                                               &s->arrivals.served };
        uint64_t d = UINT64_MAX;
        for (size_t i = 0; i < array_size(lists); i++) {
                if (list_empty(&lists[i]->all))
                        continue;
                uint64_t v = list_entry(lists[i]->all.next, struct pending, link)->deadline_ns;
                d = v < d ? v : d;
        }
        return d;
}

void pending_expire(struct supervisor *s, uint64_t now_ns)
{
        struct pending *v;
        while ((v = first(&s->arrivals.silent.all)) && v->deadline_ns <= now_ns) {
                log_info(LOG, "a connection without a hello was dropped");
                report_refused(s, SP_E_TIMEOUT);
                pending_drop(s, v);
        }
        while ((v = first(&s->arrivals.served.all)) && v->deadline_ns <= now_ns) {
                log_info(LOG, v->query ? "a session did not send its counters in time"
                                       : "a client did not take the list of devices in time");
                pending_drop(s, v);
        }
        while ((v = first(&s->arrivals.waiting.all)) && v->deadline_ns <= now_ns) {
                refuse(s, v, SP_E_TIMEOUT, "this server's OpenCL drivers take too long to load");
                pending_drop(s, v);
        }
}

void pending_drop_all(struct supervisor *s)
{
        for (struct pending *v;
             (v = first(&s->arrivals.silent.all)) || (v = first(&s->arrivals.served.all));)
                pending_drop(s, v);
}
