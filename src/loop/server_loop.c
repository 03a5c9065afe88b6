#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/serving.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/vm.h"
#include "session/hello.h"
#include "trace/trace.h"

#define LOG "server"

enum {
        DIRECT_BULK_MAX = 256 << 10, /* bulk that a completion's thread sends itself */
        EARLY_WAIT_MS = 8000,
        OUTPUT_MAX = 1 << 20, /* bytes of printf text in one message */
        FAREWELL_MS = 1000,
        POLL_MAX = 2 + 2 * SESSION_LANES, /* entries of one channel, and ours */
};

/* ---- the engine's calls: any thread, lock held ---------------------------------------------- */

void serving_flush(void *user, struct session *s)
{
        struct server_loop *l = user;
        struct channel *c = channel_of(l, s);
        if (!c)
                return;
        lane_threads_rouse(c->lane_threads, s);
        if (serving_on_thread(l)) {
                /* Else it sends when it has received all that is there. */
                if (l->completions.polls && link_can_send(&c->lanes[0]))
                        (void)!link_flush(&c->lanes[0], LINK_BUDGET, NULL);
                return; /* losses are for flush_all */
        }
        bool more = false;
        for (unsigned lane = 0; lane < session_lanes_used(s); lane++) {
                struct link *k = &c->lanes[lane];
                if (!k->conn || c->lane_threads[lane])
                        continue;
                if (!k->blocked)
                        more |= link_flush(k, lane ? DIRECT_BULK_MAX : SIZE_MAX, NULL) != 0;
                more |= k->waiting; /* the place it waits for may be there now */
        }
        if (more)
                serving_rouse(l);
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
        .broken = on_broken,
        .now_ns = on_now,
};

/* ---- the loop ------------------------------------------------------------------------------- */

/* Take the losses that lane threads found. */
static void take_losses(struct server_loop *l)
{
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned lane = 1; lane < session_lanes_used(c->session); lane++) {
                        int status = c->broken[lane];
                        c->broken[lane] = 0;
                        if (status < 0)
                                channel_lost(l, c, lane, status);
                }
        }
}

/* The client owes only the rest of what it has begun, since it may not listen for hours. Another server listens. */
static void tick(struct server_loop *l)
{
        uint64_t now = l->answer_ns ? clock_now_ns() : 0;
        list_each(c, &l->channels, struct channel, link)
        {
                if (!now || !c->lanes[0].conn)
                        continue;
                bool client = c == l->client;
                int r = session_tick(c->session,
                                     client ? SESSION_EXPECTS_NOTHING : SESSION_EXPECTS_ACKS,
                                     l->answer_ns, now);
                if (r == 0)
                        continue;
                log_warn(LOG, "%s: %s for %llu ms: the session drops the connection",
                         client ? "the client" : "a peer", session_overdue(c->session),
                         (unsigned long long)(l->answer_ns / 1000000));
                channel_lost(l, c, 0, r);
        }
}

/* Of all channels. */
static unsigned lanes_used(const struct server_loop *l)
{
        unsigned most = 0;
        list_each(c, &l->channels, struct channel, link)
        {
                unsigned used = session_lanes_used(c->session);
                most = used > most ? used : most;
        }
        return most;
}

/* Send what there is, messages before bulk. True: more can be sent at once. */
static bool flush_all(struct server_loop *l, bool bulk)
{
        bool more = false;
        unsigned lanes = bulk ? lanes_used(l) : 1;
        for (unsigned lane = 0; lane < lanes; lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        struct link *k = &c->lanes[lane];
                        if (!k->conn || k->blocked || c->lane_threads[lane])
                                continue;
                        const struct session_stats *stats = session_get_stats(c->session);
                        uint64_t sent = stats->bulk_sent;
                        int r = link_flush(k, LINK_BUDGET, &l->unlock);
                        if (stats->bulk_sent != sent)
                                engine_settle(l->engine); /* a transfer may have ended */
                        if (r == SP_E_BUSY)
                                more = true;
                        else if (r < 0 && r != SP_E_AGAIN)
                                channel_lost(l, c, lane, r);
                }
        }
        if (bulk)
                list_each(c, &l->channels, struct channel, link)
                        lane_threads_rouse(c->lane_threads, c->session);
        return more;
}

