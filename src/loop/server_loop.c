#include "loop/server_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/config.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vm.h"
#include "engine/engine.h"
#include "loop/carrier.h"
#include "loop/clock.h"
#include "loop/link.h"
#include "loop/spin.h"
#include "session/hello.h"
#include "trace/trace.h"

#define LOG "server"

/* Of the memory in common with the client, for what its buffers hold: it has pages as far as they are
 * touched. */
#define COMMON_SIZE (1ull << 40)

enum {
        DIRECT_BULK_MAX = 256 << 10, /* bulk that a completion's thread sends itself */
        EARLY_MAX = 64,              /* peers that came before the client announced them */
        EARLY_WAIT_MS = 8000,
        DIAL_TIMEOUT_MS = 10000,
        OUTPUT_MAX = 1 << 20, /* bytes of printf text in one message */
        FAREWELL_MS = 1000,
        SHARED_MESSAGES = 256 << 10, /* rings of shared memory */
        SHARED_BULK = 2 << 20,
        RETRY_FIRST_MS = 20, /* between two tries to reach a peer, doubled each time */
        RETRY_MAX_MS = 1000,
        PATIENCE_MS = 4000, /* after which the client is told that a peer can't be reached */
        POLL_MAX = 2 + 2 * SESSION_LANES, /* entries of one channel, and ours */
};

/* One of the engine's sessions with its connections. Lives as long as the loop. */
struct channel {
        struct list link;
        struct session *session;
        struct server_loop *loop;
        struct link lanes[SESSION_LANES];
        struct carrier *carriers[SESSION_LANES]; /* NULL: the loop's thread moves the lane */
        bool wide;                 /* there are several bulk lanes, or were: each with a carrier */
        int broken[SESSION_LANES]; /* negative: what a carrier found, for the loop's thread */
        bool failed;               /* a peer that the engine was told is lost */
        /* A peer that this side dials; NULL: it comes. */
        struct target *target;
};

/* Where a peer is, and how it goes. */
struct target {
        char address[1100];
        uint64_t id[2], token[2];
        uint64_t try;      /* the generation of the last one */
        uint64_t again_ns; /* when to try again; UINT64_MAX: it is connected, or being dialled */
        uint64_t tell_ns;  /* when to tell the client; UINT64_MAX: it is connected, or was told */
        unsigned pause_ms;
        bool reached; /* once at least */
};

/* What other threads leave for the loop's thread. */
struct arrival {
        struct list link;
        struct conn *conn; /* NULL: dialling failed */
        /* A connection that came: its hello. */
        struct buf hello;
        uint64_t deadline_ns;
        /* One that was dialled: where it belongs. */
        struct session *session;
        unsigned lane;
        uint64_t next_seq, generation;
        int status;
        char text[sizeof(((struct dial_reply *)NULL)->text)];
};

/* Outlives the loop while threads that dial hold it. */
struct mailbox {
        pthread_mutex_t lock; /* guards all below; innermost */
        unsigned refs;
        bool closed;
        bool stop;
        char stop_text[256];
        struct list arrivals;
        int wake_fd;
};

struct server_loop {
        struct server_loop_params params;
        struct engine *engine;
        struct mailbox *box;
        struct link_lock unlock;
        pthread_t thread;
        bool started;

        /* Guarded by the engine's lock. */
        pthread_t self; /* the thread, known once `running` */
        bool running;
        bool asleep; /* the thread is in poll, or about to be */
        struct list channels;
        struct channel *client;
        bool claimed; /* a client has attached: id and key are its */
        uint64_t id[2], key[2];
        bool over; /* nobody may attach any more */
        /* The memory in common with the client: of its first connection; -1: none. */
        int common_fd;
        uint64_t common_size;

        /* The thread's own. */
        struct list early;
        uint64_t linger_ns; /* UINT64_MAX: lane 0 is up */
        uint64_t farewell_ns;
        int end_status;
        char end_text[256];
        struct pollfd *fds;
        size_t fd_cap;
        /* Those of them that can be peeked at; no other thread closes such a conn. Room for fd_cap. */
        struct conn **conns;
        size_t conn_count;
        struct spin spin;
};

/* ---- mailbox -------------------------------------------------------------------------------- */

static void wake(struct mailbox *box)
{
        while (eventfd_write(box->wake_fd, 1) < 0 && errno == EINTR)
                ;
}

static struct arrival *arrival_free(struct arrival *a)
{
        if (!a)
                return NULL;
        conn_close(a->conn);
        buf_fini(&a->hello);
        mem_free(a);
        return NULL;
}

static void arrivals_free(struct list *all)
{
        while (!list_empty(all)) {
                struct arrival *a = list_entry(all->next, struct arrival, link);
                list_remove(&a->link);
                arrival_free(a);
        }
}

static struct mailbox *box_unref(struct mailbox *box)
{
        if (!box)
                return NULL;
        pthread_mutex_lock(&box->lock);
        bool last = !--box->refs;
        pthread_mutex_unlock(&box->lock);
        if (!last)
                return NULL;
        arrivals_free(&box->arrivals);
        close(box->wake_fd);
        pthread_mutex_destroy(&box->lock);
        mem_free(box);
        return NULL;
}

