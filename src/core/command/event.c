#include "core/command/event.h"
#include "core/command/ahead.h"
#include "core/command/operands.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/queue.h"
#include "core/command/transfer.h"
#include "core/context.h"
#include "core/handle.h"
#include "core/link/disconnected.h"
#include "core/link/listeners.h"
#include "core/link/peers.h"
#include "core/link/server.h"
#include "core/memory/migration.h"
#include "core/memory/view.h"
#include "core/profile/profile.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/status.h"
#include "trace/trace.h"

static cl_event event_alloc(cl_context x, uint64_t id, cl_command_type type) REQUIRES(client_held)
{
        cl_event e = mem_zalloc(sizeof(*e));
        if (!e)
                return NULL;
        handle_init(&e->h, HANDLE_EVENT);
        list_init(&e->queue_link);
        list_init(&e->followers);
        list_init(&e->ahead.link);
        e->context = x;
        e->id = id;
        e->command = type;
        e->status = CL_SUBMITTED;
        context_hold(x);
        return e;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* The servers execute commands in the order that the application asked for. But their
 * notifications, and the bytes of reads, come over several lanes and links. So an event follows an
 * earlier one that lags; otherwise it could look complete before a command that it depends on. */

struct follower {
        struct list link;
        cl_event event; /* held */
};

int event_follow(cl_event e, cl_event first)
{
        if (!event_lags(first))
                return 0;
        struct follower *f = mem_alloc(sizeof(*f));
        if (!f)
                return SP_E_NOMEM;
        f->event = e;
        event_hold(e);
        list_append(&first->followers, &f->link);
        e->parts++;
        e->before++;
        return 0;
}

/* e is complete: its followers' turn. One after the other, however long the chain. */
static void release_followers(cl_event e) REQUIRES(client_held)
{
        struct client *c = e->context->client;
        list_each(f, &e->followers, struct follower, link)
        {
                list_remove(&f->link);
                list_append(&c->events.followers, &f->link);
        }
        if (c->events.following)
                return;
        c->events.following = true;
        while (!list_empty(&c->events.followers)) {
                struct follower *f = list_entry(c->events.followers.next, struct follower, link);
                cl_event next = f->event;
                list_remove(&f->link);
                mem_free(f);
                if (--next->before == 0)
                        transfer_turn(next);
                event_part_done(next, CL_SUCCESS);
                event_unhold(next);
        }
        c->events.following = false;
}

/* ---- making --------------------------------------------------------------------------------- */

int event_new(cl_command_queue q, cl_command_type type, uint64_t id, bool app, cl_event *ret)
{
        struct client *c = q->context->client;
        cl_event e = event_alloc(q->context, id, type);
        if (!e)
                return SP_E_NOMEM;
        int r = map_put(&c->events.pending, id, e);
        if (r < 0) {
                context_unhold(e->context);
                mem_free(e);
                return r;
        }
        if (!app)
                atomic_store(&e->h.refs, 0);
        e->queue = q;
        queue_hold(q);
        e->server = q->device->server;
        e->parts = 1;
        e->tracked = e->watched = true;
        event_hold(e); /* the map's */
        list_append(&q->commands, &e->queue_link);
        if (q->properties & CL_QUEUE_PROFILING_ENABLE || profile_is_timing())
                e->queued_ns = client_now_ns(c);
        *ret = e;
        return 0;
}

int event_new_user(cl_context x, cl_event *ret)
{
        cl_event e = event_alloc(x, client_new_id(x->client, OBJECT_EVENT), CL_COMMAND_USER);
        if (!e)
                return SP_E_NOMEM;
        e->parts = 1;
        x->ahead.user_events++;
        *ret = e;
        return 0;
}

void event_hold(cl_event e)
{
        atomic_fetch_add(&e->h.holds, 1);
}

/* Notify the servers in the set `to` of e's completion. */
static void event_subscribe_servers(cl_event e, const struct server_set *to) REQUIRES(client_held)
{
        struct client *c = e->context->client;
        server_set_each(i, to)
        {
                struct server *s = c->servers[i];
                struct session *session = server_session(s);
                if (!session)
                        continue;
                int r = session_send(session, event_done, .event = e->id, .status = e->status);
                if (r < 0) /* commands there would wait for ever */
                        s->lost_status = r;
                server_send(s);
        }
}

void event_unhold(cl_event e)
{
        unsigned left = atomic_fetch_sub(&e->h.holds, 1) - 1;
        if (left == 1 && e->tracked && !e->watched && server_set_is_empty(&e->imported) &&
            e->parts == 1) {
                /* Only the map holds the event, and nothing will query it any more. */
                map_del(&e->context->client->events.pending, e->id);
                list_remove(&e->queue_link);
                atomic_store(&e->h.holds, 0);
        } else if (left) {
                return;
        }
        cl_context x = e->context;
        cl_command_queue q = e->queue;
        if (e->parts && !e->queue) {
                /* Nothing can set this user event any more: release the commands that wait for it. */
                e->status = CL_INVALID_EVENT;
                x->ahead.user_events--;
                event_subscribe_servers(e, &e->imported);
        }
        if (e->tail)
                e->tail->free(e->tail);
        while (e->callbacks) {
                struct event_callback *cb = e->callbacks;
                e->callbacks = cb->next;
                mem_free(cb);
        }
        handle_free(&e->h, sizeof(*e));
        if (q)
                queue_unhold(q);
        context_unhold(x);
}

bool event_is_done(void *event)
{
        cl_event e = event;
        return e->status <= CL_COMPLETE;
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static void callback_run(struct deferred *call)
{
        struct event_callback *cb = container_of(call, struct event_callback, call);
        struct client *c = cb->event->context->client;
        cb->fn(cb->event, cb->status, cb->user_data);
        client_lock(c);
        event_unhold(cb->event);
        client_unlock(c);
        mem_free(cb);
}

/* The callback is due: hand it to the progress thread. */
static void callback_defer(cl_event e, struct event_callback *cb) REQUIRES(client_held)
{
        cb->event = e;
        cb->status = e->status < 0 ? e->status : cb->type;
        event_hold(e);
        client_defer(e->context->client, &cb->call, callback_run);
}

int event_on(cl_event e, cl_int type, void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
             void *user_data)
{
        struct client *c = e->context->client;
        int r = e->status <= type ? 0 : event_watch(e);
        if (r < 0)
                return r;
        struct event_callback *cb = mem_alloc(sizeof(*cb));
        if (!cb)
                return SP_E_NOMEM;
        *cb = (struct event_callback){
                .next = e->callbacks, .type = type, .fn = fn, .user_data = user_data
        };
        if (e->status <= type) {
                callback_defer(e, cb);
                return 0;
        }
        if (!e->callbacks && e->server) {
                c->progress.interests++;
                progress_wake(c);
        }
        e->callbacks = cb;
        if (e->server)
                server_kick(e->server);
        return 0;
}

/* ---- completion ----------------------------------------------------------------------------- */

void event_complete(cl_event e, cl_int status)
{
        if (event_is_done(e))
                return;
        struct client *c = e->context->client;
        struct event_callback *callbacks = e->callbacks;
        e->status = status;
        e->parts = 0;
        e->callbacks = NULL;
        list_remove(&e->queue_link);
        if (e->ahead.since_ns)
                ahead_done(e);
        if (!e->queue)
                e->context->ahead.user_events--;
        if (callbacks && e->server)
                c->progress.interests--;
        if (e->tail)
                c->progress.interests--;
        struct event_callback *first = NULL; /* in order of registration */
        while (callbacks) {
                struct event_callback *cb = callbacks;
                callbacks = cb->next;
                cb->next = first;
                first = cb;
        }
        for (struct event_callback *next; first; first = next) {
                next = first->next;
                callback_defer(e, first);
        }
        /* The client notifies servers of user events, of events without a peer link, and of events
         * whose server is lost. */
        bool lost = e->server && e->server->state == SERVER_LOST;
        event_subscribe_servers(e, e->server && !lost ? &e->relay : &e->imported);
        client_changed(c);
        if (e->queue && e->queue->fence == e)
                e->queue->fence = NULL;
        release_followers(e);
        if (e->tracked) {
                e->tracked = false;
                map_del(&c->events.pending, e->id);
                event_unhold(e);
        }
}

void event_part_done(cl_event e, cl_int status)
{
        if (event_is_done(e))
                return;
        if (status < 0 && !e->result)
                e->result = status;
        if (--e->parts == 0)
                event_complete(e, e->result);
        else if (e->parts == 1 && e->tail)
                e->tail->run(e->tail, e, e->result);
}

void event_set_tail(cl_event e, struct event_tail *tail)
{
        struct client *c = e->context->client;
        e->tail = tail;
        e->lags = true;
        e->parts++;
        c->progress.interests++; /* it is to happen also when nobody waits */
        progress_wake(c);
}

int event_watch(cl_event e)
{
        struct session *session = e->watched || !e->server ? NULL : server_session(e->server);
        if (!session || event_is_done(e))
                return 0;
        int r = queue_watch_event(e->queue, session, e->id);
        e->watched = r == 0;
        return r;
}

void events_watch(cl_command_queue q)
{
        bool ordered = queue_in_order(q) && !q->failed, some = false;
        list_each(e, &q->commands, struct _cl_event, queue_link)
        {
                bool imported = !server_set_is_empty(&e->imported);
                some |= imported && !e->watched;
                /* The last one tells of all before it. */
                bool tells = ordered ? some && e->queue_link.next == &q->commands : imported;
                if (tells && event_watch(e) < 0)
                        e->server->lost_status = SP_E_NOMEM;
        }
}

void events_passed(cl_command_queue q, uint64_t id)
{
        queue_hold(q);
        list_each(e, &q->commands, struct _cl_event, queue_link)
        {
                if (e->id > id)
                        break;
                if (e->watched)
                        continue;
                e->watched = e->notified = true;
                event_part_done(e, CL_COMPLETE);
        }
        queue_unhold(q);
}

int event_set_user(cl_event e, cl_int status)
{
        if (!e->parts)
                return SP_E_BUSY;
        event_complete(e, status);
        return 0;
}

/* When the command ran, in the client's clock and in order whatever the clocks' error. */
static void take_times(cl_event e, const struct server *s, const uint64_t times[3], bool timed)
        REQUIRES(client_held)
{
        uint64_t now = client_now_ns(s->client), last = e->queued_ns;
        cl_ulong *to[3] = { &e->submit_ns, &e->start_ns, &e->end_ns };
        for (int i = 0; i < 3; i++) {
                uint64_t t = timed ? server_local_ns(s, times[i]) : now;
                if (t > now)
                        t = now;
                if (t < last)
                        t = last;
                *to[i] = last = t;
        }
}

int event_received(struct server *s, uint64_t id, cl_int status, uint64_t queue,
                   const uint64_t times[3], bool timed)
{
        struct client *c = s->client;
        TRACE(completed, id);
        cl_event e = map_get(&c->events.pending, id);
        int r = status < 0 ? incoming_failed(s, id) : 0;
        if (r < 0 || (e && (e->server != s || e->notified))) /* it has one word only */
                return r;
        if (e)
                e->watched = e->notified = true;
        cl_command_queue q = e ? e->queue : queue ? map_get(&c->queues, queue) : NULL;
        if (q && q->device->server == s) {
                bool first = status < 0 && !q->failed;
                q->failed |= status < 0;
                if (first)
                        events_watch(q);
                else if (!q->failed && id > q->completed)
                        q->completed = id;
                if (status == CL_COMPLETE && !q->failed && queue_in_order(q))
                        events_passed(q, id);
        }
        if (status < 0) {
                log_debug("client", "a command failed on %s: %d", server_name(s), status);
                TRACE(failed, id);
                recorder_trigger("a command failed on", server_name(s));
        }
        if ((!e || e->stands_in) && status < 0 && q && !q->deferred_error)
                q->deferred_error = status;
        if (status < 0 && q && !(e && e->ahead.guessed))
                ahead_failed(q, status);
        if (!e) {
                if (profile_is_on() && timed && status == CL_COMPLETE)
                        profile_moved(s, id, times);
                migration_ended(s, id, status, times, timed);
                if (status < 0 && !q)
                        arrival_failed(s, id);
                return 0;
        }
        if (e->queue->properties & CL_QUEUE_PROFILING_ENABLE || (profile_is_on() && timed))
                take_times(e, s, times, timed);
        if (profile_is_on() && timed && status == CL_COMPLETE)
                profile_timed(e);
        event_part_done(e, status);
        return 0;
}

void events_server_lost(struct server *s, const struct server_loss *loss)
{
        struct client *c = s->client;
        struct map_walk walk = { 0 };
        cl_event e;
        while ((e = map_walk_next(&c->events.pending, &walk))) {
                if (e->server != s)
                        continue;
                event_complete(e, CL_DEVICE_NOT_AVAILABLE);
                map_walk_changed(&walk);
        }
}

void events_relay(struct server *a, struct server *b)
{
        cl_event e;
        for (size_t pos = 0; (e = map_next(&a->client->events.pending, &pos));) {
                const struct server *to = e->server == a ? b : e->server == b ? a : NULL;
                if (to && server_set_has(&e->imported, to->index))
                        server_set_add(&e->relay, to->index);
                if (!server_set_is_empty(&e->relay) && event_watch(e) < 0)
                        e->server->lost_status = SP_E_NOMEM;
        }
}

/* ---- use in wait lists ---------------------------------------------------------------------- */

/* Must the client be notified of an event that servers pass to each other? The client may have to
 * pass it on later (events_relay), and must forget it some time. In an in-order queue a later event
 * implies all earlier ones, so it suffices to watch one in UNWATCHED. */
static bool to_be_watched(cl_event e)
{
        enum { UNWATCHED = 64 };
        cl_command_queue q = e->queue;
        if (!q || !queue_in_order(q) || q->failed || ++q->unwatched == UNWATCHED) {
                if (q)
                        q->unwatched = 0;
                return true;
        }
        return false;
}

int event_reach(cl_event e, struct server *s)
{
        if (e->status == CL_COMPLETE)
                return 0;
        if (e->server == s || server_set_has(&e->imported, s->index))
                return 1;
        struct session *to = server_session(s);
        if (!to)
                return SP_E_GONE;
        bool peers = e->server && !event_is_done(e) && server_introduce(e->server, s) == 0;
        int r = !peers || to_be_watched(e) ? event_watch(e) : 0;
        if (r < 0)
                return r;
        if (peers) {
                struct session *from = server_session(e->server);
                if (!from)
                        return SP_E_GONE;
                r = session_send(from, event_subscribe, .event = e->id, .peer = s->peers.id);
                if (r < 0)
                        return r;
                server_kick(e->server);
        }
        r = session_send(to, event_import, .event = e->id, .peer = peers ? e->server->peers.id : 0);
        if (r < 0)
                return r;
        server_set_add(&e->imported, s->index);
        if (!peers)
                server_set_add(&e->relay, s->index);
        if (!event_is_done(e))
                return 1;
        r = session_send(to, event_done, .event = e->id, .status = e->status);
        return r < 0 ? r : 1;
}

/* ---- waiting -------------------------------------------------------------------------------- */

cl_int event_status(cl_event e)
{
        if (!event_is_done(e))
                ahead_settle(e->context);
        if (!event_is_done(e)) {
                /* The first query watches the event. When the server has answered a message after
                 * the watch, the client knows whether the event is complete. From then on the
                 * server notifies it. */
                if (!e->watched && event_watch(e) == 0 && e->watched)
                        (void)!server_round_trip(e->server);
                client_poll(e->context->client);
        }
        return e->status;
}

bool event_is_settled(void *event)
{
        cl_event e = event;
        return event_is_done(e) || (e->server && server_fails(e->server));
}

struct events_wait {
        struct client *client;
        cl_uint count;
        const cl_event *events;
        bool refused;
};

/* Is one of them of a server that is disconnected? */
static bool any_refused(const struct events_wait *w) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < w->count; i++)
                if (!event_is_done(w->events[i]) && event_is_settled(w->events[i]))
                        return true;
        return false;
}

