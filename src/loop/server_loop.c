#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/serving.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"
#include "os/vm.h"
#include "os/wakeup.h"
#include "session/hello.h"
#include "trace/trace.h"
#include "transport/inproc.h"
#include "transport/other_end.h"

#define LOG "server"

enum {
        DIRECT_BULK_MAX = 256 << 10, /* bulk that a completion's thread sends itself */
        EARLY_WAIT_MS = 8000,
        OUTPUT_MAX = 1 << 20, /* bytes of printf text in one message */
        FAREWELL_MS = 1000,
        EMPTY_NS = 1000000000,         /* an empty session lasts so long while spancld drains */
        POLL_MAX = 2 + LANES_POLL_MAX, /* entries of one channel, and ours */
        PROCESS_PAUSE_MIN_NS = 1000000,
        PROCESS_PAUSE_MAX_NS = 1000000000,
        LANE_PAUSE_MAX_NS = 200000000,
};

/* ---- the engine's calls: any thread, lock held ---------------------------------------------- */

void serving_flush(void *user, struct session *s) LOCK_UNCHECKED
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        if (!c)
                return;
        lanes_rouse(&c->lanes);
        if (serving_on_thread(l)) {
                /* Else it sends when it has received all that is there. */
                if (l->completions.polls && link_can_send(&c->lanes.links[0]))
                        (void)!link_flush(&c->lanes.links[0], LINK_BUDGET, NULL);
                return; /* losses are for flush_all, and silence for check_silence */
        }
        bool more = false;
        for (unsigned lane = 0; lane < session_lanes_used(s); lane++) {
                struct link *k = lanes_own(&c->lanes, lane);
                if (!k)
                        continue;
                if (!k->blocked)
                        more |= link_flush(k, lane ? DIRECT_BULK_MAX : SIZE_MAX, NULL) != 0;
                more |= k->waiting; /* the place it waits for may be there now */
        }
        if (more || lanes_unwatched(&c->lanes))
                serving_rouse(l);
}

static void on_output(void *user, struct buf *text) LOCK_UNCHECKED
{
        struct server_loop *l = user;
        for (size_t got = 0; got < OUTPUT_MAX;) {
                uint8_t chunk[16 << 10];
                int64_t n = file_read(l->params.output_fd, chunk, sizeof(chunk));
                if (n <= 0)
                        return;
                if (buf_put(text, chunk, (size_t)n) < 0) {
                        log_error(LOG, "out of memory: text that kernels printed is lost");
                        return;
                }
                got += (size_t)n;
        }
}

static int on_map_arena(void *user, uint64_t offset, size_t size, uint64_t *ret_address)
{
        struct server_loop *l = user;
        if (l->arena.fd < 0 || offset > l->arena.size || size > l->arena.size - offset)
                return SP_E_NOENT;
        return vm_map_file(l->arena.fd, offset, size, ret_address);
}

static void *on_bounce(void *user, uint64_t *ret_size)
{
        const struct server_loop *l = user;
        *ret_size = l->arena.bounce.size;
        return l->arena.bounce.base;
}

static uint64_t on_now(void *user)
{
        (void)user;
        return clock_now_ns();
}

static void on_broken(void *user, const char *text)
{
        struct server_loop *l = user;
        atomic_store(&l->broken, true);
        server_loop_stop(l, text);
}

static const struct engine_ops ops_silent = {
        .flush = serving_flush,
        .dial = peering_dial,
        .hang_up = peering_hang_up,
        .relayed = peering_relayed,
        .map_arena = on_map_arena,
        .bounce = on_bounce,
        .pass = peering_pass,
        .take = peering_take,
        .broken = on_broken,
        .now_ns = on_now,
};
static const struct engine_ops ops_output = {
        .flush = serving_flush,
        .dial = peering_dial,
        .hang_up = peering_hang_up,
        .relayed = peering_relayed,
        .output = on_output,
        .map_arena = on_map_arena,
        .bounce = on_bounce,
        .pass = peering_pass,
        .take = peering_take,
        .broken = on_broken,
        .now_ns = on_now,
};

/* ---- the loop ------------------------------------------------------------------------------- */