static int box_new(struct mailbox **ret)
{
        struct mailbox *box = mem_zalloc(sizeof(*box));
        if (!box)
                return SP_E_NOMEM;
        box->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (box->wake_fd < 0) {
                mem_free(box);
                return SP_E_LIMIT;
        }
        pthread_mutex_init(&box->lock, NULL);
        list_init(&box->arrivals);
        box->refs = 1;
        *ret = box;
        return 0;
}

/* Takes `a` over. */
static void box_post(struct mailbox *box, struct arrival *a)
{
        pthread_mutex_lock(&box->lock);
        bool closed = box->closed;
        if (!closed)
                list_append(&box->arrivals, &a->link);
        pthread_mutex_unlock(&box->lock);
        if (closed)
                arrival_free(a);
        else
                wake(box);
}

static struct arrival *box_take(struct mailbox *box)
{
        struct arrival *a = NULL;
        pthread_mutex_lock(&box->lock);
        if (!list_empty(&box->arrivals)) {
                a = list_entry(box->arrivals.next, struct arrival, link);
                list_remove(&a->link);
        }
        pthread_mutex_unlock(&box->lock);
        return a;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Signals are the program's business, not our threads'. */
static int start_thread(pthread_t *ret, bool detached, void *(*fn)(void *arg), void *arg)
{
        pthread_attr_t attr;
        sigset_t all, old;
        pthread_t thread;
        pthread_attr_init(&attr);
        if (detached)
                pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int r = pthread_create(&thread, &attr, fn, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        if (r)
                return SP_E_LIMIT;
        if (ret)
                *ret = thread;
        return 0;
}

/* ---- channels: all with the engine's lock --------------------------------------------------- */

static struct channel *channel_of(struct server_loop *l, struct session *s)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->session == s)
                        return c;
        }
        struct channel *c = mem_zalloc(sizeof(*c));
        if (!c)
                return NULL;
        c->session = s;
        c->loop = l;
        list_append(&l->channels, &c->link);
        return c;
}

static void channel_down(struct channel *c)
{
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                link_down(&c->lanes[i]);
                c->broken[i] = 0;
        }
}

/* Threads that copy bytes of lanes that are down already, unlocked, end with that soon: nothing blocks there. */
static void channel_await(struct server_loop *l, struct channel *c)
{
        for (unsigned i = 0; i < SESSION_LANES; i++)
                while (link_busy(&c->lanes[i])) {
                        engine_unlock(l->engine);
                        sched_yield();
                        engine_lock(l->engine);
                }
}

static bool on_loop_thread(const struct server_loop *l)
{
        return l->running && pthread_equal(l->self, pthread_self());
}

static void rouse(struct server_loop *l)
{
        if (!l->asleep)
                return;
        l->asleep = false;
        wake(l->box);
}

static __attribute__((format(printf, 3, 4))) void end(struct server_loop *l, int status,
                                                      const char *fmt, ...)
{
        if (l->over)
                return;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(l->end_text, sizeof(l->end_text), fmt, ap);
        va_end(ap);
        l->over = true;
        l->end_status = status;
}

/* The session with a peer has ended. */
static void peer_failed(struct server_loop *l, struct channel *c, int status, const char *text)
{
        if (c->failed)
                return;
        c->failed = true;
        engine_peer_failed(l->engine, c->session, status, text);
}

/* The connections with a peer are lost. Who dialled it does so again; it may be that its session ends. */
static void peer_away(struct channel *c)
{
        struct target *t = c->target;
        log_info(LOG, "the connection with a peer is lost; %s",
                 t ? "it is tried again" : "it will try again");
        if (!t)
                return;
        uint64_t now = clock_now_ns();
        t->pause_ms = RETRY_FIRST_MS;
        t->again_ns = now + RETRY_FIRST_MS * 1000000ull;
        if (t->tell_ns == UINT64_MAX)
                t->tell_ns = now + PATIENCE_MS * 1000000ull;
}

/* A connection of `c` is lost or its session has ended. On the loop's thread, which may poll for the others. */
static void lost(struct server_loop *l, struct channel *c, unsigned lane, int status)
{
        if (c == l->client) {
                if (status != SP_E_LINK) {
                        log_error(LOG, "the client's session ends: %s", status_text(status));
                        end(l, status, "%s", status_text(status));
                } else if (lane) {
                        link_down(&c->lanes[lane]);
                } else {
                        log_info(LOG, "the client's connection is lost; waiting %u s for it",
                                 l->params.linger_s);
                        channel_down(c);
                        l->linger_ns = clock_now_ns() + l->params.linger_s * 1000000000ull;
                }
                return;
        }
        channel_down(c);
        if (status == SP_E_LINK)
                peer_away(c);
        else
                peer_failed(l, c, status, status_text(status));
}

/* ---- the engine's calls: any thread, lock held ---------------------------------------------- */

static void on_flush(void *user, struct session *s)
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        if (!c)
                return;
        carriers_rouse(c->carriers, s);
        if (on_loop_thread(l))
                return; /* it sends when it has received all that is there */
        bool more = false;
        for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                struct link *k = &c->lanes[lane];
                if (!k->conn || c->carriers[lane])
                        continue;
                if (!k->blocked)
                        more |= link_flush(k, lane ? DIRECT_BULK_MAX : SIZE_MAX, NULL) != 0;
                more |= k->waiting; /* the place it waits for may be there now */
        }
        if (more)
                rouse(l);
}

/* One try. */
struct dialling {
        struct mailbox *box;
        struct session *session;
        struct target target;
        uint64_t next_seq;
        unsigned lanes; /* for bulk */
        bool share;
};

