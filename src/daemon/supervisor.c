#include "daemon/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/gate.h"
#include "daemon/listen.h"
#include "daemon/near.h"
#include "daemon/notify.h"
#include "daemon/rate.h"
#include "daemon/scratch.h"
#include "daemon/spawn.h"
#include "loop/clock.h"
#include "session/hello.h"

#define LOG "supervisor"
#define MS  1000000ull /* ns */

enum {
        VISITORS_MAX = 1024,       /* connections whose hello has not come */
        VISITORS_OF_HOST_MAX = 64, /* the same from one other host */
        WAITING_MAX = 256,         /* new sessions that wait for a worker */
        HELLO_MS = 10000,          /* how long a hello may take */
        WAIT_MS = 60000,           /* how long a worker may take */
        WARMING_MAX = 4,           /* workers that open their backends at a time */
        RESPAWN_MS = 300, /* before the next warm worker is made, out of the new session's way */
        CRASHES_TOLD = 3, /* failed starts after which clients are told */
        BACKOFF_MAX_MS = 10000,
        ACCEPT_PAUSE_MS = 100, /* when out of descriptors */
        ACCEPT_BATCH = 64,
        HEAR_BATCH = 64, /* packets of one worker before it is somebody else's turn */
        SHUTDOWN_MS = 5000,
        EVENTS = 64,
};

enum source_kind { SOURCE_LISTENER, SOURCE_SIGNALS, SOURCE_VISITOR, SOURCE_WORKER, SOURCE_ZYGOTE };

/* What an epoll event names: the first member of each. */
struct source {
        enum source_kind kind;
};

struct listener_source {
        struct source source;
        struct listener *listener;
};

/* A connection that no worker has yet. */
struct visitor {
        struct source source;
        struct list link;  /* supervisor's visitors, waiting or dead */
        struct conn *conn; /* NULL: dead */
        struct gate_origin from;
        bool heard; /* its first byte: whether it is TLS is known */
        bool waits;
        uint64_t deadline_ns;
        struct buf hello;
        uint64_t look;    /* it looks at this server, under this number; 0: it does not */
        unsigned answers; /* that it still gets */
        struct buf state; /* of the connection, for the worker */
        struct gate_grant grant;
};

enum worker_state { WORKER_WARMING, WORKER_WARM, WORKER_BUSY };

struct worker {
        struct source source;
        struct list link;
        enum worker_state state;
        pid_t pid; /* 0: it has not told yet */
        int control;
        uint64_t id[2]; /* its session */
        char name[64];  /* the client's program */
        char scratch[SCRATCH_PATH_MAX];
        int scratch_lock;
        struct gate_grant grant; /* for sessions that have this */
        bool told;               /* it said why it can't serve */
        bool gone;               /* it hears nothing any more; SIGCHLD will follow */
};

struct supervisor {
        const struct config_options *options;
        struct spawner spawner;
        struct gate gate;
        struct rate rate;
        struct listeners listeners;
        struct listener_source *listener_sources;
        struct source signal_source, zygote_source;
        int epoll, signals;
        struct list visitors; /* in order of arrival */
        size_t visitor_count;
        struct list waiting; /* whose hello asks for a new session */
        size_t waiting_count;
        struct list workers;
        struct list dead;    /* visitors to free once the events at hand are done */
        uint64_t spawn_ns;   /* when to make a warm worker; UINT64_MAX: when one is asked for */
        uint64_t accept_ns;  /* when to accept again; UINT64_MAX: accepting */
        unsigned crashes;    /* failed starts in a row */
        unsigned rate_per_s; /* 0: any */
        uint64_t looks;      /* how often somebody looked */
        bool stopping;
};

/* ---- visitors ------------------------------------------------------------------------------- */

