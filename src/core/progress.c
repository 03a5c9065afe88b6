#include "core/progress.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/disconnected.h"
#include "core/link/idle.h"
#include "core/link/new_session.h"
#include "core/link/server.h"
#include "trace/trace.h"

enum {
        PROGRESS_NAP_NS = 200000, /* commands lie unsent no longer than about this, */
        PROGRESS_NAP_DOUBLED =
                2, /* doubled so often where the application has sent them itself of late */
        WATCH_NS = 100000000, /* a connection without waits for so long is watched */
        PROGRESS_NAPS = 10,   /* idle ones before it sleeps until it is woken */
};

/* Has it to receive, because nobody else does? */
static bool must_pump(const struct client *c) REQUIRES(client_held)
{
        if (c->wait.waiters || c->wait.pumping)
                return false;
        if (c->progress.interests || !list_empty(&c->transfers.uploads.all))
                return true;
        for (unsigned i = 0; i < c->server_count; i++)
                if ((c->servers[i]->state == SERVER_UP && c->servers[i]->sending.backlog) ||
                    c->servers[i]->state == SERVER_DISCONNECTED ||
                    ((c->servers[i]->state == SERVER_NEW || c->servers[i]->state == SERVER_IDLE) &&
                     c->servers[i]->link))
                        return true;
        return false;
}

/* Servers are watched while nobody else receives; not at once, since waking up for each wait costs. */
static bool must_watch(struct client *c, uint64_t waits) REQUIRES(client_held)
{
        return c->progress.watchers && c->connected && !c->wait.waiters && !c->wait.pumping &&
               c->wait.count == waits;
}

/* When the oldest unsent message was left; 0: all is sent. */
static uint64_t unsent_since(const struct client *c) REQUIRES(client_held)
{
        uint64_t oldest = 0;
        for (unsigned i = 0; i < c->server_count; i++) {
                uint64_t t = c->servers[i]->sending.unsent_since;
                if (t && (!oldest || t < oldest))
                        oldest = t;
        }
        return oldest;
}

/* Run deferred calls; the lock is released meanwhile. True: there were some. */
static bool run_deferred(struct client *c) REQUIRES(client_held)
{
        if (list_empty(&c->progress.deferred))
                return false;
        struct deferred *d = list_entry(c->progress.deferred.next, struct deferred, link);
        list_remove(&d->link);
        c->progress.calling = true;
        client_unlock(c);
        {
                TRACE_SPAN(callback, 0);
                d->fn(d);
        }
        client_lock(c);
        c->progress.calling = false;
        return true;
}

/* Not longer than until `at_ns`. */
static void nap(struct client *c, uint64_t ns, uint64_t at_ns) REQUIRES(client_held)
{
        uint64_t until = c->io->now_ns(c->io_user) + ns;
        client_sleep(c, &c->progress.cond, until < at_ns ? until : at_ns);
}

static void *progress_run(void *user)
{
        struct client *c = user;
        unsigned naps = 0;
        uint64_t waits = 0;
        client_lock(c);
        while (!c->progress.stop) {
                if (run_deferred(c)) {
                        naps = 0;
                        continue;
                }
                servers_begin_sessions(c);
                uint64_t unused = servers_end_unused(c);
                if (must_pump(c)) {
                        uint64_t since = unsent_since(c);
                        client_pump(c, true, NULL, NULL, since ? since + PROGRESS_NAP_NS : unused);
                        naps = 0;
                        continue;
                }
                uint64_t since = unsent_since(c);
                if (since && c->io->now_ns(c->io_user) - since >= PROGRESS_NAP_NS / 2) {
                        client_flush(c);
                        naps = 0;
                        continue;
                }
                if (c->wait.count != waits || since) {
                        waits = c->wait.count;
                        naps = naps > PROGRESS_NAP_DOUBLED ? PROGRESS_NAP_DOUBLED : naps;
                }
                if (naps < PROGRESS_NAPS) {
                        nap(c,
                            PROGRESS_NAP_NS
                                    << (naps < PROGRESS_NAP_DOUBLED ? naps : PROGRESS_NAP_DOUBLED),
                            unused);
                        naps++;
                        continue;
                }
                c->progress.idle = true;
                if (c->progress.watchers)
                        nap(c, WATCH_NS, unused);
                else
                        client_sleep(c, &c->progress.cond, unused);
                /* The thread that woke it has something for it. */
                bool woken = !c->progress.idle;
                c->progress.idle = false;
                naps = woken ? 0 : PROGRESS_NAPS;
                if (!woken && must_watch(c, waits))
                        client_pump(c, true, NULL, NULL, unused);
        }
        client_unlock(c);
        return NULL;
}

void progress_wake(struct client *c)
{
        if (!c->io->threads || c->progress.stop)
                return;
        if (!c->progress.started) {
                if (thread_start_with_signals(&c->progress.thread, progress_run, c) < 0)
                        log_error("client", "can't start a thread: error %d", errno);
                else
                        c->progress.started = true;
                return;
        }
        if (c->progress.idle) {
                c->progress.idle = false;
                condition_signal(&c->progress.cond);
        }
}

void progress_watch(struct client *c)
{
        c->progress.watchers++;
        progress_wake(c);
}

void progress_unwatch(struct client *c)
{
        c->progress.watchers--;
}

void progress_relieve(struct client *c)
{
        if (c->progress.interests || !list_empty(&c->progress.deferred) || must_pump(c))
                progress_wake(c);
}

void progress_stop(struct client *c)
{
        c->progress.stop = true;
        if (!c->progress.started)
                return;
        if (c->progress.calling) {
                /* An application callback may have called exit(), or never returns. */
                thread_detach(c->progress.thread);
                c->progress.started = false;
                return;
        }
        condition_signal(&c->progress.cond);
        c->io->wake(c->io_user);
        thread_id thread = c->progress.thread;
        client_unlock(c);
        thread_join(thread);
        client_lock(c);
        c->progress.started = false;
}

void progress_forget(struct client *c)
{
        c->progress.started = false;
        c->progress.stop = true;
}

void client_defer(struct client *c, struct deferred *d, void (*fn)(struct deferred *d))
{
        d->fn = fn;
        list_append(&c->progress.deferred, &d->link);
        progress_wake(c);
        if (c->wait.progress_pumping && c->wait.sleeping)
                c->io->wake(c->io_user);
        else if (c->progress.started)
                condition_signal(&c->progress.cond);
}

bool client_step(struct client *c)
{
        client_lock(c);
        bool did = false;
        while (run_deferred(c))
                did = true;
        if (unsent_since(c)) {
                client_flush(c);
                did = true;
        }
        servers_begin_sessions(c);
        servers_end_unused(c);
        servers_tick(c, client_now_ns(c));
        did |= client_poll(c);
        did |= !list_empty(&c->progress.deferred);
        client_unlock(c);
        return did;
}
