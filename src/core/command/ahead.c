#include "core/command/ahead.h"

#include <stdio.h>

#include "core/command/event.h"
#include "core/command/queue.h"
#include "core/context.h"
#include "core/link/disconnected.h"
#include "core/link/peers.h"
#include "core/link/server.h"
#include "core/state.h"
#include "session/session.h"

enum { EVENTS_MAX = 16384, ROUND_TRIPS = 4, POLLS = 8, WATCHES = 16 };
static const uint64_t least_ns = 20000000, poll_ns = 50000, watch_ns = 100000;

/* Can the program see by other means than calls whether a command of the context has completed? */
static bool is_visible(const struct _cl_context *x) REQUIRES(client_held)
{
        return x->ahead.never || x->ahead.host_memory || x->ahead.user_events ||
               !list_empty(&x->svm_chunks) || !list_empty(&x->client->transfers.outgoing);
}

static bool has_any(const struct _cl_context *x)
{
        return x->ahead.count || x->ahead.late;
}

/* Several threads that wait in turn are independent of each other, but all commands of a context stand behind what is
 * ahead. */
static bool is_of_one_thread(cl_context x) REQUIRES(client_held)
{
        if (has_any(x) && !thread_is_self(x->ahead.thread))
                x->ahead.never = true;
        x->ahead.thread = thread_self();
        return !x->ahead.never;
}

static bool may_be_ahead(cl_command_queue q) REQUIRES(client_held)
{
        cl_context x = q->context;
        /* Nobody might receive the completions after the program's last reference of the context. */
        return x->ahead.allowed && !q->failed && !q->deferred_error && !is_visible(x) &&
               atomic_load(&x->h.refs) && is_of_one_thread(x);
}

/* Has the client itself something to do for the command, as to put its bytes into the program's memory? */
static bool is_ours(const struct _cl_event *e)
{
        return e->parts != 1 || e->tail || e->lags || e->before || e->notified;
}

bool ahead_may_finish(cl_command_queue q)
{
        const struct _cl_event *last = map_get(&q->context->client->events.pending, q->last_event);
        if (!may_be_ahead(q) || server_fails(q->device->server))
                return false;
        /* A command buffer of several queues: its event follows commands of them all. */
        if (last && (last->queue != q || last->many_queues))
                return false;
        /* Those before an earlier wait that is ahead were looked at then. */
        for (struct list *l = q->commands.prev; l != &q->commands; l = l->prev) {
                const struct _cl_event *e = list_entry(l, struct _cl_event, queue_link);
                if (is_ours(e))
                        return false;
                if (e->ahead.since_ns && e->ahead.finish)
                        break;
        }
        return true;
}

bool ahead_may_wait(cl_event e)
{
        if (e->status <= CL_COMPLETE)
                return e->status == CL_COMPLETE;
        return e->queue && may_be_ahead(e->queue) && e->watched && !server_fails(e->server) &&
               !is_ours(e);
}

void ahead_add(cl_event e)
{
        cl_context x = e->context;
        cl_command_queue q = e->queue;
        server_kick(e->server);
        if (e->ahead.since_ns)
                return;
        if (q->properties & CL_QUEUE_PROFILING_ENABLE)
                server_ask_clock(e->server);
        e->ahead.since_ns = client_now_ns(x->client);
        e->ahead.stamp = ++x->ahead.stamp;
        list_append(&x->ahead.events, &e->ahead.link);
        x->ahead.count++;
        q->ahead_ns = e->ahead.since_ns;
        if (e->id > q->ahead_last)
                q->ahead_last = e->id;
}

/* Did an event of the queue come to be ahead just now? A server reports the end of each command that the client
 * watches, which costs both some microseconds. So only some waits in a round trip have an event that is watched. */
