#include "engine/command/event.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/completion/coalesced.h"
#include "engine/completion/untracked.h"
#include "trace/trace.h"

/* Another server to notify of the event. */
struct subscriber {
        struct subscriber *next;
        struct peer *peer;
};

static struct event *event_alloc(struct engine *e, uint64_t id)
{
        struct event *ev = pool_get(&e->events.pool, sizeof(*ev));
        if (!ev)
                return NULL;
        ev->engine = e;
        ev->id = id;
        list_init(&ev->dependents);
        list_init(&ev->link);
        return ev;
}

int engine_event_new(struct engine *e, uint64_t id, struct event **ret)
{
        if (map_get(&e->events.table, id))
                return SP_E_PROTO;
        if (e->events.table.count + e->events.nameless + e->completion.untracked >=
            ENGINE_EVENTS_MAX)
                return SP_E_LIMIT;
        struct event *ev = event_alloc(e, id);
        if (!ev)
                return SP_E_NOMEM;
        int r = map_put(&e->events.table, id, ev);
        if (r < 0) {
                pool_put(&e->events.pool, ev);
                return r;
        }
        *ret = ev;
        return 0;
}

int engine_event_new_nameless(struct engine *e, struct event **ret)
{
        if (e->events.table.count + e->events.nameless >= ENGINE_EVENTS_MAX)
                return SP_E_LIMIT;
        struct event *ev = event_alloc(e, 0);
        if (!ev)
                return SP_E_NOMEM;
        e->events.nameless++;
        *ret = ev;
        return 0;
}

struct event *engine_event_find(struct engine *e, uint64_t id)
{
        struct event *ev = map_get(&e->events.table, id);
        return ev || list_empty(&e->completion.untracked_queues) ? ev
                                                                 : engine_untracked_find(e, id);
}

static void event_free(struct event *ev)
{
        while (ev->subscribers) {
                struct subscriber *s = ev->subscribers;
                ev->subscribers = s->next;
                mem_free(s);
        }
        if (ev->native)
                ev->engine->be->event.release(ev->native);
        list_remove(&ev->link);
        pool_put(&ev->engine->events.pool, ev);
}

static void event_forget(struct event *ev) REQUIRES(engine_held)
{
        if (ev->id)
                map_del(&ev->engine->events.table, ev->id);
        else
                ev->engine->events.nameless--;
        event_free(ev);
}

void engine_event_discard(struct event *ev)
{
        list_each(d, &ev->dependents, struct dependency, link)
        {
                engine_event_drop(d);
        }
        event_forget(ev);
}

/* Append to a list of remembered events and forget the oldest past `max`. */
static void event_keep(struct event *ev, struct list *list, size_t *count, size_t max)
        REQUIRES(engine_held)
{
        list_append(list, &ev->link);
        if (++*count <= max)
                return;
        event_forget(list_entry(list->next, struct event, link));
        --*count;
}

/* Keep an event that its peer completed before its import. If there are too many, the oldest are
 * forgotten. A command would wait for a forgotten one for ever, so later imports from that peer up
 * to its id fail. */