static int watch(struct supervisor *s, int fd, void *source)
{
        struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = source };
        return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void unwatch(struct supervisor *s, int fd)
{
        (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Forget the visitor, whose connection is closed; its memory stays until the events at hand are done. */
static void visitor_gone(struct supervisor *s, struct visitor *v)
{
        list_remove(&v->link);
        --*(v->waits ? &s->waiting_count : &s->visitor_count);
        list_append(&s->dead, &v->link);
}

static void visitor_leave(struct supervisor *s, struct visitor *v)
{
        unwatch(s, v->conn->room_fd); /* its socket */
        v->conn = conn_close(v->conn);
        visitor_gone(s, v);
}

static struct visitor *first(struct list *l)
{
        return list_empty(l) ? NULL : list_entry(l->next, struct visitor, link);
}

static void bury(struct supervisor *s)
{
        while (!list_empty(&s->dead)) {
                struct visitor *v = first(&s->dead);
                list_remove(&v->link);
                buf_fini(&v->hello);
                if (v->state.data)
                        explicit_bzero(v->state.data, v->state.size);
                buf_fini(&v->state);
                mem_free(v);
        }
}

/* Answer why not. The caller lets the visitor leave. */
static void refuse(struct visitor *v, int status, const char *text)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = {
                .status = status,
                .time_ns = clock_now_ns(),
                .text = bytes_str(text),
        };
        log_info(LOG, "a connection was refused: %s", text);
        if (hello_put_reply(&out, &m) < 0)
                return;
        struct iovec iov = { out.data, out.size };
        if (v->conn->ops->sendv(v->conn, &iov, 1) > 0)
                (void)shutdown(v->conn->fd, SHUT_WR);
}

static const struct gate_grant usual; /* what one worker is always warm for */

static bool is_same(const struct gate_grant *a, const struct gate_grant *b)
{
        return !strcmp(a->devices, b->devices) && !strcmp(a->owner, b->owner);
}

/* Those who wait for a worker like this; NULL: all. */
static void refuse_waiting(struct supervisor *s, const struct gate_grant *grant, int status,
                           const char *text)
{
        list_each(v, &s->waiting, struct visitor, link)
        {
                if (grant && !is_same(&v->grant, grant))
                        continue;
                refuse(v, status, text);
                visitor_leave(s, v);
        }
}

/* ---- workers -------------------------------------------------------------------------------- */

static size_t count_workers(const struct supervisor *s, enum worker_state state)
{
        size_t n = 0;
        list_each(w, &s->workers, struct worker, link)
        {
                n += w->state == state && !w->gone;
        }
        return n;
}

static struct worker *find_worker(struct supervisor *s, uint64_t hi, uint64_t lo)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY && !w->gone && w->id[0] == hi && w->id[1] == lo)
                        return w;
        }
        return NULL;
}

/* One that has no session: warm or, if told, warming. */
static struct worker *find_free(struct supervisor *s, const struct gate_grant *grant,
                                enum worker_state state)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == state && !w->gone && is_same(&w->grant, grant))
                        return w;
        }
        return NULL;
}

static void worker_free(struct worker *w)
{
        list_remove(&w->link);
        if (w->control >= 0)
                close(w->control);
        scratch_remove(w->scratch);
        if (w->scratch_lock >= 0)
                close(w->scratch_lock);
        mem_free(w);
}

/* One whose number is not known sees that nobody waits for it. */
static void worker_kill(const struct worker *w)
{
        if (w->pid)
                kill(w->pid, SIGKILL);
        else
                (void)shutdown(w->control, SHUT_RDWR);
}

/* Nothing that a worker could hand us is wanted, and closing it may take as long as its socket lingers. Kernels before
 * 6.16 let it; then each is closed where it comes in (control.c). */
static void refuse_descriptors(int socket)
{
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
        static const int none = 0;
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
}