static void *dial_thread(void *arg)
{
        struct dialling *d = arg;
        const struct target *t = &d->target;
        pthread_setname_np(pthread_self(), "spancl-dial");
        for (unsigned lane = 0; lane <= d->lanes; lane++) {
                struct dial_params p = {
                        .address = t->address,
                        .timeout_ms = DIAL_TIMEOUT_MS,
                        .role = DIAL_PEER,
                        .lane = lane,
                        .session_id = { t->id[0], t->id[1] },
                        .key = { t->token[0], t->token[1] },
                        .next_seq = d->next_seq,
                        .generation = t->try,
                        .name = "peer",
                        .share = d->share,
                };
                struct dial_reply reply;
                struct arrival *a = mem_zalloc(sizeof(*a));
                if (!a)
                        break; /* the engine's commands fail when the client gives up */
                a->session = d->session;
                a->generation = t->try;
                a->lane = lane;
                a->status = loop_connect(&p, &a->conn, &reply);
                a->next_seq = reply.next_seq;
                snprintf(a->text, sizeof(a->text), "%s", reply.text);
                bool failed = a->status < 0;
                if (!failed && !carrier_takes(a->conn))
                        d->lanes = 1;
                box_post(d->box, a);
                if (failed)
                        break;
        }
        box_unref(d->box);
        mem_free(d);
        return NULL;
}

static bool begins(const char *text, const char *with)
{
        return !strncmp(text, with, strlen(with));
}

/* The transport's address of a peer_open's host: encrypted if the key is known that the other server must
 * have, and the link leaves this host. */
static void make_address(const char *host, unsigned port, char *ret, size_t size)
{
        if (begins(host, "unix:") || begins(host, "inproc:")) {
                snprintf(ret, size, "%s", host);
                return;
        }
        bool is_tls = begins(host, "tls:"), is_tcp = begins(host, "tcp:");
        const char *name = host + (is_tls || is_tcp ? 4 : 0), *key = name + strcspn(name, "#");
        char bare[256];
        snprintf(bare, sizeof(bare), "%.*s", (int)(key - name), name);
        if (!is_tcp && *key && !config_is_loopback(bare))
                is_tls = true;
        snprintf(ret, size, strchr(bare, ':') ? "%s[%s]:%u%s" : "%s%s:%u%s",
                 is_tls ? "tls:" : "tcp:", bare, port, is_tls ? key : "");
}

static int start_try(struct server_loop *l, struct channel *c)
{
        struct target *t = c->target;
        struct dialling *d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        if (t->try < session_generation(c->session))
                t->try = session_generation(c->session);
        t->try++;
        t->again_ns = UINT64_MAX;
        d->target = *t;
        d->session = c->session;
        d->next_seq = session_next_seq(c->session);
        d->lanes = l->params.lanes ? l->params.lanes : carrier_lanes();
        d->share = l->params.share;
        d->box = l->box;
        pthread_mutex_lock(&d->box->lock);
        d->box->refs++;
        pthread_mutex_unlock(&d->box->lock);
        int r = start_thread(NULL, true, dial_thread, d);
        if (r < 0) {
                box_unref(d->box);
                mem_free(d);
        }
        return r;
}

/* The client is told that the peer can't be reached: the first time at once, because it may never be that
 * way, else after a while. */
static void peer_tell(struct server_loop *l, struct channel *c, const char *text)
{
        struct target *t = c->target;
        if (t->tell_ns == UINT64_MAX || (t->reached && clock_now_ns() < t->tell_ns))
                return;
        t->tell_ns = UINT64_MAX;
        engine_peer_unreachable(l->engine, c->session, text);
}

/* A try has failed. */
static void try_later(struct server_loop *l, struct channel *c, int status, const char *text)
{
        struct target *t = c->target;
        channel_down(c);
        log_info(LOG, "no link to a peer: %s", text);
        if (status == SP_E_GONE) {
                peer_failed(l, c, status, text);
                return;
        }
        t->again_ns = clock_now_ns() + t->pause_ms * 1000000ull;
        t->pause_ms = 2 * t->pause_ms < RETRY_MAX_MS ? 2 * t->pause_ms : RETRY_MAX_MS;
        peer_tell(l, c, text);
}

static void try_now(struct server_loop *l, struct channel *c)
{
        int r = start_try(l, c);
        if (r < 0)
                try_later(l, c, r, status_text(r));
}

static void on_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const uint64_t session_id[2], const uint64_t token[2])
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        (void)peer;
        if (c && !c->target)
                c->target = mem_zalloc(sizeof(*c->target));
        if (!c || !c->target) {
                log_error(LOG, "out of memory: a peer is not dialled");
                return;
        }
        struct target *t = c->target;
        channel_down(c);
        *t = (struct target){ .id = { session_id[0], session_id[1] },
                              .token = { token[0], token[1] },
                              .try = t->try,
                              .again_ns = 0, /* as soon as this message is worked off */
                              .tell_ns = clock_now_ns() + PATIENCE_MS * 1000000ull,
                              .pause_ms = RETRY_FIRST_MS };
        make_address(host, port, t->address, sizeof(t->address));
}

static void on_hang_up(void *user, struct session *s)
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        if (!c)
                return;
        channel_down(c);
        mem_free(c->target);
        c->target = NULL;
}