static bool is_soon(const struct _cl_command_queue *q) REQUIRES(client_held)
{
        uint64_t interval = q->device->server->clock.rtt_ns / WATCHES;
        if (interval < watch_ns)
                interval = watch_ns;
        return queue_in_order(q) && q->ahead_ns &&
               client_now_ns(q->context->client) - q->ahead_ns < interval;
}

int ahead_catch_up(cl_context x)
{
        cl_command_queue q = x->ahead.late;
        cl_event last = NULL;
        if (!q)
                return 0;
        x->ahead.late = NULL;
        int r = queue_watch(q, &last);
        if (r == SP_E_GONE) /* its commands fail, and with them what waits for them */
                return 0;
        if (r < 0 || !last)
                return r;
        last->ahead.finish = true;
        ahead_add(last);
        event_unhold(last);
        return 0;
}

int ahead_finish(cl_command_queue q)
{
        cl_context x = q->context;
        int r = x->ahead.late == q ? 0 : ahead_catch_up(x);
        if (r < 0)
                return r;
        x->ahead.late = q;
        if (is_soon(q))
                server_kick(q->device->server);
        else
                r = ahead_catch_up(x);
        ahead_limit(x);
        return r;
}

/* The oldest event that will complete some time; NULL: none. */
static cl_event oldest(cl_context x) REQUIRES(client_held)
{
        list_each(e, &x->ahead.events, struct _cl_event, ahead.link)
        {
                if (!event_is_settled(e))
                        return e;
        }
        return NULL;
}

static void wait_for(cl_event e) REQUIRES(client_held)
{
        event_hold(e);
        client_wait(e->context->client, event_is_settled, e);
        event_unhold(e);
}

/* Receiving costs system calls: some times in a round trip, or every 50 µs. */
static bool receive(cl_context x, uint64_t now, uint64_t rtt) REQUIRES(client_held)
{
        uint64_t since = now - x->ahead.received_ns;
        if (since < poll_ns || since < rtt / POLLS)
                return false;
        x->ahead.received_ns = now;
        return client_poll(x->client);
}

void ahead_limit(cl_context x)
{
        struct client *c = x->client;
        cl_event e;
        context_hold(x);
        while ((e = oldest(x))) {
                uint64_t now = client_now_ns(c), rtt = e->server->clock.rtt_ns;
                uint64_t age = now - e->ahead.since_ns;
                uint64_t limit = c->events.ahead_limit_ns ? c->events.ahead_limit_ns
                                                          : ROUND_TRIPS * rtt + least_ns;
                bool full = x->ahead.count >= EVENTS_MAX;
                if (age < rtt && !full)
                        break;
                if (receive(x, now, rtt))
                        continue;
                if (age < limit && !full)
                        break;
                wait_for(e);
        }
        context_unhold(x);
}

struct settling {
        cl_context context;
        uint64_t stamp; /* of the last event that counts */
};

/* Completed events are not in the list, which is in the order of their stamps. */
static bool is_settled(void *arg) REQUIRES(client_held)
{
        struct settling *s = arg;
        list_each(e, &s->context->ahead.events, struct _cl_event, ahead.link)
        {
                if (e->ahead.stamp > s->stamp)
                        break;
                if (!event_is_settled(e))
                        return false;
        }
        return true;
}

void ahead_settle(cl_context x)
{
        (void)!ahead_catch_up(x);
        struct settling s = { x, x->ahead.stamp };
        if (!x->ahead.count)
                return;
        context_hold(x);
        client_wait(x->client, is_settled, &s);
        context_unhold(x);
}

static cl_context unsettled(struct client *c) REQUIRES(client_held)
{
        list_each(x, client_contexts(c), struct _cl_context, link)
        {
                if (has_any(x) && !x->ahead.ended)
                        return x;
        }
        return NULL;
}

void ahead_settle_all(struct client *c)
{
        cl_context x;
        while ((x = unsettled(c))) {
                x->ahead.ended = true; /* other threads may go on */
                ahead_settle(x);
        }
}

