/* The client's side of the outside world: core/link/io.h over sockets, poll(2) and threads. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/servers.h"
#include "config/variables.h"
#include "core/link/io.h"
#include "loop/arena.h"
#include "loop/attempt.h"
#include "loop/dial.h"
#include "loop/lanes.h"
#include "loop/server_loop.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/random.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "trace/trace.h"
#include "transport/address.h"
#include "transport/other_end.h"
#include "transport/own_address.h"
#include "transport/tls.h"

enum {
        RECEIVE_BUDGET = 4 << 20,
        EARLY_MAX = 64 << 10, /* bytes sent behind the hello of a connection that is made again */
        IMPLIED_TIMEOUT_MS =
                1000, /* for a server that nobody named: programs that need none wait, too */
};

/* The list that the thread in loop_wait polls, and owns. Room for so many links. */
struct watch_list {
        size_t room;
        struct pollfd *fds;
        struct conn **conns;
        struct link **trials;
        nfds_t *first; /* a link's first one in `fds` */
};

struct client_loop {
        int wake_fd;
        int address_fd;    /* own_address_watch; -1: not needed yet */
        atomic_bool woken; /* wake_fd is readable, or about to be */
        bool asleep; /* a thread is in loop_wait, which polls for what it knew of; client's lock */
        int timeout_ms;
        bool share;
        enum compression_mode compression;
        enum checking checks;
        unsigned lanes; /* for bulk, to each server; 0: as many as pay */
        size_t remote;  /* links of sessions with other processes */
        uint64_t spin_ns;
        struct spin spin, still; /* still: never */
        struct watch_list watch;
};

struct io_link {
        struct lanes lanes;
        const struct server_spec *spec;
        uint64_t id[2], key[2];
        struct server_loop *local;   /* in-process: its engine */
        struct config_local options; /* of that engine */
        char *accelerators;          /* one of them; NULL: none */
        struct attempt *attach;
        struct dial_reply opened;     /* of a later session (loop_open) */
        struct hello_devices devices; /* the server has described them, and there is no session */
        char reached[ADDRESS_MAX];    /* by lane 0; "": not known */
        struct client_loop *loop;
        unsigned wide;              /* bulk lanes that there are to be; 0: one */
        struct link_lock lock;      /* the client's, for lane threads */
        int status;                 /* negative: a lane thread found the link lost */
        struct arena_bounce bounce; /* of the first connection */
        bool more_in, more_out;     /* the last call left something that could go at once */
        bool quiet;                 /* nothing is there: poll just said so, or it is too soon */
        bool there;                 /* something is, as poll said */
        bool trusted;               /* the last time nothing was looked for */
        bool counted;               /* in client_loop.remote */
        /* `attach` has finished; set by its thread. In a word of its own: gcc reads neighbouring
         * flags together. */
        _Alignas(8) atomic_bool attached;
};

/* ---- dialling ------------------------------------------------------------------------------- */

/* The engine for this host's own devices. */
static int start_local(struct io_link *l, struct dial_reply *reply)
{
        const struct backend_ops *backend = backend_find(l->spec->backend);
        if (!backend)
                return SP_E_NOENT;
        char *error = NULL;
        int r = l->spec->accelerators ? config_accelerators(&l->accelerators, &error) : 0;
        if (r < 0) {
                snprintf(reply->text, sizeof(reply->text), "in-process: %s",
                         error ? error : status_text(r));
                mem_free(error);
                return r;
        }
        char cache[PATH_MAX];
        config_local_options(l->accelerators, l->spec->accelerators, &l->options);
        bool cached = config_option_number(&l->options.options, CONFIG_cache_size);
        struct server_loop_params params = {
                .options = &l->options.options,
                .backend = backend,
                .cache_dir = cached ? config_cache_folder(config_text(CONFIG_client_cache), cache,
                                                          sizeof(cache))
                                    : NULL,
                .in_process = true,
                .output_fd = -1,
        };
        /* Native implementations are not all ready to be opened by two threads at a time. */
        static struct lock one_at_a_time = LOCK_INIT;
        lock_take(&one_at_a_time);
        r = server_loop_new(&params, &l->local);
        lock_release(&one_at_a_time);
        if (r < 0)
                snprintf(reply->text, sizeof(reply->text), "in-process: %s", status_text(r));
        return r;
}