static int worker_start(struct supervisor *s, const struct gate_grant *grant)
{
        int pair[2];
        struct worker *w = mem_zalloc(sizeof(*w));
        if (!w)
                return SP_E_NOMEM;
        list_init(&w->link);
        w->source.kind = SOURCE_WORKER;
        w->control = w->scratch_lock = -1;
        w->grant = *grant;
        int r = scratch_make(w->scratch, &w->scratch_lock);
        if (!r && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                r = SP_E_LIMIT;
        if (r < 0) {
                worker_free(w);
                return r;
        }
        w->control = pair[0];
        refuse_descriptors(w->control);
        r = spawn_worker(&s->spawner, w->scratch, grant, pair[1], &w->pid);
        close(pair[1]);
        if (!r && watch(s, w->control, w) < 0) {
                worker_kill(w);
                r = SP_E_LIMIT;
        }
        if (r < 0) {
                worker_free(w);
                return r;
        }
        list_append(&s->workers, &w->link);
        if (w->pid)
                log_debug(LOG, "worker %d started", (int)w->pid);
        return 0;
}

/* A start failed: try again later, more and more rarely. */
static void back_off(struct supervisor *s, const char *why)
{
        uint64_t ms = 100ull << (s->crashes < 7 ? s->crashes : 7);
        s->crashes++;
        s->spawn_ns = clock_now_ns() + (ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS) * MS;
        if (s->crashes >= CRASHES_TOLD)
                refuse_waiting(s, NULL, SP_E_NODEV, why);
}

/* Start a worker. False: it failed, and is tried again later. */
static bool provide_one(struct supervisor *s, const struct gate_grant *grant)
{
        int r = worker_start(s, grant);
        if (!r)
                return true;
        log_error(LOG, "a worker can't be started: %s", status_text(r));
        back_off(s, "this server can't start a process for the session; see its log");
        return false;
}

/* Make as many workers as are needed now. */
static void provide(struct supervisor *s)
{
        if (s->stopping || s->spawner.loading || clock_now_ns() < s->spawn_ns)
                return;
        size_t warming = count_workers(s, WORKER_WARMING), waiting = 0;
        s->spawn_ns = UINT64_MAX;
        list_each(v, &s->waiting, struct visitor, link)
        {
                if (is_same(&v->grant, &usual))
                        waiting++;
                else if (warming < WARMING_MAX && !find_free(s, &v->grant, WORKER_WARMING) &&
                         !provide_one(s, &v->grant))
                        return;
        }
        size_t wanted = waiting ? waiting : 1;
        if (!waiting && find_free(s, &usual, WORKER_WARM))
                wanted = 0;
        if (wanted > WARMING_MAX)
                wanted = WARMING_MAX;
        for (warming = count_workers(s, WORKER_WARMING); warming < wanted; warming++)
                if (!provide_one(s, &usual))
                        return;
}

/* Ask for a warm worker at that time, or at once when somebody waits. */
static void provide_at(struct supervisor *s, uint64_t ns)
{
        if (ns < s->spawn_ns)
                s->spawn_ns = ns;
        if (!s->crashes && s->waiting_count)
                s->spawn_ns = 0;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* Send all of it or nothing more: what is told here fits into any socket's buffer, many times. */
static bool tell(struct visitor *v, const struct buf *b)
{
        struct iovec iov = { b->data, b->size };
        return v->conn->ops->sendv(v->conn, &iov, 1) == (ssize_t)b->size;
}

/* Ask all sessions for their counters. True: the answers will come, until the visitor's time is over. */
static bool look(struct supervisor *s, struct visitor *v, uint64_t version)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = { .version = version, .time_ns = clock_now_ns() };
        uint8_t number[8];
        if (hello_put_reply(&out, &m) < 0 || !tell(v, &out))
                return false;
        v->look = ++s->looks;
        bytes_put_u64(number, v->look);
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY && !w->gone &&
                    control_send(w->control, CONTROL_STATS, bytes_of(number, 8), -1) == 0)
                        v->answers++;
        }
        return v->answers > 0;
}

