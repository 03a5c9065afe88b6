#include "core/command/queue.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/command/ahead.h"
#include "core/command/event.h"
#include "core/command/prefetch.h"
#include "core/context.h"
#include "core/handle.h"
#include "core/link/disconnected.h"
#include "core/link/server.h"
#include "core/memory/view.h"
#include "core/profile/profile.h"
#include "core/state.h"
#include "core/status.h"

static void destroy(cl_command_queue q)
{
        prefetch_free(q->prefetch);
        mem_free(q->property_list);
        handle_free(&q->h, sizeof(*q));
}

/* Also the queue's commands that the program does not ask about are timed if the ledger is kept. */
static cl_command_queue_properties server_properties(const struct _cl_command_queue *q)
{
        bool timed = profile_is_timing() && !(q->properties & CL_QUEUE_ON_DEVICE);
        return q->properties | (timed ? CL_QUEUE_PROFILING_ENABLE : 0);
}

int queue_new(cl_context x, const struct queue_params *params, cl_command_queue *ret)
{
        struct client *c = x->client;
        cl_device_id device = context_device(x, params->device);
        struct server *s = device->server;
        struct session *session = server_session(s);
        if (!session)
                return SP_E_GONE;
        cl_command_queue q = mem_zalloc(sizeof(*q));
        if (!q)
                return SP_E_NOMEM;
        handle_init(&q->h, HANDLE_QUEUE);
        list_init(&q->commands);
        q->device = device;
        q->properties = params->properties;
        q->size = params->size;
        q->id = client_new_id(c, OBJECT_QUEUE);
        if (params->list) {
                q->property_list =
                        mem_dup(params->list, params->list_count * sizeof(*params->list));
                q->property_count = params->list_count;
        }
        int r = params->list && !q->property_list ? SP_E_NOMEM : 0;
        if (r == 0 && c->events.prefetch && queue_in_order(q))
                r = prefetch_new(&q->prefetch);
        if (r == 0)
                r = map_put(&c->queues, q->id, q);
        if (r < 0) {
                destroy(q);
                return r;
        }
        r = session_send(session, queue_create, .queue = q->id, .device = q->device->index,
                         .properties = server_properties(q), .size = q->size);
        if (r < 0) {
                map_del(&c->queues, q->id);
                destroy(q);
                return r;
        }
        q->context = x;
        q->is_default = q->properties & CL_QUEUE_ON_DEVICE_DEFAULT;
        context_hold(x);
        server_kick(s);
        *ret = q;
        return 0;
}

cl_command_queue queue_default(cl_context x, cl_device_id d)
{
        size_t pos = 0;
        cl_command_queue q;
        while ((q = map_next(&x->client->queues, &pos)))
                if (q->context == x && q->device->shown == d->shown && q->is_default)
                        return q;
        return NULL;
}

int queue_set_default(cl_command_queue q)
{
        struct session *session = server_session(q->device->server);
        cl_command_queue old = queue_default(q->context, q->device);
        if (!session)
                return SP_E_GONE;
        int r = session_send(session, queue_set_default, .queue = q->id);
        if (r < 0)
                return r;
        server_kick(q->device->server);
        if (old)
                old->is_default = false;
        q->is_default = true;
        return 0;
}

cl_uint queue_count_on_device(cl_device_id d)
{
        size_t pos = 0;
        cl_uint count = 0;
        const struct _cl_command_queue *q;
        while ((q = map_next(&d->client->queues, &pos)))
                count += q->device->shown == d->shown && q->properties & CL_QUEUE_ON_DEVICE;
        return count;
}

void queue_hold(cl_command_queue q)
{
        atomic_fetch_add(&q->h.holds, 1);
}

void queue_unhold(cl_command_queue q)
{
        if (atomic_fetch_sub(&q->h.holds, 1) != 1)
                return;
        cl_context x = q->context;
        struct server *s = q->device->server;
        struct session *session = server_session(s);
        map_del(&x->client->queues, q->id);
        if (x->ahead.late == q)
                x->ahead.late = NULL;
        x->client->objects.gone++;
        /* Without memory the server keeps the queue until the session ends. */
        if (session && session_send(session, release, .object = q->id) == 0)
                server_kick(s);
        destroy(q);
        context_unhold(x);
}

/* ---- order ---------------------------------------------------------------------------------- */