struct dialling {
        thread_id thread;
        bool running;
        struct client_loop *loop;
        struct io_connect *at;
        struct io_link *link;
        struct conn *conn;
        struct dial_reply reply;
        int status;
};

static void *dial_run(void *arg)
{
        struct dialling *d = arg;
        struct io_link *l = d->link;
        if (l->spec->in_process) {
                d->status = start_local(l, &d->reply);
                if (d->status < 0)
                        return NULL;
        }
        int timeout_ms = d->loop->timeout_ms;
        if (l->spec->implied && !config_is_set(CONFIG_connect_timeout))
                timeout_ms = IMPLIED_TIMEOUT_MS;
        struct dial_params p = {
                .address = l->spec->address,
                .timeout_ms = timeout_ms,
                .role = DIAL_CLIENT,
                .session_id = { l->id[0], l->id[1] },
                .key = { l->key[0], l->key[1] },
                .next_seq = session_next_seq(l->lanes.session),
                .name = program_invocation_short_name,
                .share = d->loop->share,
                .checks = d->loop->checks,
                .devices = d->at->describe && !l->local ? &d->at->devices : NULL,
        };
        d->status = attempt_dial(l->local, &p, &d->conn, &d->reply);
        /* A server with too many connections drops the oldest of those without a hello, and no other caller tries again
         * before the program's first query is over. No session may have begun: a list can be taken twice. */
        if (d->status == SP_E_LINK && p.devices) {
                log_info("client", "%s; it is tried again", d->reply.text);
                d->status = attempt_dial(l->local, &p, &d->conn, &d->reply);
        }
        return NULL;
}

static void count_link(struct client_loop *loop, struct io_link *l)
{
        l->loop = loop;
        l->counted = !l->local;
        loop->remote += l->counted;
}

static void link_free(struct io_link *l)
{
        if (l->counted)
                l->loop->remote--;
        server_loop_free(l->local);
        mem_free(l->accelerators);
        arena_unmap_bounce(&l->bounce);
        hello_devices_fini(&l->devices);
        mem_free(l);
}

static void opened_as(const struct dial_reply *reply, struct io_connect *at)
{
        memcpy(at->identity, reply->identity, sizeof(at->identity));
        memcpy(at->local_path, reply->local_path, sizeof(at->local_path));
        at->sent_ns = reply->sent_ns;
        at->received_ns = reply->received_ns;
        at->remote_ns = reply->time_ns;
        at->described = reply->features & FEATURE_DESCRIPTION;
        at->uploads = reply->features & FEATURE_UPLOADS;
        at->knows_recorder = reply->features & FEATURE_RECORDER;
}

/* The connection ends with the address that it has. */
static void watch_address(struct client_loop *loop, const struct io_link *l)
{
        if (loop->address_fd < 0 && own_address_may_go(l->lanes.links[0].conn))
                loop->address_fd = own_address_watch();
}

static int lane_up(struct io_link *l, unsigned lane, struct conn *conn,
                   const struct dial_reply *reply)
{
        if (!lane && (l->local || conn_reached(conn, l->spec->address, l->reached) < 0))
                l->reached[0] = '\0';
        if (!lane && !l->bounce.base)
                arena_map_bounce(conn, &l->bounce);
        arena_use_bounce(&l->bounce, lane, conn);
        return link_up(&l->lanes.links[lane], l->lanes.session, lane, conn, reply->next_seq);
}