/* Peers that are to be tried again, or were not reached for too long. */
static void see_to_peers(struct server_loop *l)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->target && clock_now_ns() >= c->target->again_ns)
                        try_now(l, c);
                if (c->target && clock_now_ns() >= c->target->tell_ns)
                        peer_tell(l, c, "no answer");
        }
}

static void on_output(void *user, struct buf *text)
{
        struct server_loop *l = user;
        for (size_t got = 0; got < OUTPUT_MAX;) {
                uint8_t chunk[16 << 10];
                ssize_t n = read(l->params.output_fd, chunk, sizeof(chunk));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                if (buf_put(text, chunk, (size_t)n) < 0) {
                        log_error(LOG, "out of memory: text that kernels printed is lost");
                        return;
                }
                got += (size_t)n;
        }
}

static int on_map_common(void *user, uint64_t offset, size_t size, uint64_t *ret_address)
{
        struct server_loop *l = user;
        if (l->common_fd < 0 || offset > l->common_size || size > l->common_size - offset)
                return SP_E_NOENT;
        return vm_map_file(l->common_fd, offset, size, ret_address);
}

static uint64_t on_now(void *user)
{
        (void)user;
        return clock_now_ns();
}

static const struct engine_ops ops_silent = {
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .map_common = on_map_common,
        .now_ns = on_now,
};
static const struct engine_ops ops_output = {
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .output = on_output,
        .map_common = on_map_common,
        .now_ns = on_now,
};

/* ---- attaching ------------------------------------------------------------------------------ */

static bool same(const uint64_t a[2], uint64_t hi, uint64_t lo)
{
        return !((a[0] ^ hi) | (a[1] ^ lo)); /* both halves always: no hint in the time it takes */
}

/* Connections of a session that had others may arrive in any order. */
static bool is_outdated(const struct wire_hello *m, uint64_t generation)
{
        return m->lane ? m->generation != generation : m->generation <= generation;
}

/* Decide on a hello. 0 with the session and lane, SP_E_AGAIN: a peer not announced yet; else why not,
 * with a text. */
static int admit(struct server_loop *l, const struct wire_hello *m, struct session **ret,
                 const char **ret_text)
{
        if (l->over) {
                *ret_text = "the session has ended";
                return SP_E_GONE;
        }
        if (m->lane >= SESSION_LANES) {
                *ret_text = "this server has no such lane";
                return SP_E_UNSUPP;
        }
        if (m->role) {
                uint64_t token[2] = { m->key_hi, m->key_lo };
                if (!l->claimed || !same(l->id, m->session_hi, m->session_lo)) {
                        *ret_text = "no such session";
                        return SP_E_GONE;
                }
                *ret = engine_peer_session(l->engine, token);
                if (*ret && is_outdated(m, session_generation(*ret))) {
                        *ret_text = "a later connection has taken the place of this one";
                        return SP_E_LINK;
                }
                return *ret ? 0 : SP_E_AGAIN;
        }
        if (!l->claimed) {
                if (m->lane || m->next_seq || m->generation) {
                        *ret_text = "no such session";
                        return SP_E_GONE;
                }
                l->claimed = true;
                l->id[0] = m->session_hi;
                l->id[1] = m->session_lo;
                l->key[0] = m->key_hi;
                l->key[1] = m->key_lo;
        } else if (!same(l->id, m->session_hi, m->session_lo)) {
                *ret_text = "no such session";
                return SP_E_GONE;
        } else if (!same(l->key, m->key_hi, m->key_lo)) {
                *ret_text = "wrong key for this session";
                return SP_E_AUTH;
        } else if (is_outdated(m, session_generation(engine_session(l->engine)))) {
                *ret_text = "a later connection has taken the place of this one";
                return SP_E_LINK;
        }
        *ret = engine_session(l->engine);
        return 0;
}

/* On a carrier's thread. */
static void carried(void *user, struct link *link, int status)
{
        struct channel *c = user;
        struct server_loop *l = c->loop;
        engine_settle(l->engine);
        if (session_unsent(c->session))
                on_flush(l, c->session); /* acknowledgements */
        if (status >= 0)
                return;
        c->broken[link->lane] = status;
        rouse(l);
}

static void carry_lane(struct server_loop *l, struct channel *c, unsigned lane)
{
        if (c->carriers[lane]) {
                carrier_rouse(c->carriers[lane]);
                return;
        }
        const struct carrier_params p = {
                .link = &c->lanes[lane],
                .lock = &l->unlock,
                .spin_ns = l->params.spin_ns,
                .moved = carried,
                .user = c,
        };
        int r = carrier_start(&p, &c->carriers[lane]);
        if (r < 0)
                log_info(LOG, "no thread for lane %u: %s", lane, status_text(r));
}

/* Lane `up` is there. Several bulk lanes are there to be moved at the same time; one alone, and any without a
 * thread of its own, is moved by the loop's. */
static void carry(struct server_loop *l, struct channel *c, unsigned up)
{
        c->wide |= up > 1;
        for (unsigned lane = 1; c->wide && lane < SESSION_LANES; lane++)
                if (c->lanes[lane].conn && carrier_takes(c->lanes[lane].conn))
                        carry_lane(l, c, lane);
}