/* In an in-order queue the newest event lags if any of the queue's does. */
bool queue_lags(const struct _cl_command_queue *q, bool all)
{
        if (list_empty(&q->commands))
                return false;
        if (queue_in_order(q))
                return event_lags(list_entry(q->commands.prev, struct _cl_event, queue_link));
        if (!all)
                return q->fence;
        list_each(e, &q->commands, struct _cl_event, queue_link)
        {
                if (event_lags(e))
                        return true;
        }
        return false;
}

int queue_follow(cl_command_queue q, cl_event e, bool all)
{
        struct list *before = e->queue_link.prev;
        if (queue_in_order(q))
                return before == &q->commands
                               ? 0
                               : event_follow(e, list_entry(before, struct _cl_event, queue_link));
        if (!all)
                return q->fence ? event_follow(e, q->fence) : 0;
        list_each(first, &q->commands, struct _cl_event, queue_link)
        {
                int r = first == e ? 0 : event_follow(e, first);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- side queues ---------------------------------------------------------------------------- */

/* The context's device that stands for a domain. */
static cl_device_id domain_device(cl_context x, const struct server *s, unsigned domain)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->server == s && x->devices[i]->domain == domain)
                        return x->devices[i];
        return NULL;
}

int queue_side(cl_context x, struct server *s, unsigned domain, uint64_t *ret_id)
{
        list_each(d, &x->domain_queues, struct domain_queue, link)
        {
                if (d->server == s && d->domain == domain) {
                        *ret_id = d->queue_id;
                        return 0;
                }
        }
        cl_device_id device = domain_device(x, s, domain);
        struct session *session = server_session(s);
        if (!device || !session)
                return SP_E_GONE;
        struct domain_queue *d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        d->server = s;
        d->domain = domain;
        d->queue_id = client_new_id(x->client, OBJECT_QUEUE);
        int r = session_send(session, queue_create, .queue = d->queue_id, .device = device->index,
                             .properties = device->queue_properties &
                                           CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        if (r < 0) {
                mem_free(d);
                return r;
        }
        list_append(&x->domain_queues, &d->link);
        *ret_id = d->queue_id;
        return 0;
}

cl_int queue_take_error(cl_command_queue q)
{
        cl_int error = q->deferred_error;
        q->deferred_error = CL_SUCCESS;
        return error;
}

cl_int queue_flush(cl_command_queue q)
{
        struct server *s = q->device->server;
        struct session *session = server_session(s);
        if (server_refuses(s))
                return CL_DEVICE_NOT_AVAILABLE;
        if (!q->last_event || (queue_in_order(q) && !q->failed && q->last_event <= q->completed))
                return CL_SUCCESS;
        int r = session_send(session, queue_flush, .queue = q->id);
        if (r < 0)
                return status_to_cl(r);
        client_flush(q->context->client); /* it may depend on other servers */
        return CL_SUCCESS;
}

struct finish {
        cl_command_queue queue;
        cl_event last; /* NULL: only bytes are to come */
        uint64_t id;
};

static bool is_finished(void *arg) REQUIRES(client_held)
{
        struct finish *f = arg;
        if (server_fails(f->queue->device->server))
                return true;
        if (f->last && !event_is_done(f->last))
                return false;
        if (!f->last || f->last->status == CL_COMPLETE)
                events_passed(f->queue, f->id);
        /* Transfers, and commands whose events are watched, complete with their events. */
        list_each(e, &f->queue->commands, struct _cl_event, queue_link)
        {
                if (e->id > f->id)
                        break;
                if (e->watched)
                        return false;
        }
        return true;
}

int queue_watch_event(cl_command_queue q, struct session *session, uint64_t event)
{
        uint8_t *msg = event == q->last_event ? session_unsent_at(session, q->last_at) : NULL;
        if (msg && wire_command_notify(msg, event, q->id))
                return 0;
        return session_send(session, event_watch, .event = event);
}

/* The event of the last command, or one that stands in for it, watched; held. */
static int watch_last(cl_command_queue q, struct session *session, cl_event *ret)
        REQUIRES(client_held)
{
        cl_event e = map_get(&q->context->client->events.pending, q->last_event);
        int r;
        if (e) {
                r = event_watch(e);
                if (r < 0)
                        return r;
                event_hold(e);
                *ret = e;
                return 0;
        }
        r = event_new(q, CL_COMMAND_MARKER, q->last_event, false, &e);
        if (r < 0)
                return r;
        e->stands_in = true;
        r = queue_watch_event(q, session, q->last_event);
        if (r < 0) {
                event_complete(e, CL_OUT_OF_HOST_MEMORY);
                event_unhold(e);
                return r;
        }
        *ret = e;
        return 0;
}

/* Enqueue a marker behind everything, for queues whose last command does not imply the others. *ret
 * is held. */
static int watch_marker(cl_command_queue q, struct session *session, cl_event *ret)
        REQUIRES(client_held)
{
        cl_event e;
        uint64_t id = client_new_id(q->context->client, OBJECT_EVENT);
        int r = event_new(q, CL_COMMAND_MARKER, id, false, &e);
        if (r < 0)
                return r;
        r = queue_follow(q, e, true);
        if (r == 0)
                r = session_send(session, marker, .event = id, .queue = q->id,
                                 .flags = COMMAND_NOTIFY);
        if (r < 0) {
                event_complete(e, CL_OUT_OF_HOST_MEMORY);
                event_unhold(e);
                return r;
        }
        q->last_event = id;
        q->last_at = UINT64_MAX;
        *ret = e;
        return 0;
}

/* Does the last command of the queue tell of the others? */
static bool last_notifies(const struct _cl_command_queue *q)
{
        return queue_in_order(q) && !q->failed;
}

/* Is all that was enqueued up to now known to be complete? */
static bool is_known_complete(const struct _cl_command_queue *q)
{
        return q->last_event == q->finished || (last_notifies(q) && q->last_event <= q->completed);
}

int queue_watch(cl_command_queue q, cl_event *ret)
{
        struct session *session = server_session(q->device->server);
        *ret = NULL;
        if (server_fails(q->device->server))
                return SP_E_GONE;
        if (is_known_complete(q))
                return 0;
        return last_notifies(q) ? watch_last(q, session, ret) : watch_marker(q, session, ret);
}

/* The caller holds the queue. */
static cl_int wait_all(cl_command_queue q) REQUIRES(client_held)
{
        struct client *c = q->context->client;
        struct finish f = { q, NULL, 0 };
        bool notified = last_notifies(q);
        int r = queue_watch(q, &f.last);
        if (r < 0)
                return status_to_cl(r);
        if (!q->last_event)
                return CL_SUCCESS;
        f.id = q->last_event;
        if (q->properties & CL_QUEUE_PROFILING_ENABLE || profile_is_timing())
                server_ask_clock(q->device->server);
        client_wait(c, is_finished, &f);
        if (profile_is_on())
                profile_wait_was(PROFILE_FINISH, q->device->server, f.last, 0);
        cl_int status = CL_SUCCESS;
        if (server_refuses(q->device->server))
                status = CL_DEVICE_NOT_AVAILABLE;
        else if (queue_in_order(q) && !notified && f.last && f.last->status == CL_COMPLETE) {
                q->failed = false; /* all up to the marker is known again */
                q->completed = f.id > q->completed ? f.id : q->completed;
        }
        if (status == CL_SUCCESS)
                q->finished = f.id;
        if (f.last)
                event_unhold(f.last);
        return status;
}

static bool is_idle(const struct _cl_command_queue *q) REQUIRES(client_held)
{
        return is_known_complete(q) || (list_empty(&q->commands) && q->unnamed <= q->finished);
}

bool queues_idle(cl_context x)
{
        size_t pos = 0;
        cl_command_queue q;
        while ((q = map_next(&x->client->queues, &pos)))
                if (q->context == x && !is_idle(q))
                        return false;
        return true;
}

cl_int queue_finish(cl_command_queue q)
{
        queue_hold(q);
        cl_int status = CL_SUCCESS;
        if (!ahead_may_finish(q)) {
                status = wait_all(q);
                views_waited(q->context);
        } else if (!is_known_complete(q)) {
                status = status_to_cl(ahead_finish(q));
        }
        if (status == CL_SUCCESS)
                status = queue_take_error(q);
        queue_unhold(q);
        return status;
}

int queues_wait(cl_context x)
{
        struct client *c = x->client;
        size_t pos = 0, count = 0;
        cl_command_queue q;
        while ((q = map_next(&c->queues, &pos)))
                count += q->context == x;
        cl_command_queue *all = mem_alloc((count + 1) * sizeof(cl_command_queue));
        if (!all)
                return SP_E_NOMEM;
        count = pos = 0;
        while ((q = map_next(&c->queues, &pos))) {
                if (q->context != x)
                        continue;
                queue_hold(q);
                all[count++] = q;
        }
        while (count) {
                q = all[--count];
                (void)wait_all(q);
                queue_unhold(q);
        }
        mem_free(all);
        return 0;
}