static void dial_finish(struct dialling *d)
{
        struct io_connect *at = d->at;
        struct io_link *l = d->link;
        if (d->running)
                thread_join(d->thread);
        if (d->status == 0 && d->conn)
                d->status = lane_up(l, 0, d->conn, &d->reply);
        at->status = d->status;
        snprintf(at->text, sizeof(at->text), "%.*s", (int)sizeof(at->text) - 1, d->reply.text);
        if (at->status < 0) {
                link_free(l);
                return;
        }
        opened_as(&d->reply, at);
        if (at->described) {
                link_free(l);
                return;
        }
        at->link = l;
        watch_address(d->loop, l);
        count_link(d->loop, l);
}

static void loop_connect_all(void *user, struct io_connect *all, size_t count)
{
        struct dialling *d = mem_zalloc(count * sizeof(*d));
        for (size_t i = 0; i < count; i++) {
                struct io_link *l = d ? mem_zalloc(sizeof(*l)) : NULL;
                if (!l) {
                        all[i].status = SP_E_NOMEM;
                        continue;
                }
                l->lanes.session = all[i].session;
                l->spec = all[i].spec;
                memcpy(l->id, all[i].id, sizeof(l->id));
                memcpy(l->key, all[i].key, sizeof(l->key));
                d[i].loop = user;
                d[i].at = &all[i];
                d[i].link = l;
                /* The last one on this thread. A driver's threads take the signals of the thread that
                 * opens it. */
                d[i].running = i + 1 < count &&
                               thread_start_with_signals(&d[i].thread, dial_run, &d[i]) == 0;
        }
        for (size_t i = 0; d && i < count; i++)
                if (d[i].link && !d[i].running)
                        dial_run(&d[i]);
        for (size_t i = 0; d && i < count; i++)
                if (d[i].link)
                        dial_finish(&d[i]);
        mem_free(d);
}

/* ---- further lanes, and lane 0 again -------------------------------------------------------- */

static void loop_wake(void *user);

struct attach_when {
        uint64_t begin_ns, until_ns;
        bool fresh;
        bool awaited;
        bool describe;
};

static int start_attach(struct client_loop *loop, struct io_link *l, unsigned lane,
                        uint64_t generation, struct attach_when when)
{
        struct attempt *a = mem_zalloc(sizeof(*a));
        if (a && l->spec->address) /* the thread may outlive the link */
                a->address = mem_strdup(l->spec->address);
        if (!a || (l->spec->address && !a->address)) {
                mem_free(a);
                return SP_E_NOMEM;
        }
        a->loop = loop;
        a->attached = &l->attached;
        a->local = l->local;
        a->lane = lane;
        a->begin_ns = when.begin_ns;
        a->until_ns = when.until_ns;
        a->fresh = when.fresh;
        a->awaited = when.awaited;
        a->dial = (struct dial_params){
                .address = a->address,
                .timeout_ms = loop->timeout_ms,
                .role = DIAL_CLIENT,
                .lane = lane,
                .session_id = { l->id[0], l->id[1] },
                .key = { l->key[0], l->key[1] },
                .next_seq = lane ? 0 : session_next_seq(l->lanes.session),
                .generation = generation,
                .name = program_invocation_short_name,
                .share = loop->share,
                .packs = link_can_pack(loop->compression),
                .checks = loop->checks,
        };
        if (when.describe)
                a->dial.devices = &a->devices;
        lock_init(&a->lock);
        condition_init(&a->given_up);
        /* Without memory it takes a round trip more. */
        if (!lane && generation && session_early(l->lanes.session, EARLY_MAX, &a->early) == 0)
                a->dial.early = bytes_of(a->early.data, a->early.size);
        int r = attempt_begin(a);
        if (r < 0) {
                attempt_free(a);
                return r;
        }
        l->attach = a;
        return 0;
}

static const char *loop_reached(void *user, const struct io_link *l)
{
        (void)user;
        return *l->reached ? l->reached : NULL;
}

static uint64_t loop_rate(void *user, const struct io_link *l)
{
        (void)user;
        uint64_t first = link_rate(&l->lanes.links[l->lanes.links[1].conn ? 1 : 0]), wide = 0;
        if (l->local || first == UINT64_MAX)
                return UINT64_MAX;
        for (unsigned lane = 2; lane < SESSION_LANES; lane++) /* these share large transfers */
                wide += link_rate(&l->lanes.links[lane]);
        return wide > first ? wide : first;
}

