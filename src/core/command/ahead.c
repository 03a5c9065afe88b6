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

enum { EVENTS_MAX = 1024, ROUND_TRIPS = 4 };
static const uint64_t least_ns = 20000000;

/* Can the program see by other means than calls whether a command of the context has completed? */
static bool is_visible(const struct _cl_context *x) REQUIRES(client_held)
{
        return x->ahead.prints || x->ahead.host_memory || x->ahead.user_events ||
               !list_empty(&x->svm_chunks);
}

/* Has the client itself something to do for the command, as to put its bytes into the program's memory? */
static bool is_ours(const struct _cl_event *e)
{
        return e->parts != 1 || e->tail || e->lags || e->before || e->notified;
}

bool ahead_may_finish(const struct _cl_command_queue *q)
{
        if (!q->context->client->events.ahead || q->failed || q->deferred_error ||
            is_visible(q->context) || server_fails(q->device->server))
                return false;
        /* Those before an earlier wait that is ahead were looked at then. */
        for (const struct list *l = q->commands.prev; l != &q->commands; l = l->prev) {
                const struct _cl_event *e =
                        container_of((struct list *)(uintptr_t)l, struct _cl_event, queue_link);
                if (is_ours(e))
                        return false;
                if (e->ahead.since_ns && e->ahead.finish)
                        break;
        }
        return true;
}

bool ahead_may_wait(const struct _cl_event *e)
{
        if (e->status <= CL_COMPLETE)
                return e->status == CL_COMPLETE;
        const struct _cl_command_queue *q = e->queue;
        return q && q->context->client->events.ahead && !q->failed && !q->deferred_error &&
               !is_visible(q->context) && e->watched && !server_fails(e->server) && !is_ours(e);
}

void ahead_add(cl_event e)
{
        cl_context x = e->context;
        if (e->ahead.since_ns)
                return;
        e->ahead.since_ns = client_now_ns(x->client);
        e->ahead.stamp = ++x->ahead.stamp;
        list_append(&x->ahead.events, &e->ahead.link);
        x->ahead.count++;
        if (e->id > e->queue->ahead_last)
                e->queue->ahead_last = e->id;
}

static cl_event first(cl_context x)
{
        return list_entry(x->ahead.events.next, struct _cl_event, ahead.link);
}

/* Return false if it will not complete for now. */
static bool wait_for_first(cl_context x) REQUIRES(client_held)
{
        cl_event e = first(x);
        event_hold(e);
        client_wait(x->client, event_is_settled, e);
        bool done = event_is_done(e);
        event_unhold(e);
        return done;
}

void ahead_limit(cl_context x)
{
        struct client *c = x->client;
        while (x->ahead.count) {
                cl_event e = first(x);
                uint64_t age = client_now_ns(c) - e->ahead.since_ns, rtt = e->server->clock.rtt_ns;
                uint64_t limit = c->events.ahead_limit_ns ? c->events.ahead_limit_ns
                                                          : ROUND_TRIPS * rtt + least_ns;
                if (age < rtt && x->ahead.count < EVENTS_MAX)
                        return;
                if (client_poll(c))
                        continue;
                if (age < limit && x->ahead.count < EVENTS_MAX)
                        return;
                if (!wait_for_first(x))
                        return;
        }
}

/* Completed events are not in the list. */
static bool all_settled(void *arg) REQUIRES(client_held)
{
        cl_context x = arg;
        list_each(e, &x->ahead.events, struct _cl_event, ahead.link)
        {
                if (!event_is_settled(e))
                        return false;
        }
        return true;
}

void ahead_settle(cl_context x)
{
        if (!x->ahead.count)
                return;
        context_hold(x);
        client_wait(x->client, all_settled, x);
        context_unhold(x);
}

void ahead_settle_all(struct client *c)
{
        bool again = c->events.ahead;
        while (again) {
                again = false;
                list_each(x, client_contexts(c), struct _cl_context, link)
                {
                        if (!x->ahead.count || server_fails(first(x)->server))
                                continue;
                        ahead_settle(x); /* the list of contexts may be another one now */
                        again = true;
                        break;
                }
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

int ahead_order(cl_command_queue q)
{
        cl_context x = q->context;
        struct session *session = server_session(q->device->server);
        uint64_t waits[64];
        size_t count = 0;
        if (!session)
                return SP_E_GONE;
        for (struct list *l = x->ahead.events.prev; l != &x->ahead.events; l = l->prev) {
                cl_event e = list_entry(l, struct _cl_event, ahead.link);
                bool in_order = queue_in_order(e->queue);
                if (e->ahead.stamp <= q->ahead_seen)
                        break;
                /* The last of an in-order queue stands for all of them. */
                if (in_order && (e->queue == q || e->id < e->queue->ahead_last))
                        continue;
                int r = event_reach(e, q->device->server);
                if (r > 0)
                        waits[count++] = e->id;
                if (r >= 0 && count == array_size(waits)) {
                        r = send_barrier(q, session, waits, count);
                        count = 0;
                }
                if (r < 0)
                        return r;
        }
        int r = count ? send_barrier(q, session, waits, count) : 0;
        if (r == 0)
                q->ahead_seen = x->ahead.stamp;
        return r;
}

void ahead_done(cl_event e)
{
        cl_context x = e->context;
        cl_command_queue q = e->queue;
        list_remove(&e->ahead.link);
        x->ahead.count--;
        e->ahead.since_ns = 0;
        if (!e->ahead.finish) {
                if (e->status < 0 && !q->deferred_error)
                        q->deferred_error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        } else if (e->status == CL_COMPLETE) {
                if (!queue_in_order(q))
                        events_passed(q, e->id);
                if (e->id > q->finished)
                        q->finished = e->id;
        }
}

void ahead_failed(cl_command_queue q, cl_int status)
{
        char text[128];
        if (!q->context->ahead.count)
                return;
        snprintf(text, sizeof(text),
                 "a command failed (%d) behind a wait that had returned (SPANCL_FINISH=optimistic)",
                 status);
        context_notify(q->context, text);
}