/* Answer in one piece: nothing else was sent on the conn, so it fits. */
static int answer(struct conn *conn, const struct wire_hello_reply *m)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        int r = hello_put_reply(&out, m);
        if (r < 0)
                return r;
        struct iovec iov = { out.data, out.size };
        return conn->ops->sendv(conn, &iov, 1) == (ssize_t)out.size ? 0 : SP_E_LINK;
}

/* `common`: with memory for buffers, too. */
static int offer_memory(struct server_loop *l, struct conn **conn, unsigned lane, bool common)
{
        uint64_t size;
        int r = shm_offer(conn, lane ? SHARED_BULK : SHARED_MESSAGES, common ? COMMON_SIZE : 0);
        int fd = !r && common ? conn_common(*conn, &size) : -1;
        if (fd < 0)
                return r;
        l->common_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        l->common_size = size;
        return r;
}

/* Attach `conn` (taken over) to a lane. With `reply`, in process, the answer goes there. */
static int attach(struct server_loop *l, const struct wire_hello *m, struct session *s,
                  struct conn *conn, struct dial_reply *reply)
{
        struct channel *c = channel_of(l, s);
        unsigned lane = (unsigned)m->lane;
        uint64_t next_seq = lane ? 0 : session_next_seq(s), now = clock_now_ns();
        bool share = l->params.share && m->features & FEATURE_SHARED_MEMORY &&
                     conn->ops == &transport_unix;
        int r = c ? 0 : SP_E_NOMEM;
        if (!r && c->failed)
                r = SP_E_GONE;
        if (!r && !reply)
                r = answer(conn, &(struct wire_hello_reply){
                                         .version = WIRE_VERSION,
                                         .features = share ? FEATURE_SHARED_MEMORY : FEATURE_NONE,
                                         .next_seq = next_seq,
                                         .time_ns = now,
                                         .identity = bytes_str(l->params.identity) });
        if (r < 0) {
                conn_close(conn);
                return r;
        }
        if (share)
                r = offer_memory(l, &conn, lane, !lane && !m->role && l->common_fd < 0);
        if (r < 0)
                return r;
        bool again = !lane && m->generation;
        if (again) {
                channel_down(c); /* the client has given them up */
                channel_await(l, c);
        }
        r = link_up(&c->lanes[lane], s, lane, conn, m->next_seq);
        if (r == 0 && again) {
                r = session_resume(s, m->generation);
                engine_settle(l->engine);
        }
        if (r < 0)
                return r;
        if (reply) {
                reply->version = WIRE_VERSION;
                reply->next_seq = next_seq;
                reply->time_ns = now;
        }
        carry(l, c, lane);
        if (!m->role && !lane) {
                l->client = c;
                l->linger_ns = UINT64_MAX;
        }
        log_info(LOG, "%s attached lane %u (%.*s, %s)", m->role ? "a peer" : "the client", lane,
                 (int)m->name.size, (const char *)m->name.data, c->lanes[lane].conn->ops->name);
        return 0;
}

static void refuse(struct conn *conn, int status, const char *text)
{
        log_warn(LOG, "a connection was refused: %s", text);
        (void)!answer(conn, &(struct wire_hello_reply){ .status = status,
                                                        .time_ns = clock_now_ns(),
                                                        .text = bytes_str(text) });
        conn_close(conn);
}

/* A connection that came. Keeps it for later when it is a peer not announced yet. */
static void greet(struct server_loop *l, struct arrival *a, size_t *early)
{
        struct wire_hello m;
        struct session *s;
        const char *text = "the hello is not valid";
        int r = hello_get(bytes_of(a->hello.data, a->hello.size), &m);
        uint64_t version;
        if (!r)
                r = hello_negotiate(&m, &version, &text);
        if (!r)
                r = admit(l, &m, &s, &text);
        if (r == SP_E_AGAIN && *early < EARLY_MAX && clock_now_ns() < a->deadline_ns) {
                list_append(&l->early, &a->link);
                ++*early;
                return;
        }
        if (r == SP_E_AGAIN) {
                r = SP_E_AUTH;
                text = "the client has not announced this peer";
        }
        struct conn *conn = steal(a->conn);
        if (r < 0)
                refuse(conn, r, text);
        else if ((r = attach(l, &m, s, conn, NULL)) < 0)
                log_warn(LOG, "a connection could not be attached: %s", status_text(r));
        arrival_free(a);
}

/* A connection that this side dialled is there. */
static void peer_reached(struct server_loop *l, struct channel *c, struct arrival *a)
{
        struct target *t = c->target;
        if (!a->lane) {
                channel_down(c);
                channel_await(l, c);
        }
        int r = link_up(&c->lanes[a->lane], c->session, a->lane, steal(a->conn), a->next_seq);
        if (!r && !a->lane) {
                r = session_resume(c->session, a->generation);
                engine_settle(l->engine);
        }
        if (r < 0) {
                channel_down(c);
                peer_failed(l, c, r, status_text(r));
                return;
        }
        carry(l, c, a->lane);
        if (a->lane != 1)
                return;
        t->reached = true;
        t->tell_ns = UINT64_MAX;
        t->pause_ms = RETRY_FIRST_MS;
}

/* What came of dialling. */
static void settle(struct server_loop *l, struct arrival *a)
{
        struct channel *c = channel_of(l, a->session);
        const struct target *t = c ? c->target : NULL;
        const char *text = a->text[0] ? a->text : status_text(a->status);
        bool given_up = !t || c->failed || a->generation != t->try || t->again_ns != UINT64_MAX;
        if (!given_up && !a->status)
                peer_reached(l, c, a);
        else if (!given_up && a->lane > 1)
                log_info(LOG, "one lane less to a peer: %s", text);
        else if (!given_up)
                try_later(l, c, a->status, text);
        arrival_free(a);
}