static int loop_attach(void *user, struct io_link *l, unsigned lane)
{
        l->loop = user;
        return start_attach(user, l, lane, session_generation(l->lanes.session),
                            (struct attach_when){ 0 });
}

/* On a lane thread. */
static void carried(void *user, struct link *link, int status)
{
        struct io_link *l = user;
        spin_kick(&l->loop->spin);
        lanes_rouse(&l->lanes);
        /* Acknowledgements; the other side needs room. */
        if (status >= 0 && session_unsent(l->lanes.session))
                status = link_flush(&l->lanes.links[0], SIZE_MAX, NULL);
        if (l->loop->asleep && lanes_unwatched(&l->lanes))
                loop_wake(l->loop);
        if (status == 0)
                return;
        if (status != SP_E_AGAIN && !l->status)
                l->status = status;
        loop_wake(l->loop);
}

static void take_lock(void *user) LOCK_UNCHECKED
{
        lock_take(user);
}

static void release_lock(void *user) LOCK_UNCHECKED
{
        lock_release(user);
}

/* Lane `up` came up: have a thread move it, and dial the next lane that is wanted. */
static void attach_next(struct io_link *l, unsigned up)
{
        if (!l->wide)
                return;
        if (up > 1)
                lanes_carry(&l->lanes, up,
                            (struct lane_thread_params){ .lock = &l->lock,
                                                         .spin_ns = l->loop->spin_ns,
                                                         .moved = carried,
                                                         .user = l });
        if (up < l->wide && loop_attach(l->loop, l, up + 1) < 0)
                log_debug("client", "%u lanes are enough", up);
}

static void loop_widen(void *user, struct io_link *l, struct lock *lock)
{
        struct client_loop *loop = user;
        unsigned lanes = loop->lanes ? loop->lanes : lane_thread_lanes(loop->remote);
        if (l->wide || lanes < 2 || !l->lanes.links[0].conn ||
            !lane_thread_takes(l->lanes.links[0].conn))
                return;
        l->loop = loop;
        l->wide = lanes;
        l->lock = (struct link_lock){ take_lock, release_lock, lock };
        if (l->lanes.links[1].conn)
                attach_next(l, 1);
}

/* The lane is connected, or could not be. */
static int attach_finish(struct io_link *l)
{
        struct attempt *a = l->attach;
        unsigned lane = a->lane;
        /* The thread still holds the lock for a moment. */
        lock_take(&a->lock);
        int r = a->status;
        struct conn *conn = a->conn;
        a->conn = NULL;
        lock_release(&a->lock);
        atomic_store(&l->attached, false);
        l->attach = NULL;
        if (r >= 0 && a->reply.features & FEATURE_DESCRIPTION) {
                l->opened = a->reply;
                l->devices = a->devices;
                a->devices = (struct hello_devices){ 0 };
                attempt_free(a);
                return 0;
        }
        if (r >= 0)
                r = lane_up(l, lane, conn, &a->reply);
        else
                log_at(lane || attempt_may_work_later(r) ? LOG_INFO : LOG_ERROR, "client", "%s%s",
                       lane > 1 ? "one lane less: " : "", a->reply.text);
        if (r == 0)
                link_pack(&l->lanes.links[lane], a->reply.features, a->loop->compression);
        if (r >= 0 && a->reply.early)
                session_early_sent(l->lanes.session);
        if (a->fresh) {
                l->opened = a->reply;
                memcpy(l->id, a->dial.session_id, sizeof(l->id));
                memcpy(l->key, a->dial.key, sizeof(l->key));
                if (r >= 0 && !l->counted)
                        count_link(a->loop, l);
        } else if (r == 0 && !lane)
                r = session_resume(l->lanes.session, a->dial.generation);
        if (r >= 0 && !lane)
                watch_address(a->loop, l);
        else if (lane && attempt_may_work_later(r))
                r = SP_E_LINK; /* as any connection that is lost: the session goes on over new ones */
        attempt_free(a);
        if (r >= 0 && lane)
                attach_next(l, lane);
        return lane <= 1 ? r : 0;
}