/* A worker's counters, or their end, for whoever looks. */
static void pass_on(struct supervisor *s, const struct worker *w, const struct control *c)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        struct visitor *v = NULL;
        list_each(one, &s->visitors, struct visitor, link)
        {
                if (c->size >= 8 && one->look == bytes_get_u64(c->data))
                        v = one;
        }
        if (!v || !v->look)
                return;
        const struct wire_session_stats m = {
                .process = (uint64_t)w->pid,
                .name = bytes_str(w->name),
                .links = bytes_of(c->data + 8, c->size - 8),
        };
        if (c->size == 8 ? !--v->answers : hello_put_stats(&out, &m) < 0 || !tell(v, &out))
                visitor_leave(s, v);
}

/* ---- routing -------------------------------------------------------------------------------- */

/* Give the connection to the worker. False: the worker is gone. */
static bool hand_over(struct supervisor *s, struct visitor *v, struct worker *w)
{
        auto_clean(buf_fini) struct buf both = { 0 };
        int r = buf_put(&both, v->hello.data, v->hello.size);
        if (!r)
                r = buf_put(&both, s->gate.identity, KEYS_HEX);
        if (!r)
                r = buf_put(&both, s->listeners.near, sizeof(s->listeners.near));
        if (!r)
                r = buf_put(&both, v->state.data, v->state.size);
        if (!r)
                r = control_send(w->control, CONTROL_CONNECTION, bytes_of(both.data, both.size),
                                 v->conn->fd);
        if (both.data)
                explicit_bzero(both.data, both.size);
        if (r < 0)
                log_warn(LOG, "worker %d does not take connections: %s", (int)w->pid,
                         status_text(r));
        w->gone |= r == SP_E_LINK;
        if (r != SP_E_LINK)
                unwatch(s, v->conn->fd); /* else the event would outlive our close */
        return r != SP_E_LINK;
}