static void take_arrivals(struct server_loop *l)
{
        struct list again = { &again, &again };
        size_t early = 0;
        while (!list_empty(&l->early)) {
                struct list *first = l->early.next;
                list_remove(first);
                list_append(&again, first);
        }
        while (!list_empty(&again)) {
                struct list *first = again.next;
                list_remove(first);
                greet(l, list_entry(first, struct arrival, link), &early);
        }
        for (struct arrival *a; (a = box_take(l->box));) {
                if (a->session)
                        settle(l, a);
                else
                        greet(l, a, &early);
        }
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* What carriers found. */
static void take_losses(struct server_loop *l)
{
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned lane = 1; lane < SESSION_LANES; lane++) {
                        int status = c->broken[lane];
                        c->broken[lane] = 0;
                        if (status < 0)
                                lost(l, c, lane, status);
                }
        }
}

/* Send what there is, messages before bulk. True: more can be sent at once. */
static bool flush_all(struct server_loop *l, bool bulk)
{
        bool more = false;
        for (unsigned lane = 0; lane < (bulk ? SESSION_LANES : 1); lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        struct link *k = &c->lanes[lane];
                        if (!k->conn || k->blocked || c->carriers[lane])
                                continue;
                        const struct session_stats *stats = session_get_stats(c->session);
                        uint64_t sent = stats->bulk_sent;
                        int r = link_flush(k, LINK_BUDGET, &l->unlock);
                        if (stats->bulk_sent != sent)
                                engine_settle(l->engine); /* a transfer may have ended */
                        if (r == SP_E_BUSY)
                                more = true;
                        else if (r < 0 && r != SP_E_AGAIN)
                                lost(l, c, lane, r);
                }
        }
        if (bulk)
                list_each(c, &l->channels, struct channel, link)
                        carriers_rouse(c->carriers, c->session);
        return more;
}

static void receive(struct server_loop *l, struct channel *c, unsigned lane)
{
        int r = link_receive(&c->lanes[lane], LINK_BUDGET, &l->unlock);
        engine_settle(l->engine);
        if (r < 0)
                lost(l, c, lane, r);
        if (c == l->client && !lane && engine_closed(l->engine))
                end(l, 0, "closed by the client");
}

/* Text that came without a completion behind it. */
static void take_output(struct server_loop *l)
{
        auto_clean(buf_fini) struct buf text = { 0 };
        on_output(l, &text);
        if (text.size && session_send(engine_session(l->engine), output,
                                      .text = bytes_of(text.data, text.size)) < 0)
                log_warn(LOG, "text that kernels printed is lost");
}

static bool wants_output(struct server_loop *l)
{
        return l->params.output_fd >= 0 && session_has_room(engine_session(l->engine));
}

/* What to poll for; entry 0 is the mailbox, entry 1 the output. 1: there is something to do at once, from a
 * thread that found this one awake, while it had the lock released for another lane; 0; SP_E_NOMEM. */
static int collect(struct server_loop *l, size_t *ret_count)
{
        size_t n = 2;
        int ready = 0;
        l->conn_count = 0;
        l->fds[0] = (struct pollfd){ .fd = l->box->wake_fd, .events = POLLIN };
        l->fds[1] = (struct pollfd){ .fd = wants_output(l) ? l->params.output_fd : -1,
                                     .events = POLLIN };
        list_each(c, &l->channels, struct channel, link)
        {
                if (n + 2 * SESSION_LANES > l->fd_cap) {
                        size_t cap = l->fd_cap * 2;
                        struct pollfd *more = mem_realloc(l->fds, cap * sizeof(*more));
                        if (!more)
                                return SP_E_NOMEM;
                        l->fds = more;
                        struct conn **conns = mem_realloc(l->conns, cap * sizeof(*conns));
                        if (!conns)
                                return SP_E_NOMEM;
                        l->conns = conns;
                        l->fd_cap = cap;
                }
                for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                        ready |= c->broken[lane] < 0;
                        if (c->carriers[lane])
                                continue;
                        ready |= link_can_send(&c->lanes[lane]);
                        int added = link_poll(&c->lanes[lane], &l->fds[n]);
                        if (added && c->lanes[lane].conn->ops->peek)
                                l->conns[l->conn_count++] = c->lanes[lane].conn;
                        n += (size_t)added;
                }
        }
        *ret_count = n;
        return ready;
}

static void serve(struct server_loop *l, size_t count)
{
        for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        if (c->carriers[lane])
                                continue;
                        struct link *k = &c->lanes[lane];
                        unsigned can = k->conn ? conn_polled(k->conn, l->fds + 2, count - 2) : 0;
                        if (can & CONN_OUT)
                                k->blocked = false;
                        if (can & CONN_IN && !l->over)
                                receive(l, c, lane);
                }
                if (!lane)
                        flush_all(l, false);
        }
}