/* Take the losses that lane threads found. */
static void take_losses(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned lane = 1; lane < session_lanes_used(c->lanes.session); lane++) {
                        int status = c->broken[lane];
                        c->broken[lane] = 0;
                        if (status < 0)
                                channel_lost(l, c, lane, status);
                }
        }
}

/* After all is sent, and before the thread sleeps. True: a connection was dropped, so do not sleep. */
static bool check_silence(struct server_loop *l, uint64_t now) REQUIRES(l->lock, engine_held)
{
        bool dropped = false;
        list_each(c, &l->channels, struct channel, link)
        {
                int lane = lanes_silent(&c->lanes, now);
                if (lane < 0)
                        continue;
                log_warn(
                        LOG,
                        "%s: its host acknowledges nothing for %u ms (--link-timeout): the session drops the connection",
                        c == l->client ? "the client" : "a peer", transport_timeout_ms);
                channel_lost(l, c, (unsigned)lane, SP_E_LINK);
                dropped = true;
        }
        return dropped;
}

/* The client owes only the rest of what it has begun, since it may not listen for hours. Another server listens. */
static void tick(struct server_loop *l, uint64_t now) REQUIRES(l->lock, engine_held)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (!l->answer_ns || !c->lanes.links[0].conn)
                        continue;
                bool client = c == l->client;
                int r = session_tick(c->lanes.session,
                                     client ? SESSION_EXPECTS_NOTHING : SESSION_EXPECTS_ACKS,
                                     l->answer_ns, now);
                if (r == 0)
                        continue;
                log_warn(LOG,
                         "%s: %s for %llu ms (--answer-timeout): the session drops the connection",
                         client ? "the client" : "a peer", session_overdue(c->lanes.session),
                         (unsigned long long)(l->answer_ns / 1000000));
                channel_lost(l, c, 0, r);
        }
}

/* Of all channels. */
static unsigned most_lanes(const struct server_loop *l)
{
        unsigned most = 0;
        list_each(c, &l->channels, struct channel, link)
        {
                unsigned used = lanes_used(&c->lanes);
                most = used > most ? used : most;
        }
        return most;
}

/* Send what there is, messages before bulk. True: more can be sent at once. */
static bool flush_all(struct server_loop *l, bool bulk) REQUIRES(l->lock, engine_held)
{
        bool more = false;
        unsigned lanes = bulk ? most_lanes(l) : 1;
        for (unsigned lane = 0; lane < lanes; lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        struct link *k = lanes_own(&c->lanes, lane);
                        if (!k || k->blocked)
                                continue;
                        const struct session_stats *stats = session_get_stats(c->lanes.session);
                        uint64_t sent = stats->bulk_sent;
                        int r = link_flush(k, LINK_BUDGET, &l->lock);
                        if (stats->bulk_sent != sent)
                                engine_settle(l->engine); /* a transfer may have ended */
                        if (r == SP_E_BUSY)
                                more = true;
                        else if (r < 0 && r != SP_E_AGAIN)
                                channel_lost(l, c, lane, r);
                }
        }
        if (bulk)
                list_each(c, &l->channels, struct channel, link) lanes_rouse(&c->lanes);
        return more;
}

static void receive(struct server_loop *l, struct channel *c, unsigned lane)
        REQUIRES(l->lock, engine_held)
{
        int r = link_receive(&c->lanes.links[lane], LINK_BUDGET, &l->lock);
        engine_settle(l->engine);
        if (r < 0)
                channel_lost(l, c, lane, r);
        if (c == l->client && !lane && engine_closed(l->engine))
                serving_end(l, 0, "closed by the client");
}

/* Text that came without a completion behind it. */
static void take_output(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        auto_clean(buf_fini) struct buf text = { 0 };
        on_output(l, &text);
        if (text.size && session_send(engine_session(l->engine), output,
                                      .text = bytes_of(text.data, text.size)) < 0)
                log_warn(LOG, "text that kernels printed is lost");
}

static bool wants_output(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        return l->params.output_fd >= 0 && session_has_room(engine_session(l->engine));
}