/* Make known who showed the code. */
static void pair(struct supervisor *s, struct visitor *v, const struct wire_hello *m)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const char *text;
        int r = gate_pair(&s->gate, v->conn, m, &text);
        if (r < 0) {
                refuse(v, r, text);
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

enum routed { ROUTED, ROUTED_WAIT };

/* Decide on a whole hello. ROUTED: the visitor may leave. */
static enum routed route(struct supervisor *s, struct visitor *v)
{
        struct wire_hello m;
        uint64_t version;
        const char *text;
        if (hello_get(bytes_of(v->hello.data, v->hello.size), &m) < 0) {
                refuse(v, SP_E_PROTO, "the hello is not valid");
                return ROUTED;
        }
        int r = hello_negotiate(&m, &version, &text);
        if (r < 0) {
                refuse(v, r, text);
                return ROUTED;
        }
        if (m.role == HELLO_ROLE_PAIR) {
                pair(s, v, &m);
                return ROUTED;
        }
        r = gate_admit(&s->gate, &v->from, v->conn, &m, &v->grant, &text);
        if (r < 0) {
                refuse(v, r, text);
                return ROUTED;
        }
        if (m.role == HELLO_ROLE_LOOK)
                return look(s, v, version) ? ROUTED_WAIT : ROUTED;
        v->state.size = 0;
        if (conn_export(v->conn, &v->state) < 0) {
                refuse(v, SP_E_PROTO, "more was said before the hello was answered");
                return ROUTED;
        }
        struct worker *w = find_worker(s, m.session_hi, m.session_lo);
        if (w && hand_over(s, v, w))
                return ROUTED;
        if (m.role || m.lane || m.next_seq || m.generation) {
                refuse(v, SP_E_GONE, "this server has no such session (any more)");
                return ROUTED;
        }
        if (count_workers(s, WORKER_BUSY) >= config_option_number(s->options, CONFIG_sessions)) {
                refuse(v, SP_E_LIMIT, "this server has no room for another session (--sessions)");
                return ROUTED;
        }
        do
                w = find_free(s, &v->grant, WORKER_WARM);
        while (w && !hand_over(s, v, w));
        if (!w)
                return ROUTED_WAIT;
        w->state = WORKER_BUSY;
        w->id[0] = m.session_hi;
        w->id[1] = m.session_lo;
        snprintf(w->name, sizeof(w->name), "%.*s", (int)m.name.size, (const char *)m.name.data);
        log_info(LOG, "worker %d takes a new session (%.*s)", (int)w->pid, (int)m.name.size,
                 (const char *)m.name.data);
        provide_at(s, clock_now_ns() + RESPAWN_MS * MS);
        return ROUTED;
}

/* A worker has become ready: those who waited go on. */
static void serve_waiting(struct supervisor *s)
{
        list_each(v, &s->waiting, struct visitor, link)
        {
                if (route(s, v) == ROUTED)
                        visitor_leave(s, v);
        }
}

static void start_waiting(struct supervisor *s, struct visitor *v)
{
        if (s->waiting_count == WAITING_MAX) {
                refuse(v, SP_E_LIMIT, "too many sessions begin at once on this server");
                visitor_leave(s, v);
                return;
        }
        list_remove(&v->link);
        s->visitor_count--;
        list_append(&s->waiting, &v->link);
        s->waiting_count++;
        v->waits = true;
        v->deadline_ns = clock_now_ns() + WAIT_MS * MS;
        provide_at(s, s->crashes ? s->spawn_ns : 0);
}

/* Read no more than the hello. 1: it is whole, 0: more has to come, negative: not one of ours. */
static int read_hello(struct visitor *v)
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

static void on_visitor(struct supervisor *s, struct visitor *v)
{
        if (!v->conn)
                return; /* it left while earlier events were handled */
        if (v->look) {  /* it has seen enough */
                visitor_leave(s, v);
                return;
        }
        if (v->waits) { /* it is gone, or says more before it was answered */
                visitor_leave(s, v);
                return;
        }
        int r = v->heard ? 0 : gate_listen(&s->gate, &v->conn);
        if (r == SP_E_AGAIN)
                return;
        if (!v->conn) {
                visitor_gone(s, v);
                return;
        }
        v->heard = true;
        r = r < 0 ? r : read_hello(v);
        if (!r)
                return;
        if (r < 0)
                log_info(LOG, "a connection was dropped: %s",
                         r == SP_E_PROTO ? "it does not speak SpanCL" : status_text(r));
        if (r < 0 || route(s, v) == ROUTED)
                visitor_leave(s, v);
        else if (!v->look)
                start_waiting(s, v);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void pause_accepting(struct supervisor *s)
{
        for (size_t i = 0; i < s->listeners.count; i++)
                unwatch(s, s->listeners.all[i]->fd);
        s->accept_ns = clock_now_ns() + ACCEPT_PAUSE_MS * MS;
}

static int start_accepting(struct supervisor *s)
{
        s->accept_ns = UINT64_MAX;
        for (size_t i = 0; i < s->listeners.count; i++) {
                s->listener_sources[i] = (struct listener_source){
                        .source = { SOURCE_LISTENER },
                        .listener = s->listeners.all[i],
                };
                if (watch(s, s->listeners.all[i]->fd, &s->listener_sources[i]) < 0)
                        return SP_E_LIMIT;
        }
        return 0;
}

/* The oldest visitor of the same host, if these are too many; else NULL. */
static struct visitor *oldest_of_crowd(struct supervisor *s, const struct visitor *newest)
{
        struct visitor *oldest = NULL;
        size_t count = 0;
        list_each(v, &s->visitors, struct visitor, link)
        {
                if (memcmp(v->from.net, newest->from.net, sizeof(v->from.net)) != 0)
                        continue;
                oldest = oldest ? oldest : v;
                count++;
        }
        return count > VISITORS_OF_HOST_MAX ? oldest : NULL;
}

static int welcome(struct supervisor *s, struct conn *conn)
{
        struct visitor *v = mem_zalloc(sizeof(*v));
        if (!v) {
                conn_close(conn);
                return SP_E_NOMEM;
        }
        v->source.kind = SOURCE_VISITOR;
        v->conn = conn;
        v->from = gate_origin_of(&s->gate, conn);
        if (!v->from.local && s->rate_per_s &&
            !rate_allows(&s->rate, v->from.net, s->rate_per_s, clock_now_ns())) {
                log_info(LOG, "a host connects more often than --connection-rate allows");
                conn_close(conn);
                mem_free(v);
                return 0;
        }
        v->deadline_ns = clock_now_ns() + HELLO_MS * MS;
        if (watch(s, conn->fd, v) < 0) {
                conn_close(conn);
                mem_free(v);
                return SP_E_LIMIT;
        }
        list_append(&s->visitors, &v->link);
        s->visitor_count++;
        struct visitor *crowd = v->from.local ? NULL : oldest_of_crowd(s, v);
        if (crowd) {
                log_info(LOG,
                         "too many connections of one host without a hello: the oldest is dropped");
                visitor_leave(s, crowd);
        }
        if (s->visitor_count > VISITORS_MAX) {
                log_info(LOG, "too many connections without a hello: the oldest is dropped");
                visitor_leave(s, first(&s->visitors));
        }
        return 0;
}

static void on_listener(struct supervisor *s, struct listener *l)
{
        for (int i = 0; i < ACCEPT_BATCH; i++) {
                struct conn *conn;
                int r = l->ops->accept(l, &conn);
                if (!r)
                        r = welcome(s, conn);
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
                struct visitor *oldest = first(&s->visitors);
                if (oldest) {
                        visitor_leave(s, oldest);
                        continue;
                }
                pause_accepting(s);
                return;
        }
}

/* ---- the ends of workers -------------------------------------------------------------------- */

static void worker_ended(struct supervisor *s, struct worker *w, int status)
{
        bool crashed = !WIFEXITED(status) || WEXITSTATUS(status);
        char how[64];
        if (WIFSIGNALED(status))
                snprintf(how, sizeof(how), "by signal %d", WTERMSIG(status));
        else
                snprintf(how, sizeof(how), "with status %d", WEXITSTATUS(status));
        if (s->stopping || w->told || (!crashed && w->state == WORKER_BUSY)) {
                log_debug(LOG, "worker %d ended %s", (int)w->pid, how);
        } else if (w->state == WORKER_BUSY) {
                log_error(LOG, "worker %d ended %s; its session is lost", (int)w->pid, how);
        } else {
                log_error(LOG, "worker %d ended %s before it had a session", (int)w->pid, how);
                back_off(s, "an OpenCL driver of this server fails while it is loaded; see "
                            "spancld's log");
        }
        worker_free(w);
}

/* What a worker says. Its death is SIGCHLD's business. */
static void hear(struct supervisor *s, struct worker *w)
{
        static struct control c;
        int r = SP_E_AGAIN;
        for (int i = 0; i < HEAR_BATCH && !(r = control_receive(w->control, &c)); i++) {
                if (c.fd >= 0)
                        close(c.fd);
                if (c.kind == CONTROL_STATS)
                        pass_on(s, w, &c);
                if (c.kind == CONTROL_NEAR)
                        near_answer(w->control, &c);
                if (c.kind == CONTROL_PID && !w->pid) {
                        w->pid = (pid_t)strtol((const char *)c.data, NULL, 10);
                        log_debug(LOG, "worker %d was forked", (int)w->pid);
                }
                if (w->state != WORKER_WARMING)
                        continue;
                if (c.kind == CONTROL_READY) {
                        log_info(LOG, "worker %d is ready, %s device(s)", (int)w->pid,
                                 (const char *)c.data);
                        w->state = WORKER_WARM;
                        s->crashes = 0;
                        serve_waiting(s);
                } else if (c.kind == CONTROL_FAILED) {
                        log_warn(LOG, "%s", (const char *)c.data);
                        w->told = w->gone = true;
                        s->crashes = 0;
                        refuse_waiting(s, &w->grant, SP_E_NODEV, (const char *)c.data);
                }
        }
        if (r != SP_E_LINK)
                return;
        w->gone = true;
        unwatch(s, w->control);
}

/* Workers that ended before they had told their numbers. */
static void forget_unborn(struct supervisor *s)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->gone && !w->pid)
                        worker_ended(s, w, W_EXITCODE(1, 0));
        }
}

