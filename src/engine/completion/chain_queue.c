#include "engine/completion/chain_queue.h"

#include "base/mem.h"
#include "engine/command/event.h"

enum { CHAIN_MIN = 4 }; /* launches in a row that each wait for the one before */

/* Make a chain queue. The engine treats it as a queue of its own, but the client knows only `q`. */
static struct queue *chain_queue_new(struct queue *q)
{
        struct queue *s;
        if (engine_queue_like(q, &s) < 0)
                return NULL;
        s->in_order = s->is_chain = true;
        struct engine *e = q->object.engine;
        s->status = e->be->queue.create(e->backend, q->device, 0, &s->native);
        return s;
}

/* Does the launch continue a chain, in which each launch waits for the one before? */
static bool continues_chain(struct queue *q, uint64_t event, struct wire_u64s waits)
{
        uint64_t before = q->last_launch;
        bool next = false;
        for (size_t i = 0; i < waits.count && i < CHAIN_WAITS_MAX; i++)
                next |= wire_u64s_at(waits, i) == before;
        q->last_launch = event;
        q->chain = next ? q->chain + 1 : 0;
        return q->chain >= CHAIN_MIN && waits.count <= CHAIN_WAITS_MAX;
}

/* Collect the native events of the waits that are not complete. The queue's order covers `newest`.
 * False: one of them can't be waited for natively. */
static bool take_deps(struct queue *q, struct wire_u64s waits, uint64_t newest,
                      struct chain_deps *ret) REQUIRES(engine_held)
{
        for (size_t i = 0; i < waits.count; i++) {
                uint64_t id = wire_u64s_at(waits, i);
                const struct event *ev =
                        id == newest ? NULL : engine_event_find(q->object.engine, id);
                if (!ev || (ev->state == EVENT_DONE && ev->status >= 0))
                        continue;
                if (ev->state != EVENT_SUBMITTED || ev->domain != q->domain || !ev->native)
                        return false;
                ret->native[ret->count++] = ev->native;
        }
        return true;
}

struct queue *engine_chain_take(struct queue *q, uint64_t event, struct wire_u64s waits,
                                struct chain_deps *ret)
{
        ret->count = 0;
        if (q->in_order || !q->failure_stays || q->profiling || q->recording ||
            engine_has_observers(q->object.engine) || engine_event_among(event, waits))
                return NULL;
        uint64_t before = q->last_launch;
        if (!continues_chain(q, event, waits) || !list_empty(&q->fences) || !list_empty(&q->held))
                return NULL;
        struct queue *s = q->chain_queue;
        if (!s)
                s = q->chain_queue = chain_queue_new(q);
        if (!s || s->forked || s->status < 0)
                return NULL;
        /* Launches of another chain would have to wait for the chain that is there. */
        if (before != s->untracked.newest && s->running)
                return NULL;
        return take_deps(q, waits, s->untracked.newest, ret) ? s : NULL;
}

cl_int engine_chain_join(struct queue *q)
{
        struct queue *s = q->chain_queue;
        struct engine *e = q->object.engine;
        struct backend_command marker = { .op = BACKEND_MARKER };
        struct backend_event *behind = NULL, *composite = NULL;
        if (!s || !s->running)
                return CL_SUCCESS;
        cl_int status = e->be->submit(s->native, &marker, &behind);
        if (status < 0)
                return status;
        marker.deps = &behind;
        marker.dep_count = 1;
        status = e->be->submit(q->native, &marker, &composite);
        e->be->event.release(behind);
        if (status >= 0)
                e->be->event.release(composite);
        engine_queue_dirty(s);
        return status;
}
