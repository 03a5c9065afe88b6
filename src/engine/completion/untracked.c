#include "engine/completion/untracked.h"

#include "base/mem.h"
#include "engine/command/command.h"
#include "trace/trace.h"

static struct untracked_entry *entry_at(const struct untracked *s, uint64_t number)
{
        return &s->entries[number & (s->cap - 1)];
}

bool engine_untracked_allowed(const struct queue *q, uint64_t event)
{
        /* If the session has a run-time limit, or an observer (observed.h), every command's completion is reported, so
         * none is untracked. Ids must grow, because bisection finds them. */
        return !engine_limit_times(q->object.engine) && !engine_has_observers(q->object.engine) &&
               q->in_order && !q->profiling && !q->recording && q->native && q->status >= 0 &&
               list_empty(&q->held) && event > q->untracked.newest;
}

static bool grow(struct untracked *s)
{
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct untracked old = *s;
        if (s->end - s->first < s->cap)
                return true;
        s->entries = mem_alloc(cap * sizeof(*s->entries));
        if (!s->entries) {
                s->entries = old.entries;
                return false;
        }
        s->cap = cap;
        for (uint64_t n = s->first; n < s->end; n++)
                *entry_at(s, n) = *entry_at(&old, n);
        mem_free(old.entries);
        return true;
}

bool engine_untracked_submit(struct queue *q, uint64_t event, struct backend_command *n)
{
        struct engine *e = q->object.engine;
        struct untracked *s = &q->untracked;
        if (e->events.table.count + e->events.nameless + e->completion.untracked >=
                    ENGINE_EVENTS_MAX ||
            !grow(s))
                return false;
        struct backend_event *native = NULL;
        n->untracked = true;
        TRACE_SPAN(submit, event);
        if (e->be->submit(q->native, n, &native) < 0)
                return false;
        if (list_empty(&s->link)) {
                list_append(&e->completion.untracked_queues, &s->link);
                engine_object_ref(&q->object);
        }
        *entry_at(s, s->end++) = (struct untracked_entry){ event, native, false };
        s->newest = event;
        e->completion.untracked++;
        e->commands.running++;
        engine_usage_begin(q);
        engine_queue_dirty(q);
        return true;
}

static void drop_oldest(struct queue *q) REQUIRES(engine_held)
{
        struct engine *e = q->object.engine;
        struct untracked_entry *entry = entry_at(&q->untracked, q->untracked.first++);
        if (entry->native)
                e->be->event.release(entry->native);
        e->completion.untracked--;
        e->commands.running--;
        engine_usage_end(q);
}

/* Release the queue when it has no untracked commands left. */
static void let_go(struct queue *q) REQUIRES(engine_held)
{
        list_remove(&q->untracked.link);
        engine_object_unref(&q->object);
}

/* The untracked command with event `id` has failed: keep its event. */
static void fail(struct queue *q, uint64_t id, cl_int status) REQUIRES(engine_held)
{
        struct engine *e = q->object.engine;
        struct event *ev;
        int r = engine_event_new(e, id, &ev);
        if (r < 0) {
                e->status = e->status ? e->status : r;
                return;
        }
        ev->queue = q->object.id;
        engine_event_complete(ev, status, NULL);
}

/* The status of an untracked command. Without a native event of its own it has that of the command
 * that reported it. It may not be the first that failed, but then the context is lost. In a real
 * in-order queue no message can name it, so success is good enough. */
static cl_int status_of(const struct queue *q, const struct untracked_entry *entry, cl_int told)
{
        if (entry->native)
                return q->object.engine->be->event.status(entry->native);
        return q->is_chain ? told : CL_COMPLETE;
}

void engine_untracked_passed(struct queue *q, uint64_t end, cl_int told)
{
        struct engine *e = q->object.engine;
        struct untracked *s = &q->untracked;
        if (s->first >= end)
                return;
        while (s->first < end) {
                const struct untracked_entry entry = *entry_at(s, s->first);
                cl_int status = status_of(q, &entry, told);
                drop_oldest(q);
                if (status < 0 && !entry.named)
                        fail(q, entry.event, status);
        }
        engine_command_output(e);
        if (s->end > s->covered)
                engine_queue_dirty(q);
        if (s->first == s->end)
                let_go(q);
}

/* Give entry `number` its event. A marker behind all submitted commands reports its completion. */
static struct event *name(struct queue *q, uint64_t number) REQUIRES(engine_held)
{
        struct engine *e = q->object.engine;
        struct untracked_entry *entry = entry_at(&q->untracked, number);
        uint64_t id = entry->event;
        struct event *ev;
        struct command *c;
        int r = engine_event_new(e, id, &ev);
        if (r < 0) { /* no command could wait for it */
                e->status = e->status ? e->status : r;
                return NULL;
        }
        ev->queue = q->object.id;
        entry->named = true;
        cl_int status = engine_command_marker(q, &c);
        if (status < 0) { /* the native queue can't be used any more */
                engine_object_ref(&q->object);
                engine_untracked_passed(q, q->untracked.end, status);
                engine_event_complete(ev, status, NULL);
                engine_object_unref(&q->object); /* which may free the entries */
                return map_get(&e->events.table, id);
        }
        c->event = ev;
        c->outcome.stands_in = true;
        struct backend_event *native =
                entry->native ? steal(entry->native) : steal(c->submission.last);
        engine_event_submitted(ev, native, q->domain);
        return ev;
}

/* The first entry that is not older than `id`. */
static uint64_t bisect(const struct untracked *s, uint64_t id)
{
        uint64_t low = s->first, high = s->end;
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                if (entry_at(s, middle)->event < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

struct event *engine_untracked_find(struct engine *e, uint64_t id)
{
        list_each(s, &e->completion.untracked_queues, struct untracked, link)
        {
                if (id > s->newest || id < entry_at(s, s->first)->event)
                        continue;
                uint64_t number = bisect(s, id);
                if (number == s->end || entry_at(s, number)->event != id ||
                    entry_at(s, number)->named)
                        continue;
                struct queue *q = container_of(s, struct queue, untracked);
                /* A command that waits for it now waits for the launches behind it, too. Once is
                 * enough to stop using the chain queue. */
                q->forked |= number + 1 != s->end;
                return name(q, number);
        }
        return NULL;
}

void engine_untracked_cover(struct queue *q)
{
        const struct untracked *s = &q->untracked;
        /* One report at a time is enough: this function runs again after it. */
        if (s->end > s->covered && q->running == s->end - s->first)
                name(q, s->end - 1);
}

int engine_untracked_keep(struct buffer *b)
{
        struct engine *e = b->object.engine;
        list_each(s, &e->completion.untracked_queues, struct untracked, link)
        {
                struct queue *q = container_of(s, struct queue, untracked);
                struct event *ev;
                struct command *c;
                int r = engine_event_new_nameless(e, &ev);
                if (r < 0)
                        return r;
                if (engine_command_marker(q, &c) < 0) { /* the queue executes nothing any more */
                        engine_event_discard(ev);
                        continue;
                }
                c->event = ev;
                c->desc.buffer = b;
                engine_object_ref(&b->object);
                engine_event_submitted(ev, steal(c->submission.last), q->domain);
        }
        return 0;
}

void engine_untracked_abandon(struct engine *e)
{
        while (!list_empty(&e->completion.untracked_queues)) {
                struct untracked *s =
                        list_entry(e->completion.untracked_queues.next, struct untracked, link);
                struct queue *q = container_of(s, struct queue, untracked);
                while (s->first < s->end)
                        drop_oldest(q);
                let_go(q);
        }
}