static void reap(struct supervisor *s)
{
        int status;
        pid_t pid;
        list_each(w, &s->workers, struct worker, link)
        {
                if (!w->pid)
                        hear(s, w); /* its number: it may be among those */
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid == s->spawner.zygote_pid)
                        s->spawner.zygote_pid = 0;
                list_each(w, &s->workers, struct worker, link)
                {
                        if (w->pid == pid)
                                worker_ended(s, w, status);
                }
        }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void on_signal(struct supervisor *s)
{
        struct signalfd_siginfo info;
        while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGCHLD)
                        reap(s);
                else
                        s->stopping = true;
        }
}

static uint64_t next_deadline(const struct supervisor *s)
{
        uint64_t d = s->accept_ns;
        if (s->spawn_ns < d)
                d = s->spawn_ns;
        if (!list_empty(&s->visitors)) {
                uint64_t v = list_entry(s->visitors.next, struct visitor, link)->deadline_ns;
                d = v < d ? v : d;
        }
        if (!list_empty(&s->waiting)) {
                uint64_t v = list_entry(s->waiting.next, struct visitor, link)->deadline_ns;
                d = v < d ? v : d;
        }
        return d;
}

static void expire(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        struct visitor *v;
        while ((v = first(&s->visitors)) && v->deadline_ns <= now) {
                log_info(LOG, v->look ? "a session did not tell its counters in time"
                                      : "a connection without a hello was dropped");
                visitor_leave(s, v);
        }
        while ((v = first(&s->waiting)) && v->deadline_ns <= now) {
                refuse(v, SP_E_TIMEOUT, "this server's OpenCL drivers take too long to load");
                visitor_leave(s, v);
        }
        if (s->accept_ns <= now && start_accepting(s) < 0)
                pause_accepting(s);
}