static void receive(struct server_loop *l, struct channel *c, unsigned lane)
{
        int r = link_receive(&c->lanes[lane], LINK_BUDGET, &l->unlock);
        engine_settle(l->engine);
        if (r < 0)
                channel_lost(l, c, lane, r);
        if (c == l->client && !lane && engine_closed(l->engine))
                serving_end(l, 0, "closed by the client");
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

/* Fill in the descriptors to poll; entry 0 is the mailbox, entry 1 the output. Returns 1 if there
 * is something to do at once: a thread left work while the lock was released for another lane, and
 * did not wake this one. Else 0 or SP_E_NOMEM. */
static int collect(struct server_loop *l, size_t *ret_count)
{
        size_t n = 2;
        int ready = 0;
        l->watch.conn_count = 0;
        l->watch.fds[0] = (struct pollfd){ .fd = l->box->wake_fd, .events = POLLIN };
        l->watch.fds[1] = (struct pollfd){ .fd = wants_output(l) ? l->params.output_fd : -1,
                                           .events = POLLIN };
        list_each(c, &l->channels, struct channel, link)
        {
                if (n + 2 * SESSION_LANES > l->watch.fd_cap) {
                        size_t cap = l->watch.fd_cap * 2;
                        struct pollfd *more = mem_realloc(l->watch.fds, cap * sizeof(*more));
                        if (!more)
                                return SP_E_NOMEM;
                        l->watch.fds = more;
                        struct conn **conns = mem_realloc(l->watch.conns, cap * sizeof(*conns));
                        if (!conns)
                                return SP_E_NOMEM;
                        l->watch.conns = conns;
                        struct link **trials = mem_realloc(l->watch.trials, cap * sizeof(*trials));
                        if (!trials)
                                return SP_E_NOMEM;
                        l->watch.trials = trials;
                        l->watch.fd_cap = cap;
                }
                for (unsigned lane = 0; lane < session_lanes_used(c->session); lane++) {
                        ready |= c->broken[lane] < 0;
                        if (c->lane_threads[lane])
                                continue;
                        ready |= link_can_send(&c->lanes[lane]) || link_is_due(&c->lanes[lane]);
                        int added = link_poll(&c->lanes[lane], &l->watch.fds[n]);
                        if (added && c->lanes[lane].conn->ops->peek)
                                l->watch.conns[l->watch.conn_count++] = c->lanes[lane].conn;
                        n += (size_t)added;
                }
        }
        *ret_count = n;
        return ready;
}

static void serve(struct server_loop *l, size_t count)
{
        unsigned lanes = lanes_used(l);
        for (unsigned lane = 0; lane < lanes; lane++) {
                list_each(c, &l->channels, struct channel, link)
                {
                        if (c->lane_threads[lane])
                                continue;
                        struct link *k = &c->lanes[lane];
                        unsigned can = link_polled(k, l->watch.fds + 2, count - 2);
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

/* After the order to stop: notify the client, and wait until it closes the connection. If this side
 * closed first, with unread bytes of the client, the last message would be lost (RFC 1122,
 * 4.2.2.13). */
static void farewell(struct server_loop *l)
{
        char text[256];
        bool stop = false;
        if (atomic_load(&l->box->full)) {
                pthread_mutex_lock(&l->box->lock);
                stop = l->box->stop;
                if (stop)
                        memcpy(text, l->box->stop_text, sizeof(text));
                pthread_mutex_unlock(&l->box->lock);
        }
        if (stop)
                begin_farewell(l, SP_E_GONE, text);
        if (l->farewell.until_ns == UINT64_MAX)
                return;
        struct link *k = l->client ? &l->client->lanes[0] : NULL;
        if (k && k->conn && !k->blocked)
                (void)!link_flush(k, SIZE_MAX, NULL);
        if (!k || !k->conn || clock_now_ns() >= l->farewell.until_ns)
                serving_end(l, l->farewell.status, "%s", l->farewell.text);
}

/* The session has taken more than it may have. */
static void expire(struct server_loop *l)
{
        uint64_t deadline = engine_deadline(l->engine);
        if (deadline == UINT64_MAX || deadline > clock_now_ns() ||
            l->farewell.until_ns != UINT64_MAX)
                return;
        int r = engine_expire(l->engine, clock_now_ns());
        if (r < 0)
                begin_farewell(l, r, "a command ran for longer than this server allows");
}

static uint64_t next_deadline(struct server_loop *l)
{
        uint64_t d = l->linger_ns < l->farewell.until_ns ? l->linger_ns : l->farewell.until_ns;
        uint64_t engine = engine_deadline(l->engine);
        if (l->farewell.until_ns == UINT64_MAX)
                d = engine < d ? engine : d;
        list_each(a, &l->early, struct arrival, link)
        {
                if (a->deadline_ns < d)
                        d = a->deadline_ns;
        }
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->lanes[0].conn && session_deadline(c->session) < d)
                        d = session_deadline(c->session);
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
        l->completions.polls = true;
        enum backend_polled r = engine_poll(l->engine, false);
        l->completions.polls = false;
        if (r != BACKEND_IDLE && !atomic_load_explicit(&l->completions.looks, memory_order_relaxed))
                atomic_store_explicit(&l->completions.looks, true, memory_order_relaxed);
        return r == BACKEND_REPORTED ? SPIN_FOUND : r == BACKEND_WAITING ? SPIN_SOON : SPIN_NOTHING;
}

/* With the lock, which is then released while it spins. */
static void begin_trials(struct server_loop *l)
{
        if (!spin_tries(&l->spin))
                return;
        list_each(c, &l->channels, struct channel, link)
        {
                if (link_try_begin(&c->lanes[0]))
                        l->watch.trials[l->watch.trial_count++] = &c->lanes[0];
        }
}

static void end_trials(struct server_loop *l)
{
        while (l->watch.trial_count)
                link_try_end(l->watch.trials[--l->watch.trial_count]);
}

/* Without the engine's lock. */
static int look(struct server_loop *l, size_t count)
{
        int n = poll(l->watch.fds, count, 0);
        return n ? n : spin_peek(l->watch.conns, l->watch.conn_count);
}

static int sleep_in_poll(struct server_loop *l, size_t count, uint64_t deadline)
{
        int n = spin_poll(&l->spin, &(struct spin_on){ l->watch.fds, count, l->watch.conns,
                                                       l->watch.conn_count, l->watch.trials,
                                                       l->watch.trial_count });
        if (n)
                return n;
        if (l->watch.trial_count) {
                engine_lock(l->engine);
                end_trials(l);
                engine_unlock(l->engine);
        }
        atomic_store(&l->completions.sleeps, true);
        if (l->spin.also)
                engine_poll(l->engine, true);
        TRACE_SPAN(poll, count);
        n = poll(l->watch.fds, count, clock_poll_ms(deadline));
        atomic_store(&l->completions.sleeps, false);
        spin_slept(&l->spin);
        /* The loop's thread notices the completion of commands submitted from now on. So no other
         * thread has to be woken. */
        if (l->spin.also)
                poll_completions(l);
        return n;
}

/* However lane 0 came to be down, it is waited for as long as `linger` says: also when its connection was lost
 * before it was attached, the first one or a later one. */
static void await_client(struct server_loop *l)
{
        if (!l->attach.heard || (l->client && l->client->lanes[0].conn)) {
                l->linger_ns = UINT64_MAX;
                return;
        }
        uint64_t now = clock_now_ns();
        if (l->linger_ns == UINT64_MAX)
                l->linger_ns = now + serving_option(l, CONFIG_linger) * 1000000000;
        if (now >= l->linger_ns)
                serving_end(l, SP_E_GONE, "the client did not come back");
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
                atomic_store_explicit(&l->life.answered,
                                      atomic_load_explicit(&l->life.asked, memory_order_relaxed),
                                      memory_order_relaxed);
                take_losses(l);
                attaching_take(l);
                peering_see_to(l);
                expire(l);
                tick(l);
                bool more = flush_all(l, true);
                farewell(l);
                await_client(l);
                int r = l->over ? 0 : collect(l, &count);
                if (r < 0)
                        serving_end(l, SP_E_NOMEM, "out of memory");
                if (l->over)
                        break;
                more |= r > 0;
                uint64_t deadline = next_deadline(l);
                l->asleep = true;
                begin_trials(l);
                engine_unlock(l->engine);
                bool told = l->spin.also && poll_completions(l) == SPIN_FOUND;
                int n = more || told ? look(l, count) : sleep_in_poll(l, count, deadline);
                engine_lock(l->engine);
                l->asleep = false;
                end_trials(l);
                /* A link is due for reading, though poll(2) finds nothing, when a send on it failed. */
                if (n < 0 || (!n && r <= 0))
                        continue;
                if (l->watch.fds[0].revents) {
                        eventfd_t v;
                        (void)!eventfd_read(l->box->wake_fd, &v);
                }
                if (l->watch.fds[1].revents)
                        take_output(l);
                serve(l, count);
        }
        flush_all(l, false);
        list_each(c, &l->channels, struct channel, link) channel_down(c);
        engine_unlock(l->engine);
        log_info(LOG, "the session is over: %s", l->end.text);
        if (l->params.ended)
                l->params.ended(l->params.user,
                                atomic_load(&l->broken) ? SP_E_NODEV : l->end.status, l->end.text);
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
        l->linger_ns = l->farewell.until_ns = UINT64_MAX;
        l->arena.fd = -1;
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
        l->watch.fd_cap = POLL_MAX;
        l->watch.fds = mem_alloc(l->watch.fd_cap * sizeof(*l->watch.fds));
        l->watch.conns = mem_alloc(l->watch.fd_cap * sizeof(*l->watch.conns));
        l->watch.trials = mem_alloc(l->watch.fd_cap * sizeof(struct link *));
        int r = l->watch.fds && l->watch.conns && l->watch.trials ? box_new(&l->box) : SP_E_NOMEM;
        if (!r && params->output_fd >= 0 && fcntl(params->output_fd, F_SETFL, O_NONBLOCK) < 0)
                r = SP_E_INVAL;
        if (!r)
                r = engine_new(
                        &(struct engine_params){
                                .backend = params->backend,
                                .options = params->options,
                                .scratch_dir = params->scratch_dir,
                                .cache_dir = params->cache_dir,
                                .limits = params->limits,
                                .in_process = params->in_process,
                                .ops = params->output_fd < 0 ? &ops_silent : &ops_output,
                                .user = l,
                        },
                        &l->engine);
        if (!r) {
                l->unlock = (struct link_lock){ lock_engine, unlock_engine, l->engine };
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
static void lane_threads_end(struct server_loop *l)
{
        if (!l->engine)
                return;
        engine_lock(l->engine);
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned i = 1; i < SESSION_LANES; i++)
                        lane_thread_tell_stop(c->lane_threads[i]);
        }
        engine_unlock(l->engine);
        list_each(c, &l->channels, struct channel, link)
        {
                for (unsigned i = 1; i < SESSION_LANES; i++)
                        c->lane_threads[i] = lane_thread_free(c->lane_threads[i]);
        }
}

struct server_loop *server_loop_free(struct server_loop *l)
{
        if (!l)
                return NULL;
        if (l->started) {
                engine_lock(l->engine);
                serving_end(l, SP_E_GONE, "the server ends");
                engine_unlock(l->engine);
                box_wake(l->box);
                pthread_join(l->thread, NULL);
        }
        if (l->box) {
                pthread_mutex_lock(&l->box->lock);
                l->box->closed = true;
                pthread_mutex_unlock(&l->box->lock);
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
                close(l->params.output_fd);
        mem_free(l->watch.fds);
        mem_free(l->watch.conns);
        mem_free(l->watch.trials);
        if (l->arena.fd >= 0)
                close(l->arena.fd);
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
        engine_lock(l->engine);
        r = attaching_admit(l, &m, &s, &text);
        if (!r)
                r = attaching_attach(l, &m, s, pair[1], reply);
        else
                conn_close(pair[1]);
        serving_rouse(l);
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
        atomic_store(&l->box->full, true);
        snprintf(l->box->stop_text, sizeof(l->box->stop_text), "%s", text);
        pthread_mutex_unlock(&l->box->lock);
        box_wake(l->box);
}

void server_loop_share(struct server_loop *l, bool shared)
{
        spin_share(&l->spin, shared);
}

int server_loop_stats(struct server_loop *l, struct buf *ret)
{
        engine_lock(l->engine);
        int r = engine_get_usage(l->engine, ret);
        if (!r)
                r = engine_get_links(l->engine, ret);
        engine_unlock(l->engine);
        return r;
}

unsigned server_loop_devices(struct server_loop *l)
{
        return engine_device_count(l->engine);
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