/* Make room for the entries of one more channel, and ours. */
static int watch_more(struct server_loop *l)
{
        struct spin_on *on = &l->watch.on;
        size_t cap = 2 * l->watch.cap + POLL_MAX;
        struct pollfd *fds = mem_realloc(on->fds, cap * sizeof(*fds));
        on->fds = fds ? fds : on->fds;
        struct conn **conns = mem_realloc(on->conns, cap * sizeof(*conns));
        on->conns = conns ? conns : on->conns;
        struct link **links = mem_realloc(on->links, cap * sizeof(*links));
        on->links = links ? links : on->links;
        if (!fds || !conns || !links)
                return SP_E_NOMEM;
        l->watch.cap = cap;
        return 0;
}

/* Fill in the descriptors to poll; entry 0 is the mailbox, entry 1 the output. Returns 1 if there
 * is something to do at once: a thread left work while the lock was released for another lane, and
 * did not wake this one. Else 0 or SP_E_NOMEM. */
static int collect(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        struct spin_on *on = &l->watch.on;
        int ready = 0;
        on->fds[0] = (struct pollfd){ .fd = l->box->wake_fd, .events = POLLIN };
        on->fds[1] = (struct pollfd){ .fd = wants_output(l) ? l->params.output_fd : -1,
                                      .events = POLLIN };
        on->count = 2;
        on->conn_count = 0;
        list_each(c, &l->channels, struct channel, link)
        {
                if (on->count + LANES_POLL_MAX > l->watch.cap && watch_more(l) < 0)
                        return SP_E_NOMEM;
                for (unsigned lane = 0; lane < lanes_used(&c->lanes); lane++) {
                        const struct link *k = lanes_own(&c->lanes, lane);
                        ready |= c->broken[lane] < 0 || (k && link_can_send(k));
                }
                ready |= lanes_poll(&c->lanes, on);
        }
        return ready;
}

static void serve(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        unsigned lanes = most_lanes(l);
        for (unsigned lane = 0; lane < lanes; lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        struct link *k = lanes_own(&c->lanes, lane);
                        if (!k)
                                continue;
                        unsigned can = link_polled(k, l->watch.on.fds + 2, l->watch.on.count - 2);
                        if (can & CONN_OUT)
                                k->blocked = false;
                        if (can & CONN_IN && !l->over)
                                receive(l, c, lane);
                }
                if (!lane)
                        flush_all(l, false);
        }
}

/* Notify the client that the session ends. */
static void begin_farewell(struct server_loop *l, int status, const char *text)
        REQUIRES(l->lock, engine_held)
{
        if (l->farewell.until_ns != UINT64_MAX)
                return;
        l->farewell.until_ns = clock_now_ns() + FAREWELL_MS * 1000000ull;
        l->farewell.status = status;
        snprintf(l->farewell.text, sizeof(l->farewell.text), "%s", text);
        if (!l->attach.claimed || session_send(engine_session(l->engine), close, .status = status,
                                               .text = bytes_str(text)) < 0)
                serving_end(l, status, "%s", text);
}

/* Does the session hold nothing that its client has made? */
static bool is_empty(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        struct engine_counts n;
        engine_get_counts(l->engine, &n);
        return !(n.objects | n.events | n.transfers | n.commands_held | n.commands_running);
}

/* spancld drains: notify the client. A session in which nothing is or comes for EMPTY_NS ends: its client may never
 * look at its connection again. */
static void drain(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        static const char text[] =
                "it drains: it takes no new sessions, and ends with the last one";
        if (!atomic_load(&l->drain.due) || !l->attach.claimed || l->farewell.until_ns != UINT64_MAX)
                return;
        if (l->drain.understood && !l->drain.announced)
                l->drain.announced = session_send(engine_session(l->engine), drain,
                                                  .text = bytes_str(text)) == 0;
        uint64_t now = clock_now_ns();
        if (!is_empty(l))
                l->drain.until_ns = UINT64_MAX;
        else if (l->drain.until_ns == UINT64_MAX)
                l->drain.until_ns = now + EMPTY_NS;
        else if (now >= l->drain.until_ns)
                begin_farewell(l, SP_E_GONE,
                               "the server drains, and the session had nothing there");
}