static void run_events(struct supervisor *s, int timeout_ms)
{
        struct epoll_event events[EVENTS];
        int n = epoll_wait(s->epoll, events, EVENTS, timeout_ms);
        bool signalled = false;
        for (int i = 0; i < n; i++) {
                struct source *source = events[i].data.ptr;
                switch (source->kind) {
                case SOURCE_LISTENER:
                        on_listener(s,
                                    container_of(source, struct listener_source, source)->listener);
                        break;
                case SOURCE_VISITOR:
                        on_visitor(s, container_of(source, struct visitor, source));
                        break;
                case SOURCE_WORKER:
                        hear(s, container_of(source, struct worker, source));
                        break;
                case SOURCE_ZYGOTE:
                        if (s->spawner.zygote >= 0)
                                spawner_hear(&s->spawner);
                        break;
                case SOURCE_SIGNALS:
                        signalled = true;
                        break;
                }
        }
        bury(s);
        if (signalled) /* last: it frees workers, which events above may name */
                on_signal(s);
        forget_unborn(s);
}

static void stop_workers(struct supervisor *s)
{
        static const char text[] = "the server is being shut down";
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_WARMING ||
                    control_send(w->control, CONTROL_STOP, bytes_str(text), -1) < 0)
                        worker_kill(w);
        }
        uint64_t deadline = clock_now_ns() + SHUTDOWN_MS * MS;
        while (!list_empty(&s->workers) && clock_now_ns() < deadline)
                run_events(s, clock_poll_ms(deadline));
        list_each(w, &s->workers, struct worker, link)
        {
                log_warn(LOG, "worker %d did not end in time", (int)w->pid);
                worker_kill(w);
                if (w->pid)
                        waitpid(w->pid, NULL, 0);
                worker_free(w);
        }
}