/* The session is told to end: say so, and give it a moment to be sent. */
static void farewell(struct server_loop *l)
{
        char text[256];
        pthread_mutex_lock(&l->box->lock);
        bool stop = l->box->stop;
        if (stop)
                memcpy(text, l->box->stop_text, sizeof(text));
        pthread_mutex_unlock(&l->box->lock);
        if (!stop)
                return;
        struct session *s = engine_session(l->engine);
        if (l->farewell_ns == UINT64_MAX) {
                l->farewell_ns = clock_now_ns() + FAREWELL_MS * 1000000ull;
                if (!l->claimed ||
                    session_send(s, close, .status = SP_E_GONE, .text = bytes_str(text)) < 0)
                        end(l, SP_E_GONE, "%s", text);
        }
        struct link *k = l->client ? &l->client->lanes[0] : NULL;
        if (k && k->conn && !k->blocked)
                (void)!link_flush(k, SIZE_MAX, NULL);
        if (!k || !k->conn || (!session_unsent(s) && !k->blocked) ||
            clock_now_ns() >= l->farewell_ns)
                end(l, SP_E_GONE, "%s", text);
}

/* The session has taken more than it may have. */
static void expire(struct server_loop *l)
{
        static const char text[] = "a command ran for longer than this server allows";
        if (engine_deadline(l->engine) > clock_now_ns())
                return;
        int r = engine_expire(l->engine, clock_now_ns());
        if (r < 0) {
                (void)!session_send(engine_session(l->engine), close, .status = r,
                                    .text = bytes_str(text));
                end(l, r, "%s", text);
        }
}

static uint64_t next_deadline(struct server_loop *l)
{
        uint64_t d = l->linger_ns < l->farewell_ns ? l->linger_ns : l->farewell_ns;
        uint64_t engine = engine_deadline(l->engine);
        d = engine < d ? engine : d;
        list_each(a, &l->early, struct arrival, link)
        {
                if (a->deadline_ns < d)
                        d = a->deadline_ns;
        }
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->target && c->target->again_ns < d)
                        d = c->target->again_ns;
                if (c->target && c->target->tell_ns < d)
                        d = c->target->tell_ns;
        }
        return d;
}

static enum spin_also poll_completions(void *loop)
{
        struct server_loop *l = loop;
        enum backend_polled r = engine_poll(l->engine, false);
        return r == BACKEND_REPORTED ? SPIN_FOUND : r == BACKEND_WAITING ? SPIN_SOON : SPIN_NOTHING;
}

/* Without the engine's lock. */
static int look(struct server_loop *l, size_t count)
{
        int n = poll(l->fds, count, 0);
        return n ? n : spin_peek(l->conns, l->conn_count);
}

static int sleep_in_poll(struct server_loop *l, size_t count, uint64_t deadline)
{
        int n = spin_poll(&l->spin, l->fds, count, l->conns, l->conn_count);
        if (n)
                return n;
        if (l->spin.also)
                engine_poll(l->engine, true);
        TRACE_SPAN(poll, count);
        n = poll(l->fds, count, clock_poll_ms(deadline));
        spin_slept(&l->spin);
        return n;
}

static void *loop_thread(void *arg)
{
        struct server_loop *l = arg;
        pthread_setname_np(pthread_self(), "spancl-loop");
        engine_lock(l->engine);
        l->self = pthread_self();
        l->running = true;
        for (;;) {
                size_t count = 0;
                take_losses(l);
                take_arrivals(l);
                see_to_peers(l);
                expire(l);
                bool more = flush_all(l, true);
                farewell(l);
                if (clock_now_ns() >= l->linger_ns)
                        end(l, SP_E_GONE, "the client did not come back");
                int r = l->over ? 0 : collect(l, &count);
                if (r < 0)
                        end(l, SP_E_NOMEM, "out of memory");
                if (l->over)
                        break;
                more |= r > 0;
                uint64_t deadline = next_deadline(l);
                l->asleep = true;
                engine_unlock(l->engine);
                bool told = l->spin.also && poll_completions(l) == SPIN_FOUND;
                int n = more || told ? look(l, count) : sleep_in_poll(l, count, deadline);
                engine_lock(l->engine);
                l->asleep = false;
                if (n <= 0)
                        continue;
                if (l->fds[0].revents) {
                        eventfd_t v;
                        (void)!eventfd_read(l->box->wake_fd, &v);
                }
                if (l->fds[1].revents)
                        take_output(l);
                serve(l, count);
        }
        flush_all(l, false);
        list_each(c, &l->channels, struct channel, link) channel_down(c);
        engine_unlock(l->engine);
        log_info(LOG, "the session is over: %s", l->end_text);
        if (l->params.ended)
                l->params.ended(l->params.user, l->end_status, l->end_text);
        return NULL;
}

/* ---- public --------------------------------------------------------------------------------- */

static void lock_engine(void *user)
{
        engine_lock(user);
}

static void unlock_engine(void *user)
{
        engine_unlock(user);
}