/* After the order to stop: notify the client, and wait until it closes the connection. If this side
 * closed first, with unread bytes of the client, the last message would be lost (RFC 1122,
 * 4.2.2.13). */
static void farewell(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        char text[256];
        bool stop = false;
        if (atomic_load(&l->box->full)) {
                lock_take(&l->box->lock);
                stop = l->box->stop;
                if (stop)
                        memcpy(text, l->box->stop_text, sizeof(text));
                lock_release(&l->box->lock);
        }
        if (stop)
                begin_farewell(l, SP_E_GONE, text);
        if (l->farewell.until_ns == UINT64_MAX)
                return;
        struct link *k = l->client ? &l->client->lanes.links[0] : NULL;
        if (k && k->conn && !k->blocked)
                (void)!link_flush(k, SIZE_MAX, NULL);
        if (!k || !k->conn || clock_now_ns() >= l->farewell.until_ns)
                serving_end(l, l->farewell.status, "%s", l->farewell.text);
}

/* The session has taken more than it may have. */
static void expire(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        uint64_t deadline = engine_deadline(l->engine);
        if (deadline == UINT64_MAX || deadline > clock_now_ns() ||
            l->farewell.until_ns != UINT64_MAX)
                return;
        int r = engine_expire(l->engine, clock_now_ns());
        if (r < 0)
                begin_farewell(l, r, "a command ran for longer than this server allows");
}

/* May it still turn out that the client's process has ended? */
static bool is_asked(const struct server_loop *l)
{
        return (l->process.fd >= 0 || l->process.conn) && !l->process.ended;
}

static uint64_t next_deadline(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        uint64_t d = l->linger_ns < l->farewell.until_ns ? l->linger_ns : l->farewell.until_ns;
        if (l->linger_ns != UINT64_MAX && is_asked(l) && l->process.ask_ns < d)
                d = l->process.ask_ns;
        uint64_t engine = engine_deadline(l->engine);
        if (l->farewell.until_ns == UINT64_MAX) {
                d = engine < d ? engine : d;
                d = l->drain.until_ns < d ? l->drain.until_ns : d;
        }
        list_each(a, &l->early, struct arrival, link)
        {
                if (a->deadline_ns < d)
                        d = a->deadline_ns;
        }
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->lanes.links[0].conn && session_deadline(c->lanes.session) < d)
                        d = session_deadline(c->lanes.session);
                if (c->lanes.silence_ns && c->lanes.silence_ns < d)
                        d = c->lanes.silence_ns;
                if (c->target && c->target->again_ns < d)
                        d = c->target->again_ns;
                if (c->target && c->target->report_ns < d)
                        d = c->target->report_ns;
        }
        return d;
}

static enum spin_also poll_completions(void *loop)
{
        struct server_loop *l = loop;
        l->completions.polls = true;
        enum backend_polled r = engine_poll(l->engine, false);
        l->completions.polls = false;
        if (r != BACKEND_IDLE && !atomic_load_explicit(&l->completions.looks, memory_order_relaxed))
                atomic_store_explicit(&l->completions.looks, true, memory_order_relaxed);
        return r == BACKEND_REPORTED ? SPIN_FOUND : r == BACKEND_WAITING ? SPIN_SOON : SPIN_NOTHING;
}

/* With the lock, which is then released while it spins. */
static void begin_trials(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        if (!spin_tries(&l->spin))
                return;
        list_each(c, &l->channels, struct channel, link)
        {
                if (link_try_begin(&c->lanes.links[0]))
                        l->watch.on.links[l->watch.on.link_count++] = &c->lanes.links[0];
        }
}

/* Without the engine's lock. */
static int poll_once(const struct spin_on *on)
{
        int n = poll(on->fds, on->count, 0);
        return n ? n : spin_peek(on->conns, on->conn_count);
}

static int sleep_in_poll(struct server_loop *l, uint64_t deadline) EXCLUDES(l->lock, engine_held)
{
        struct spin_on *on = &l->watch.on;
        int n = spin_poll(&l->spin, on);
        if (n)
                return n;
        if (on->link_count) {
                serving_lock(l);
                spin_end_trials(&l->watch.on);
                serving_unlock(l);
        }
        atomic_store(&l->completions.sleeps, true);
        if (l->spin.also)
                engine_poll(l->engine, true);
        TRACE_SPAN(poll, on->count);
        n = spin_sleep(&l->spin, on, deadline);
        atomic_store(&l->completions.sleeps, false);
        /* The loop's thread notices the completion of commands submitted from now on. So no other
         * thread has to be woken. */
        if (l->spin.also)
                poll_completions(l);
        return n;
}