static int tell_ready(struct supervisor *s)
{
        if (s->options->values[CONFIG_ready_fd]) {
                int fd = (int)config_option_number(s->options, CONFIG_ready_fd);
                int n = dprintf(fd, "ready %u\n", s->listeners.port);
                close(fd);
                if (n < 0) {
                        log_error(LOG, "--ready-fd %d: it can't be written to", fd);
                        return SP_E_INVAL;
                }
        }
        notify_send("READY=1");
        return 0;
}

/* Descriptors for many connections: as many as this user may have. */
static void raise_limits(void)
{
        struct rlimit r;
        if (getrlimit(RLIMIT_NOFILE, &r) < 0)
                return;
        rlim_t wanted = 8192;
        if (r.rlim_cur >= wanted || r.rlim_cur == RLIM_INFINITY)
                return;
        r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > wanted ? wanted : r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
}

static int prepare(struct supervisor *s)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGCHLD);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        raise_limits();
        scratch_sweep();
        if (s->options->values[CONFIG_ready_fd]) {
                int fd = (int)config_option_number(s->options, CONFIG_ready_fd);
                if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
                        log_error(LOG, "--ready-fd %d: no such descriptor", fd);
                        return SP_E_INVAL;
                }
        }
        s->epoll = epoll_create1(EPOLL_CLOEXEC);
        s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        s->signal_source.kind = SOURCE_SIGNALS;
        if (s->epoll < 0 || s->signals < 0 || watch(s, s->signals, &s->signal_source) < 0)
                return SP_E_LIMIT;
        gate_init(&s->gate, s->options);
        s->rate_per_s = (unsigned)config_option_number(s->options, CONFIG_connection_rate);
        if (getrandom(&s->rate.seed, sizeof(s->rate.seed), 0) != sizeof(s->rate.seed))
                return SP_E_LIMIT;
        int r = listeners_open(s->options, &s->gate, &s->listeners);
        if (r < 0)
                return r;
        s->listener_sources = mem_zalloc(s->listeners.count * sizeof(*s->listener_sources));
        return s->listener_sources ? start_accepting(s) : SP_E_NOMEM;
}

int supervisor_main(const struct config_options *o, int argc, char **argv)
{
        static struct supervisor s; /* large */
        s = (struct supervisor){
                .options = o,
                .spawner.zygote = -1,
                .epoll = -1,
                .signals = -1,
                .accept_ns = UINT64_MAX,
        };
        list_init(&s.visitors);
        list_init(&s.waiting);
        list_init(&s.workers);
        list_init(&s.dead);
        int r = prepare(&s);
        if (!r)
                r = tell_ready(&s);
        if (!r)
                spawner_init(&s.spawner, o, argc, argv);
        s.zygote_source.kind = SOURCE_ZYGOTE;
        if (s.spawner.zygote >= 0 && watch(&s, s.spawner.zygote, &s.zygote_source) < 0)
                spawner_fini(&s.spawner);
        if (!r)
                log_info(LOG, "spancld %s is ready", SPANCL_VERSION);
        while (!r && !s.stopping) {
                expire(&s);
                provide(&s);
                bury(&s);
                run_events(&s, clock_poll_ms(next_deadline(&s)));
        }
        if (s.stopping)
                notify_send("STOPPING=1");
        s.stopping = true;
        listeners_close(&s.listeners);
        for (struct visitor *v; (v = first(&s.visitors));)
                visitor_leave(&s, v);
        refuse_waiting(&s, NULL, SP_E_GONE, "the server is being shut down");
        bury(&s);
        stop_workers(&s);
        spawner_fini(&s.spawner);
        mem_free(s.listener_sources);
        gate_fini(&s.gate);
        if (s.epoll >= 0)
                close(s.epoll);
        if (s.signals >= 0)
                close(s.signals);
        return r < 0 ? 1 : 0;
}