static bool all_done(void *arg) REQUIRES(client_held)
{
        struct events_wait *w = arg;
        w->refused = w->client->disconnected.count && any_refused(w);
        if (w->refused)
                return true;
        /* From the end: the last is mostly the last to finish. */
        while (w->count) {
                if (!event_is_done(w->events[w->count - 1]))
                        return false;
                w->count--;
        }
        return true;
}

/* Return the event that completed last, as far as their times tell. */
static cl_event last_of(cl_uint count, const cl_event *events)
{
        cl_event last = events[count - 1];
        for (cl_uint i = 0; i < count; i++)
                if (events[i]->end_ns > last->end_ns)
                        last = events[i];
        return last;
}

/* Count them as waited for, if nobody can tell. */
static bool wait_ahead(cl_uint count, const cl_event *events) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < count; i++)
                if (!ahead_may_wait(events[i]))
                        return false;
        for (cl_uint i = 0; i < count; i++) {
                if (event_is_done(events[i]))
                        continue;
                events[i]->ahead.waited = true;
                ahead_add(events[i]);
        }
        ahead_limit(events[0]->context);
        return true;
}

cl_int events_wait(struct client *c, cl_uint count, const cl_event *events)
{
        struct events_wait w = { c, count, events, false };
        for (cl_uint i = 0; i < count; i++) {
                int r = event_watch(events[i]);
                if (r < 0)
                        return status_to_cl(r);
        }
        if (count && events[0]->context->ahead.allowed && wait_ahead(count, events))
                return CL_SUCCESS;
        for (cl_uint i = 0; i < count; i++) {
                event_hold(events[i]);
                cl_command_queue q = events[i]->queue;
                bool timed =
                        q && (q->properties & CL_QUEUE_PROFILING_ENABLE || profile_is_timing());
                if (timed && !event_is_done(events[i]))
                        server_ask_clock(q->device->server);
        }
        client_wait(c, all_done, &w);
        if (profile_is_on() && count) {
                cl_event last = last_of(count, events);
                profile_wait_was(PROFILE_EVENTS, last->server, last, 0);
        }
        if (count)
                views_waited(events[0]->context);
        bool failed = false;
        for (cl_uint i = 0; i < count; i++) {
                failed |= events[i]->status < 0;
                event_unhold(events[i]);
        }
        if (w.refused)
                return CL_DEVICE_NOT_AVAILABLE;
        return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}