/* A process closes its connections a little before it has ended, one after another. */
static void ask_for_process(struct server_loop *l, uint64_t now) REQUIRES(l->lock, engine_held)
{
        struct pollfd p = { .fd = l->process.fd, .events = POLLIN };
        if (!is_asked(l) || now < l->process.ask_ns)
                return;
        l->process.ended = (p.fd >= 0 && poll(&p, 1, 0) == 1) ||
                           (l->process.conn && conn_was_closed(l->process.conn));
        if (l->process.ended)
                log_info(LOG, "the client's process has ended");
        if (l->process.ended || l->process.pause_ns > LANE_PAUSE_MAX_NS)
                l->process.conn = conn_close(l->process.conn);
        l->process.ask_ns = now + l->process.pause_ns;
        if (l->process.pause_ns < PROCESS_PAUSE_MAX_NS)
                l->process.pause_ns *= 2;
}

/* However lane 0 came to be down, it is waited for as long as `linger` says: also when its connection was lost
 * before it was attached, the first one or a later one. */
static void await_client(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        if (!l->attach.attached || (l->client && l->client->lanes.links[0].conn)) {
                l->linger_ns = UINT64_MAX;
                return;
        }
        uint64_t now = clock_now_ns();
        if (l->linger_ns == UINT64_MAX) {
                l->linger_ns = now + serving_option(l, CONFIG_linger) * 1000000000;
                l->process.ask_ns = now;
                l->process.pause_ns = PROCESS_PAUSE_MIN_NS;
        }
        ask_for_process(l, now);
        uint64_t at = now + serving_option(l, CONFIG_linger_ended) * 1000000000;
        if (l->process.ended && at < l->linger_ns)
                l->linger_ns = at;
        if (now >= l->linger_ns)
                serving_end(l, SP_E_GONE,
                            l->process.ended ? "the client's process has ended"
                                             : "the client did not come back");
}

/* Leave the lock to threads that ask for it, for a while at most. The mutex would not: it goes to the thread that is
 * awake, and a driver whose queue is full holds this one up in each command. */
static void give_way(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        enum { YIELDS = 1000 };
        serving_unlock(l);
        unsigned n = 0;
        do
                thread_yield();
        while (n++ < YIELDS && atomic_load_explicit(&l->queries, memory_order_relaxed));
        serving_lock(l);
}

static void *loop_thread(void *arg)
{
        struct server_loop *l = arg;
        thread_name("spancl-loop");
        serving_lock(l);
        l->self = thread_self();
        l->running = true;
        for (;;) {
                atomic_store_explicit(&l->life.answered,
                                      atomic_load_explicit(&l->life.asked, memory_order_relaxed),
                                      memory_order_relaxed);
                take_losses(l);
                attaching_take(l);
                peering_see_to(l);
                expire(l);
                uint64_t now = clock_now_ns();
                tick(l, now);
                drain(l);
                bool more = flush_all(l, true);
                farewell(l);
                more |= check_silence(l, now);
                await_client(l);
                int r = l->over ? 0 : collect(l);
                if (r < 0)
                        serving_end(l, SP_E_NOMEM, "out of memory");
                if (l->over)
                        break;
                more |= r > 0;
                if (l->replacing || atomic_load_explicit(&l->queries, memory_order_relaxed)) {
                        give_way(l);
                        continue;
                }
                uint64_t deadline = next_deadline(l);
                l->asleep = l->polling = true;
                begin_trials(l);
                serving_unlock(l);
                bool announced = l->spin.also && poll_completions(l) == SPIN_FOUND;
                int n = more || announced ? poll_once(&l->watch.on) : sleep_in_poll(l, deadline);
                serving_lock(l);
                l->asleep = l->polling = false;
                spin_end_trials(&l->watch.on);
                /* A link is due for reading, though poll(2) finds nothing, when a send on it failed. */
                if (n < 0 || (!n && r <= 0))
                        continue;
                if (l->watch.on.fds[0].revents)
                        wakeup_clear(l->box->wake_fd);
                if (l->watch.on.fds[1].revents)
                        take_output(l);
                serve(l);
        }
        flush_all(l, false);
        list_each(c, &l->channels, struct channel, link) channel_down(c);
        serving_unlock(l);
        log_info(LOG, "the session is over: %s", l->end.text);
        if (l->params.ended)
                l->params.ended(l->params.user,
                                atomic_load(&l->broken) ? SP_E_NODEV : l->end.status, l->end.text);
        return NULL;
}