static void event_keep_early(struct event *ev) REQUIRES(engine_held)
{
        struct engine *e = ev->engine;
        if (e->events.early_count == ENGINE_EARLY_MAX) {
                const struct event *oldest = list_entry(e->events.early.next, struct event, link);
                struct peer *p = engine_peer_find(e, oldest->origin);
                if (!p->forgotten)
                        log_warn("engine", "a peer tells of too many unknown events: some fail");
                if (oldest->id > p->forgotten)
                        p->forgotten = oldest->id;
        }
        event_keep(ev, &e->events.early, &e->events.early_count, ENGINE_EARLY_MAX);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool event_is_native(const struct event *ev, unsigned domain)
{
        return ev->state == EVENT_SUBMITTED && ev->domain == domain;
}

bool engine_event_among(uint64_t id, struct wire_u64s waits)
{
        for (size_t i = 0; i < waits.count; i++)
                if (wire_u64s_at(waits, i) == id)
                        return true;
        return false;
}

int engine_event_depend(struct engine *e, uint64_t id, unsigned domain, struct dependency *d)
{
        struct event *ev = engine_event_find(e, id);
        if (!ev)
                return 0;
        if (ev->state == EVENT_DONE)
                return ev->status < 0 ? ev->status : 0;
        engine_event_join(ev, domain, d);
        return 1;
}

void engine_event_join(struct event *ev, unsigned domain, struct dependency *d)
{
        d->event = ev;
        d->blocking = !event_is_native(ev, domain);
        if (d->blocking)
                engine_event_observe(ev);
        list_append(&ev->dependents, &d->link);
}

void engine_event_observe(struct event *ev)
{
        if (ev->unreported)
                engine_coalesced_report(ev->unreported);
}

bool engine_event_is_observed(const struct event *ev, unsigned domain)
{
        if (ev->notify || ev->subscribers)
                return true;
        list_each(d, &ev->dependents, struct dependency, link)
        {
                if (d->command->queue->domain != domain)
                        return true;
        }
        return false;
}

void engine_event_drop(struct dependency *d)
{
        if (!d->event)
                return;
        list_remove(&d->link);
        d->event = NULL;
        d->blocking = false;
}

void engine_event_submitted(struct event *ev, struct backend_event *native, unsigned domain)
{
        ev->state = EVENT_SUBMITTED;
        ev->native = native;
        ev->domain = domain;
        list_each(d, &ev->dependents, struct dependency, link)
        {
                if (d->blocking && d->command->queue->domain == domain &&
                    !engine_command_waits_here(d->command))
                        engine_command_unblock(d, 0);
        }
}

static void notify_subscribers(struct event *ev) REQUIRES(engine_held)
{
        for (struct subscriber *s = ev->subscribers; s; s = s->next)
                if (!s->peer->lost)
                        peer_send(s->peer, event_done, .event = ev->id, .status = ev->status);
}

static void notify_client(const struct event *ev, const struct backend_times *t)
        REQUIRES(engine_held)
{
        uint64_t times[3] = { 0 };
        TRACE(notify, ev->id);
        if (t) {
                times[0] = t->submit_ns;
                times[1] = t->start_ns;
                times[2] = t->end_ns;
        }
        peer_send(engine_client(ev->engine), event_done, .event = ev->id, .status = ev->status,
                  .queue = ev->queue, .times = { times, t && t->end_ns ? 3 : 0 });
}

void engine_event_complete(struct event *ev, cl_int status, const struct backend_times *times)
{
        struct engine *e = ev->engine;
        ev->state = EVENT_DONE;
        ev->status = status;
        /* The client knows how its own events completed, and it hears about other servers' events
         * from them. */
        if (ev->notify || (status < 0 && !ev->imported && ev->id))
                notify_client(ev, times);
        notify_subscribers(ev);
        while (!list_empty(&ev->dependents)) {
                struct dependency *d = list_entry(ev->dependents.next, struct dependency, link);
                list_remove(&d->link);
                d->event = NULL;
                engine_command_unblock(d, status);
        }
        if (status < 0 && ev->id)
                event_keep(ev, &e->events.failed, &e->events.failed_count, ENGINE_FAILED_MAX);
        else
                event_forget(ev);
}

void engine_event_fail_origin(struct engine *e, uint64_t peer, cl_int status)
{
        /* Completion changes the table, so collect the events first. */
        struct list lost;
        list_init(&lost);
        size_t pos = 0;
        struct event *ev;
        while ((ev = map_next(&e->events.table, &pos)))
                if (ev->imported && ev->origin == peer && ev->state != EVENT_DONE)
                        list_append(&lost, &ev->link);
        while (!list_empty(&lost)) {
                ev = list_entry(lost.next, struct event, link);
                list_remove(&ev->link);
                engine_event_complete(ev, status, NULL);
        }
}

void engine_event_free_all(struct engine *e)
{
        size_t pos = 0;
        struct event *ev;
        while ((ev = map_next(&e->events.table, &pos)))
                event_free(ev);
        map_fini(&e->events.table);
        e->events.failed_count = e->events.early_count = 0;
}

/* ---- messages ------------------------------------------------------------------------------- */

int engine_handle_event_import(void *user, const struct wire_event_import *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *origin = engine_peer_find(e, m->peer);
        if (!origin)
                return SP_E_PROTO;
        struct event *ev = engine_event_find(e, m->event);
        if (ev) {
                if (ev->state != EVENT_DONE || ev->imported)
                        return SP_E_PROTO;
                /* Its completion came before this import. */
                list_remove(&ev->link);
                e->events.early_count--;
                ev->imported = true;
                if (ev->status < 0)
                        event_keep(ev, &e->events.failed, &e->events.failed_count,
                                   ENGINE_FAILED_MAX);
                else
                        event_forget(ev);
                return 0;
        }
        int r = engine_event_new(e, m->event, &ev);
        if (r < 0)
                return r;
        ev->imported = true;
        ev->origin = m->peer;
        if (origin->lost)
                engine_event_complete(ev, CL_DEVICE_NOT_AVAILABLE, NULL);
        else if (m->event <= origin->forgotten)
                engine_event_complete(ev, CL_OUT_OF_RESOURCES, NULL);
        return 0;
}

int engine_handle_event_done(void *user, const struct wire_event_done *m)
{
        struct peer *p = user;
        struct engine *e = p->engine;
        cl_int status = m->status < 0 ? m->status < INT32_MIN ? INT32_MIN : (cl_int)m->status : 0;
        struct event *ev = engine_event_find(e, m->event);
        if (ev && ev->state == EVENT_DONE)
                return 0; /* a second notification */
        if (ev) {
                if (!ev->imported)
                        return SP_E_PROTO; /* a command of this server */
                engine_event_complete(ev, status, NULL);
                return 0;
        }
        /* The client sends an import before its completion, so this event is long complete. */
        if (!p->id)
                return 0;
        int r = engine_event_new(e, m->event, &ev);
        if (r < 0)
                return r;
        ev->state = EVENT_DONE;
        ev->status = status;
        ev->origin = p->id;
        event_keep_early(ev);
        return 0;
}

int engine_handle_event_subscribe(void *user, const struct wire_event_subscribe *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p = engine_peer_find(e, m->peer);
        struct event *ev = engine_event_find(e, m->event);
        if (!p)
                return SP_E_PROTO;
        if (p->lost)
                return 0;
        if (!ev || ev->state == EVENT_DONE) {
                peer_send(p, event_done, .event = m->event, .status = ev ? ev->status : 0);
                return 0;
        }
        for (struct subscriber *s = ev->subscribers; s; s = s->next)
                if (s->peer == p)
                        return 0;
        struct subscriber *s = mem_alloc(sizeof(*s));
        if (!s)
                return SP_E_NOMEM;
        *s = (struct subscriber){ ev->subscribers, p };
        ev->subscribers = s;
        engine_event_observe(ev);
        return 0;
}

int engine_handle_event_watch(void *user, const struct wire_event_watch *m)
{
        struct peer *p = user;
        struct event *ev = engine_event_find(p->engine, m->event);
        if (ev && ev->state != EVENT_DONE) {
                ev->notify = true;
                engine_event_observe(ev);
                return 0;
        }
        /* Failures are sent unasked. */
        if (!ev)
                peer_send(p, event_done, .event = m->event, .status = 0);
        return 0;
}