static void attach_abandon(struct io_link *l)
{
        struct attempt *a = l->attach;
        if (!a)
                return;
        attempt_abandon(a);
        atomic_store(&l->attached, false);
        l->attach = NULL;
}

static void disconnect(struct io_link *l)
{
        attach_abandon(l);
        lanes_down(&l->lanes);
        l->more_in = l->more_out = l->quiet = l->there = false;
}

static void loop_halt(void *user, struct io_link *l)
{
        (void)user;
        lanes_halt(&l->lanes);
}

static int loop_reconnect(void *user, struct io_link *l, uint64_t until_ns)
{
        /* So that the server does not take this process for ended. */
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                if (l->lanes.links[lane].conn)
                        conn_reset(l->lanes.links[lane].conn);
        disconnect(l);
        l->status = 0;
        return start_attach(user, l, 0, session_generation(l->lanes.session) + 1,
                            (struct attach_when){ .until_ns = until_ns });
}

static int loop_open(void *user, const struct server_spec *spec, struct session *session,
                     uint64_t at_ns, bool describe, struct io_link **ret)
{
        struct io_link *l = mem_zalloc(sizeof(*l));
        if (!l)
                return SP_E_NOMEM;
        l->lanes.session = session;
        l->spec = spec;
        l->loop = user;
        int r = start_attach(user, l, 0, 0,
                             (struct attach_when){ .begin_ns = at_ns,
                                                   .until_ns = UINT64_MAX,
                                                   .fresh = true,
                                                   .awaited = !at_ns,
                                                   .describe = describe });
        if (r < 0) {
                link_free(l);
                return r;
        }
        *ret = l;
        return 0;
}

static void loop_opened(void *user, struct io_link *l, struct io_connect *ret)
{
        (void)user;
        memcpy(ret->id, l->id, sizeof(ret->id));
        memcpy(ret->key, l->key, sizeof(ret->key));
        opened_as(&l->opened, ret);
        ret->devices = l->devices;
        l->devices = (struct hello_devices){ 0 };
}

static void loop_describe(void *user, const struct io_link *l, char *ret, size_t size)
{
        const struct conn *conn = l->lanes.links[0].conn;
        unsigned lanes = 0, packed = 0;
        (void)user;
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                lanes += l->lanes.links[i].conn != NULL;
                packed += l->lanes.links[i].packer != NULL;
        }
        if (!conn)
                snprintf(ret, size, "not connected");
        else
                snprintf(ret, size, "%s, %s, %u lane%s%s", conn->ops->name,
                         conn->ops->caps & TRANSPORT_ENCRYPTED ? "encrypted" : "not encrypted",
                         lanes, lanes == 1 ? "" : "s", packed ? ", may compress bulk data" : "");
}