/* ---- public --------------------------------------------------------------------------------- */

static void lock_engine(void *user) ACQUIRE(engine_held)
{
        engine_lock(user);
}

static void unlock_engine(void *user) RELEASE(engine_held)
{
        engine_unlock(user);
}

int server_loop_new(const struct server_loop_params *params, struct server_loop **ret)
{
        struct server_loop *l = mem_zalloc(sizeof(*l));
        if (!l) {
                if (params->output_fd >= 0)
                        file_close(params->output_fd);
                return SP_E_NOMEM;
        }
        l->params = *params;
        l->linger_ns = l->farewell.until_ns = l->drain.until_ns = UINT64_MAX;
        l->arena.fd = l->process.fd = -1;
        l->answer_ns = serving_option(l, CONFIG_answer_timeout) * 1000000;
        l->spin_ns = serving_option(l, CONFIG_spin) * 1000;
        spin_init(&l->spin, l->spin_ns, 0);
        /* A loop that does not spin, or yields, leaves completions to the backend's threads. */
        if (l->spin.max_ns && !l->spin.yields) {
                l->spin.also = poll_completions;
                l->spin.arg = l;
        }
        list_init(&l->channels);
        list_init(&l->early);
        int r = watch_more(l);
        if (!r)
                r = box_new(&l->box);
        if (!r && params->output_fd >= 0 && !file_never_wait(params->output_fd))
                r = SP_E_INVAL;
        if (!r)
                r = engine_new(
                        &(struct engine_params){
                                .backend = params->backend,
                                .options = params->options,
                                .scratch_dir = params->scratch_dir,
                                .cache_dir = params->cache_dir,
                                .upload_dir = params->upload_dir,
                                .limits = params->limits,
                                .in_process = params->in_process,
                                .ops = params->output_fd < 0 ? &ops_silent : &ops_output,
                                .user = l,
                        },
                        &l->engine);
        if (!r) {
                l->lock = (struct link_lock){ lock_engine, unlock_engine, l->engine };
                r = thread_start(&l->thread, false, loop_thread, l);
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
static void lane_threads_end(struct server_loop *l) EXCLUDES(l->lock, engine_held)
{
        if (!l->engine)
                return;
        serving_lock(l);
        list_each(c, &l->channels, struct channel, link)
        {
                lanes_stop(&c->lanes);
        }
        serving_unlock(l);
        list_each(c, &l->channels, struct channel, link)
        {
                lanes_join(&c->lanes);
        }
}

struct server_loop *server_loop_free(struct server_loop *l)
{
        if (!l)
                return NULL;
        if (l->started) {
                serving_lock(l);
                serving_end(l, SP_E_GONE, "the server ends");
                serving_unlock(l);
                box_wake(l->box);
                thread_join(l->thread);
        }
        if (l->box) {
                lock_take(&l->box->lock);
                l->box->closed = true;
                lock_release(&l->box->lock);
        }
        lane_threads_end(l);
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
                file_close(l->params.output_fd);
        mem_free(l->watch.on.fds);
        mem_free(l->watch.on.conns);
        mem_free(l->watch.on.links);
        if (l->arena.fd >= 0)
                file_close(l->arena.fd);
        serving_know_process(l, -1);
        arena_unmap_bounce(&l->arena.bounce);
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

/* Wait until the thread uses no conn, and keep it from polling until replace_end. */
static void replace_begin(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        l->replacing++;
        while (l->polling) {
                box_wake(l->box);
                serving_unlock(l);
                thread_yield();
                serving_lock(l);
        }
}

static void replace_end(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        l->replacing--;
        serving_rouse(l);
}

int server_loop_connect(struct server_loop *l, const struct dial_params *p, struct conn **ret,
                        struct dial_reply *reply)
{
        struct conn *pair[2];
        const char *text = NULL;
        struct session *s;
        *reply = (struct dial_reply){ .sent_ns = clock_now_ns() };
        struct wire_hello m = dial_hello(p);
        int r = inproc_pair(p->lane > 0, pair);
        if (r < 0) {
                snprintf(reply->text, sizeof(reply->text), "in-process: %s", status_text(r));
                return r;
        }
        serving_lock(l);
        replace_begin(l);
        r = attaching_admit(l, &m, &s, &text);
        if (!r)
                r = attaching_attach(l, &m, s, pair[1], reply);
        else
                conn_close(pair[1]);
        replace_end(l);
        serving_unlock(l);
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
        lock_take(&l->box->lock);
        l->box->stop = true;
        atomic_store(&l->box->full, true);
        snprintf(l->box->stop_text, sizeof(l->box->stop_text), "%s", text);
        lock_release(&l->box->lock);
        box_wake(l->box);
}

void server_loop_drain(struct server_loop *l)
{
        atomic_store(&l->drain.due, true);
        box_wake(l->box);
}

void server_loop_load(struct server_loop *l, uint64_t sessions)
{
        engine_set_load(l->engine, sessions);
}

void server_loop_share(struct server_loop *l, bool shared)
{
        spin_share(&l->spin, shared);
}

/* serving_lock for a thread that asks for something: the loop's thread gives way. False: it has not for a second,
 * because a driver holds it up, perhaps for ever. */
static bool query_lock(struct server_loop *l) TRY_ACQUIRE(true, l->lock, engine_held) LOCK_UNCHECKED
{
        enum { PATIENCE_MS = 1000, PAUSE_US = 50 };
        uint64_t until = clock_now_ns() + PATIENCE_MS * 1000000ull;
        bool have = engine_try_lock(l->engine);
        atomic_fetch_add(&l->queries, 1);
        while (!have && clock_now_ns() < until) {
                thread_sleep(PAUSE_US * 1000ull);
                have = engine_try_lock(l->engine);
        }
        atomic_fetch_sub(&l->queries, 1);
        return have;
}

int server_loop_stats(struct server_loop *l, struct buf *ret)
{
        if (!query_lock(l))
                return SP_E_TIMEOUT;
        const struct conn *c = l->client ? l->client->lanes.links[0].conn : NULL;
        int r = engine_get_usage(l->engine, c ? conn_round_trip(c) : 0, ret);
        if (!r)
                r = engine_get_links(l->engine, ret);
        serving_unlock(l);
        return r;
}

void server_loop_use_account(struct server_loop *l, const struct account *a)
{
        serving_lock(l);
        engine_use_account(l->engine, a);
        serving_unlock(l);
}

void server_loop_use_energy(struct server_loop *l, uint64_t sample, struct bytes uses)
{
        engine_use_energy(l->engine, sample, uses);
}

int server_loop_times(struct server_loop *l, struct buf *ret)
{
        return engine_put_times(l->engine, ret);
}

unsigned server_loop_devices(struct server_loop *l)
{
        return engine_device_count(l->engine);
}

int server_loop_describe(struct server_loop *l, struct buf *ret)
{
        serving_lock(l);
        int r = engine_describe(l->engine, ret);
        serving_unlock(l);
        return r;
}

bool server_loop_label(struct server_loop *l, unsigned device, unsigned *ret_number, char *ret_name,
                       size_t size)
{
        return engine_device_label(l->engine, device, ret_number, ret_name, size);
}

bool server_loop_is_alive(struct server_loop *l)
{
        unsigned asked = atomic_load_explicit(&l->life.asked, memory_order_relaxed);
        if (atomic_load_explicit(&l->life.answered, memory_order_relaxed) != asked)
                return false;
        atomic_store_explicit(&l->life.asked, asked + 1, memory_order_relaxed);
        box_wake(l->box);
        return true;
}