int server_loop_new(const struct server_loop_params *params, struct server_loop **ret)
{
        struct server_loop *l = mem_zalloc(sizeof(*l));
        if (!l) {
                if (params->output_fd >= 0)
                        close(params->output_fd);
                return SP_E_NOMEM;
        }
        l->params = *params;
        l->linger_ns = l->farewell_ns = UINT64_MAX;
        l->common_fd = -1;
        spin_init(&l->spin, params->spin_ns, 0);
        /* Who does not spin leaves completions to the backend's threads. */
        if (l->spin.max_ns) {
                l->spin.also = poll_completions;
                l->spin.arg = l;
        }
        list_init(&l->channels);
        list_init(&l->early);
        l->fd_cap = POLL_MAX;
        l->fds = mem_alloc(l->fd_cap * sizeof(*l->fds));
        l->conns = mem_alloc(l->fd_cap * sizeof(*l->conns));
        int r = l->fds && l->conns ? box_new(&l->box) : SP_E_NOMEM;
        if (!r && params->output_fd >= 0 && fcntl(params->output_fd, F_SETFL, O_NONBLOCK) < 0)
                r = SP_E_INVAL;
        if (!r)
                r = engine_new(
                        &(struct engine_params){
                                .backend = params->backend,
                                .devices = params->devices,
                                .accelerators = params->accelerators,
                                .scratch_dir = params->scratch_dir,
                                .cache_dir = params->cache_dir,
                                .cache_bytes = params->cache_bytes,
                                .limits = params->limits,
                                .in_process = params->in_process,
                                .clear = params->clear,
                                .ops = params->output_fd < 0 ? &ops_silent : &ops_output,
                                .user = l,
                        },
                        &l->engine);
        if (!r) {
                l->unlock = (struct link_lock){ lock_engine, unlock_engine, l->engine };
                r = start_thread(&l->thread, false, loop_thread, l);
                l->started = !r;
        }
        if (r < 0) {
                server_loop_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

/* The loop's thread has ended. */
static void carriers_end(struct server_loop *l)
{
        if (!l->engine)
                return;
        engine_lock(l->engine);
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned i = 1; i < SESSION_LANES; i++)
                        carrier_tell_stop(c->carriers[i]);
        }
        engine_unlock(l->engine);
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned i = 1; i < SESSION_LANES; i++)
                        c->carriers[i] = carrier_free(c->carriers[i]);
        }
}

struct server_loop *server_loop_free(struct server_loop *l)
{
        if (!l)
                return NULL;
        if (l->started) {
                engine_lock(l->engine);
                end(l, SP_E_GONE, "the server ends");
                engine_unlock(l->engine);
                wake(l->box);
                pthread_join(l->thread, NULL);
        }
        if (l->box) {
                pthread_mutex_lock(&l->box->lock);
                l->box->closed = true;
                pthread_mutex_unlock(&l->box->lock);
        }
        carriers_end(l);
        arrivals_free(&l->early);
        engine_free(l->engine);
        while (!list_empty(&l->channels)) {
                struct channel *c = list_entry(l->channels.next, struct channel, link);
                list_remove(&c->link);
                mem_free(c->target);
                mem_free(c);
        }
        box_unref(l->box);
        if (l->params.output_fd >= 0)
                close(l->params.output_fd);
        mem_free(l->fds);
        mem_free(l->conns);
        if (l->common_fd >= 0)
                close(l->common_fd);
        mem_free(l);
        return NULL;
}

int server_loop_attach(struct server_loop *l, struct conn *conn, struct bytes hello)
{
        struct arrival *a = mem_zalloc(sizeof(*a));
        if (!a) {
                conn_close(conn);
                return SP_E_NOMEM;
        }
        a->conn = conn;
        a->deadline_ns = clock_now_ns() + EARLY_WAIT_MS * 1000000ull;
        int r = buf_put(&a->hello, hello.data, hello.size);
        if (r < 0) {
                arrival_free(a);
                return r;
        }
        box_post(l->box, a);
        return 0;
}

int server_loop_connect(struct server_loop *l, const struct dial_params *p, struct conn **ret,
                        struct dial_reply *reply)
{
        struct conn *pair[2];
        const char *text = NULL;
        struct session *s;
        *reply = (struct dial_reply){ .sent_ns = clock_now_ns() };
        struct wire_hello m = {
                .role = p->role,
                .lane = p->lane,
                .session_hi = p->session_id[0],
                .session_lo = p->session_id[1],
                .key_hi = p->key[0],
                .key_lo = p->key[1],
                .next_seq = p->next_seq,
                .generation = p->generation,
                .name = bytes_str(p->name ? p->name : ""),
        };
        int r = inproc_pair(p->lane > 0, pair);
        if (r < 0) {
                snprintf(reply->text, sizeof(reply->text), "in-process: %s", status_text(r));
                return r;
        }
        engine_lock(l->engine);
        r = admit(l, &m, &s, &text);
        if (!r)
                r = attach(l, &m, s, pair[1], reply);
        else
                conn_close(pair[1]);
        rouse(l);
        engine_unlock(l->engine);
        reply->received_ns = clock_now_ns();
        if (r < 0) {
                snprintf(reply->text, sizeof(reply->text), "in-process: %s",
                         text ? text : status_text(r));
                conn_close(pair[0]);
                return r;
        }
        *ret = pair[0];
        return 0;
}

void server_loop_stop(struct server_loop *l, const char *text)
{
        pthread_mutex_lock(&l->box->lock);
        l->box->stop = true;
        snprintf(l->box->stop_text, sizeof(l->box->stop_text), "%s", text);
        pthread_mutex_unlock(&l->box->lock);
        wake(l->box);
}

int server_loop_links(struct server_loop *l, struct buf *ret)
{
        engine_lock(l->engine);
        int r = engine_get_links(l->engine, ret);
        engine_unlock(l->engine);
        return r;
}

unsigned server_loop_devices(struct server_loop *l)
{
        struct backend *b = engine_backend(l->engine);
        return l->params.backend->device_count(b);
}