static const char *loop_refused(void *user, const struct io_link *l)
{
        (void)user;
        return l->attach ? attempt_refusal(l->attach) : NULL;
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Skip the poll after sending. The answer can't be there yet, and where only the system can tell,
 * asking costs a system call. Not twice in a row: a side that keeps sending has to receive, too. */
static bool is_too_soon(const struct io_link *l)
{
        const struct link *k = &l->lanes.links[0];
        return !l->trusted && !l->there && !l->more_in && k->conn && !k->conn->ops->peek;
}

static int loop_send(void *user, struct io_link *l)
{
        struct client_loop *loop = user;
        uint64_t before = session_get_stats(l->lanes.session)->bytes_sent;
        int result = 0;
        bool news = false; /* wake a sleeping thread: there is more to poll for, or work to do */
        l->more_out = false;
        for (unsigned lane = 0; lane < lanes_used(&l->lanes); lane++) {
                if ((!l->lanes.links[lane].conn && lane) || l->lanes.threads[lane])
                        continue;
                bool blocked = l->lanes.links[lane].blocked;
                int r = link_flush(&l->lanes.links[lane], lane ? LINK_BUDGET : SIZE_MAX, NULL);
                news |= r == SP_E_BUSY || (!blocked && l->lanes.links[lane].blocked);
                if (r == SP_E_BUSY) {
                        l->more_out = true;
                        r = SP_E_AGAIN;
                }
                if (r < 0 && r != SP_E_AGAIN)
                        return r;
                result = r < 0 ? r : result;
        }
        lanes_rouse(&l->lanes);
        if (loop->asleep && (news || lanes_unwatched(&l->lanes)))
                loop_wake(loop);
        if (session_get_stats(l->lanes.session)->bytes_sent != before)
                l->quiet |= is_too_soon(l);
        return result;
}

static bool loop_silent(void *user, struct io_link *l, uint64_t now_ns, uint64_t *next_ns)
{
        (void)user;
        bool silent = lanes_silent(&l->lanes, now_ns) >= 0;
        if (l->lanes.silence_ns && l->lanes.silence_ns < *next_ns)
                *next_ns = l->lanes.silence_ns;
        return silent;
}

static uint64_t received(const struct session *s)
{
        const struct session_stats *stats = session_get_stats(s);
        return stats->bytes_received + stats->bulk_received;
}

/* The link is lost with `status`, but not because of lane 0. The server's last message may be
 * there, which gives the reason: read it. */
static int read_rest(struct io_link *l, int status)
{
        int r = l->lanes.links[0].conn ? link_receive(&l->lanes.links[0], RECEIVE_BUDGET, NULL) : 0;
        return r < 0 && r != SP_E_LINK ? r : status;
}

static int loop_receive(void *user, struct io_link *l)
{
        bool quiet = l->quiet;
        l->quiet = l->there = false;
        l->trusted = quiet;
        l->more_in = false;
        if (l->status < 0)
                return read_rest(l, l->status);
        if (atomic_load(&l->attached)) {
                if (!l->attach->lane && lanes_busy(&l->lanes))
                        return 0; /* soon; the next wait is none */
                int r = attach_finish(l);
                return r < 0 ? read_rest(l, r) : 1; /* there may be something to send on it now */
        }
        if (quiet)
                return 0;
        uint64_t before = received(l->lanes.session);
        for (unsigned lane = 0; lane < lanes_used(&l->lanes); lane++) {
                struct link *k = lanes_own(&l->lanes, lane);
                if (!k)
                        continue;
                int r = link_receive(k, RECEIVE_BUDGET, NULL);
                if (r < 0)
                        return lane ? read_rest(l, r) : r;
                l->more_in |= r > 0;
        }
        if (received(l->lanes.session) == before)
                return 0;
        lanes_rouse(&l->lanes); /* acknowledged messages make room */
        return 1;
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/* Is this thread in the midst of bulk data, in a stream that has it piece by piece? */
static bool bulk_moves(struct io_link *const *links, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (!links[i]->wide && !links[i]->bounce.base &&
                    session_bulk_moves(links[i]->lanes.session))
                        return true;
        return false;
}

/* Seen sooner here than by poll(2). */
static enum spin_also is_woken(void *user)
{
        struct client_loop *loop = user;
        return atomic_load(&loop->woken) ? SPIN_FOUND : SPIN_NOTHING;
}

/* Without the lock, which it takes to end trials before it sleeps. */
static void sleep_in_poll(struct client_loop *loop, struct spin_on *on, bool spin,
                          uint64_t deadline_ns, struct lock *lock) EXCLUDES(*lock)
{
        struct spin *s = spin ? &loop->spin : &loop->still;
        if (spin_poll(s, on))
                return;
        if (on->link_count) {
                lock_take(lock);
                spin_end_trials(on);
                lock_release(lock);
        }
        TRACE_SPAN(sleep, on->count);
        if (spin_sleep(s, on, deadline_ns) < 0)
                for (nfds_t i = 0; i < on->count; i++)
                        on->fds[i].revents = POLLIN; /* interrupted: look at all */
}

/* Addresses have changed: drop connections whose address is gone. Hurry connections that are being
 * made, because they may succeed now. */
static void check_addresses(struct client_loop *loop, struct io_link *const *links, size_t count)
{
        if (!own_address_changed(loop->address_fd))
                return;
        for (size_t i = 0; i < count; i++) {
                struct io_link *l = links[i];
                const struct conn *c = l->lanes.links[0].conn;
                if (c && l->status >= 0 && own_address_may_go(c) && !own_address_is_here(c)) {
                        log_info("client", "%s: this host's address is gone", l->spec->name);
                        l->status = SP_E_LINK;
                }
                if (l->attach)
                        attempt_hurry(l->attach);
        }
}

static void watch_fini(struct watch_list *w)
{
        mem_free(w->fds);
        mem_free(w->conns);
        mem_free(w->trials);
        mem_free(w->first);
}

/* Make room for so many links. */
static int watch_reserve(struct watch_list *w, size_t count)
{
        struct watch_list more = { .room = 2 * count };
        if (count <= w->room)
                return 0;
        more.fds = mem_alloc((2 + 2 * count * LANES_POLL_MAX) * sizeof(*more.fds));
        more.conns = mem_alloc(2 * count * SESSION_LANES * sizeof(*more.conns));
        more.trials = mem_alloc(2 * count * sizeof(*more.trials));
        more.first = mem_alloc((2 * count + 1) * sizeof(*more.first));
        if (!more.fds || !more.conns || !more.trials || !more.first) {
                watch_fini(&more);
                return SP_E_NOMEM;
        }
        watch_fini(w);
        *w = more;
        return 0;
}

static void loop_wait(void *user, struct io_link *const *links, size_t count, bool due,
                      uint64_t deadline_ns, struct lock *lock) REQUIRES(*lock)
{
        struct client_loop *loop = user;
        if (watch_reserve(&loop->watch, count) < 0) {
                count = loop->watch.room;
                deadline_ns = 0; /* the others are looked at again and again */
        }
        struct pollfd *fds = loop->watch.fds;
        struct link **trials = loop->watch.trials;
        nfds_t *first = loop->watch.first;
        struct spin_on on = { .fds = fds, .conns = loop->watch.conns, .links = trials, .due = due };
        fds[on.count++] = (struct pollfd){ .fd = loop->wake_fd, .events = POLLIN };
        fds[on.count++] = (struct pollfd){ .fd = loop->address_fd, .events = POLLIN };
        for (size_t i = 0; i < count; i++) {
                first[i] = on.count;
                if (lanes_poll(&links[i]->lanes, &on) || links[i]->more_in || links[i]->more_out ||
                    atomic_load(&links[i]->attached))
                        deadline_ns = 0;
        }
        first[count] = on.count;
        /* A thread that polls for bulk data in a loop only finds smaller pieces of it. */
        bool spin = !bulk_moves(links, count);
        for (size_t i = 0; i < count && spin && deadline_ns && spin_tries(&loop->spin); i++)
                if (link_try_begin(&links[i]->lanes.links[0]))
                        trials[on.link_count++] = &links[i]->lanes.links[0];
        loop->asleep = true;
        lock_release(lock);
        if (deadline_ns)
                sleep_in_poll(loop, &on, spin, deadline_ns, lock);
        else
                poll(fds, on.count, 0);
        if (fds[0].revents || atomic_load(&loop->woken)) {
                wakeup_clear(loop->wake_fd);
                /* A thread that found it still set meant this wait, which has ended. */
                atomic_store(&loop->woken, false);
        }
        lock_take(lock);
        loop->asleep = false;
        spin_end_trials(&on);
        if (fds[1].revents)
                check_addresses(loop, links, count);
        for (size_t i = 0; i < count; i++) {
                bool something = links[i]->more_in;
                for (unsigned lane = 0; lane < lanes_used(&links[i]->lanes); lane++) {
                        struct link *k = lanes_own(&links[i]->lanes, lane);
                        something |= k && link_polled(k, fds + first[i], first[i + 1] - first[i]);
                }
                links[i]->quiet = !something;
                links[i]->there = something;
        }
}

static void loop_wake(void *user)
{
        struct client_loop *loop = user;
        if (!atomic_exchange(&loop->woken, true))
                wakeup_set(loop->wake_fd);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static uint64_t loop_now(void *user)
{
        return clock_now_ns();
}

static void loop_close(void *user, struct io_link *l, bool after_fork) REQUIRES(l->lock)
{
        if (after_fork) {
                /* The parent's connections and memory, half of it in use by threads that are not here:
                 * only the descriptors are ours. */
                for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                        if (l->lanes.links[lane].conn && l->lanes.links[lane].conn->room_fd >= 0)
                                file_close(
                                        l->lanes.links[lane]
                                                .conn->room_fd); /* of sockets the socket itself */
                return;
        }
        disconnect(l);
        lanes_stop(&l->lanes);
        if (l->wide) {
                link_lock_release(&l->lock);
                lanes_join(&l->lanes);
                link_lock_take(&l->lock);
        }
        link_free(l);
}

static int loop_arena(void *user, struct io_link *l, uint64_t *ret_size)
{
        (void)user;
        return l->lanes.links[0].conn ? arena_storage(l->lanes.links[0].conn, ret_size) : -1;
}

static void loop_random(void *user, void *out, size_t size)
{
        (void)user;
        if (random_fill(out, size))
                return;
        log_error("client", "no random numbers: error %d", errno);
        abort(); /* keys that can be guessed are worse */
}

static void loop_output(void *user, const void *text, size_t size)
{
        (void)user;
        fflush(stdout);
        (void)!file_write_all(FILE_STDOUT, text, size);
}

const struct client_io client_io_loop = {
        .threads = true,
        .now_ns = loop_now,
        .connect = loop_connect_all,
        .attach = loop_attach,
        .reconnect = loop_reconnect,
        .describe = loop_describe,
        .open = loop_open,
        .opened = loop_opened,
        .refused = loop_refused,
        .widen = loop_widen,
        .halt = loop_halt,
        .send = loop_send,
        .silent = loop_silent,
        .receive = loop_receive,
        .wait = loop_wait,
        .wake = loop_wake,
        .close = loop_close,
        .reached = loop_reached,
        .rate = loop_rate,
        .arena = loop_arena,
        .random = loop_random,
        .output = loop_output,
};

int client_io_loop_new(void **ret)
{
        struct client_loop *loop = mem_zalloc(sizeof(*loop));
        if (!loop)
                return SP_E_NOMEM;
        transport_timeout_ms = (unsigned)config_number(CONFIG_client_link_timeout);
        transport_multipath = config_number(CONFIG_client_multipath) == 1;
        tls_by_kernel = config_number(CONFIG_client_ktls) == 0;
        loop->compression = (enum compression_mode)config_number(CONFIG_client_compression);
        loop->checks = (enum checking)config_number(CONFIG_client_checksum);
        loop->share = config_number(CONFIG_client_share) == 1;
        loop->timeout_ms = (int)config_number(CONFIG_connect_timeout);
        loop->wake_fd = wakeup_new();
        if (loop->wake_fd < 0) {
                mem_free(loop);
                return SP_E_LIMIT;
        }
        loop->address_fd = -1;
        if (watch_reserve(&loop->watch, 4) < 0) {
                client_io_loop_free(loop);
                return SP_E_NOMEM;
        }
        loop->lanes = (unsigned)config_number(CONFIG_lanes);
        loop->spin_ns = config_number(CONFIG_client_spin) * 1000;
        spin_init(&loop->spin, loop->spin_ns, 0);
        loop->spin.also = is_woken;
        loop->spin.arg = loop;
        spin_init(&loop->still, 0, 1);
        *ret = loop;
        return 0;
}

void client_io_loop_free(void *user)
{
        struct client_loop *loop = user;
        if (!loop)
                return;
        file_close(loop->wake_fd);
        if (loop->address_fd >= 0)
                file_close(loop->address_fd);
        watch_fini(&loop->watch);
        mem_free(loop);
}