/* Send a barrier that waits for these events, which the server knows. */
static int send_barrier(cl_command_queue q, struct session *session, const uint64_t *waits,
                        size_t count) REQUIRES(client_held)
{
        return session_send(session, marker,
                            .event = client_new_id(q->context->client, OBJECT_EVENT),
                            .queue = q->id, .flags = COMMAND_BARRIER, .waits = { waits, count });
}

enum { NAMED_MAX = 64 };

/* The next events behind which the queue's commands are to come, held; at most NAMED_MAX. *ret_stamp: of the last event
 * that was looked at. */
static size_t next_named(cl_command_queue q, cl_event *ret, uint64_t *ret_stamp)
        REQUIRES(client_held)
{
        struct list *all = &q->context->ahead.events, *l = all->prev;
        size_t count = 0;
        while (l != all && list_entry(l, struct _cl_event, ahead.link)->ahead.stamp > q->ahead_seen)
                l = l->prev;
        for (l = l->next; l != all && count < NAMED_MAX; l = l->next) {
                cl_event e = list_entry(l, struct _cl_event, ahead.link);
                bool in_order = queue_in_order(e->queue);
                *ret_stamp = e->ahead.stamp;
                /* The last of an in-order queue stands for all of them. */
                if ((in_order && (e->queue == q || e->id < e->queue->ahead_last)) ||
                    server_fails(e->server))
                        continue;
                event_hold(e);
                ret[count++] = e;
        }
        return count;
}

int ahead_order(cl_command_queue q)
{
        struct session *session = server_session(q->device->server);
        int r = session ? ahead_catch_up(q->context) : SP_E_GONE;
        while (r == 0 && ahead_is_due(q)) {
                cl_event named[NAMED_MAX];
                uint64_t waits[NAMED_MAX], stamp = q->context->ahead.stamp;
                size_t count = 0, n = next_named(q, named, &stamp);
                for (size_t i = 0; i < n; i++) {
                        int reached = r < 0 ? r : event_reach(named[i], q->device->server);
                        if (reached > 0)
                                waits[count++] = named[i]->id;
                        r = reached < 0 ? reached : 0;
                        event_unhold(named[i]);
                }
                if (r == 0 && count)
                        r = send_barrier(q, session, waits, count);
                if (r == 0)
                        q->ahead_seen = stamp;
        }
        return r;
}

/* e failed, so it tells nothing of the commands before it, for which it stood: they take its place. */
static void replace(cl_event e) REQUIRES(client_held)
{
        list_each(before, &e->queue->commands, struct _cl_event, queue_link)
        {
                if (before->id >= e->id)
                        break;
                if (before->ahead.since_ns || event_watch(before) < 0 || !before->watched)
                        continue;
                before->ahead.since_ns = e->ahead.since_ns;
                before->ahead.stamp = e->ahead.stamp;
                list_append(&e->ahead.link, &before->ahead.link); /* in front of it */
                e->context->ahead.count++;
        }
}

void ahead_done(cl_event e)
{
        cl_context x = e->context;
        cl_command_queue q = e->queue;
        if (e->ahead.finish && e->status < 0)
                replace(e);
        list_remove(&e->ahead.link);
        x->ahead.count--;
        e->ahead.since_ns = 0;
        if (e->ahead.waited && e->status < 0 && !q->deferred_error)
                q->deferred_error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        if (e->ahead.finish && e->status == CL_COMPLETE) {
                if (!queue_in_order(q))
                        events_passed(q, e->id);
                if (e->id > q->finished)
                        q->finished = e->id;
        }
}

void ahead_failed(cl_command_queue q, cl_int status)
{
        char text[128];
        if (!has_any(q->context))
                return;
        snprintf(text, sizeof(text),
                 "a command failed (%d) behind a wait that had returned (SPANCL_FINISH=optimistic)",
                 status);
        context_notify(q->context, text);
}
