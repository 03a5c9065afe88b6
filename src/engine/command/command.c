#include "engine/command/command.h"

#include <limits.h>

#include "base/mem.h"
#include "engine/command/recording.h"
#include "engine/command/submission.h"
#include "engine/completion/completion.h"
#include "engine/completion/early_completion.h"
#include "engine/transfer/reroute.h"

/* ---- making and ending ---------------------------------------------------------------------- */

/* Release what the command holds, except memory that native parts in flight may use. */
static void command_release(struct command *c) REQUIRES(engine_held)
{
        if (c->queue)
                engine_early_completion_left(c);
        list_remove(&c->ready);
        list_remove(&c->submission.over_quota);
        list_remove(&c->submission.room);
        list_remove(&c->outcome.order);
        for (size_t i = 0; i < c->deps.count; i++)
                engine_event_drop(&c->deps.list[i]);
        for (size_t i = 0; i < c->desc.arg_count; i++) {
                engine_value_unref(c->desc.args[i]);
                engine_object_unref(c->desc.arg_objects[i]);
        }
        struct object *held[] = {
                c->desc.buffer ? &c->desc.buffer->object : NULL,
                c->desc.source ? &c->desc.source->object : NULL,
                c->desc.kernel ? &c->desc.kernel->object : NULL,
                c->desc.content ? &c->desc.content->object : NULL,
        };
        for (size_t i = 0; i < array_size(held); i++)
                engine_object_unref(held[i]);
        if (c->submission.last)
                c->queue->object.engine->be->event.release(c->submission.last);
        list_remove(&c->outcome.unreported);
        while (!list_empty(&c->outcome.coalesced)) /* no longer needed */
                list_remove(c->outcome.coalesced.next);
        if (c->event)
                c->event->unreported = NULL;
        if (c->event && !c->event->id)
                engine_event_discard(c->event);
        if (c->queue)
                engine_object_unref(&c->queue->object);
        c->deps.count = c->desc.arg_count = 0;
        c->desc.buffer = c->desc.source = c->desc.content = NULL;
        c->desc.kernel = NULL;
        c->submission.last = NULL;
        c->event = NULL;
        c->queue = NULL;
}

void engine_command_free(struct command *c)
{
        command_release(c);
        if (c->batch)
                engine_batch_unref(c->batch);
        if (c->submission.given_up)
                engine_reroute_settled(c);
        if (c->submission.transfer)
                engine_transfer_leave(c->submission.transfer, c);
        list_remove(&c->link);
        if (c->pool)
                pool_put(c->pool, c);
        else
                mem_free(c);
}

void engine_command_abandon_all(struct engine *e)
{
        list_each(c, &e->commands.all, struct command, link)
        {
                command_release(c);
        }
}

void engine_command_free_all(struct engine *e)
{
        while (!list_empty(&e->commands.all))
                engine_command_free(list_entry(e->commands.all.next, struct command, link));
}

/* With so many commands in flight, a native marker is too slow. A marker with a wait list then
 * waits here until that list is complete. */
bool engine_command_waits_here(const struct command *c)
{
        return c->desc.marks && c->queue->running > c->queue->marker_max;
}

void engine_command_depend(struct command *c, struct wire_u64s waits)
{
        bool failed = false;
        unsigned domain = engine_command_waits_here(c) ? UINT_MAX : c->queue->domain;
        for (size_t i = 0; i < waits.count; i++) {
                struct dependency *d = &c->deps.list[c->deps.count];
                list_init(&d->link);
                d->command = c;
                int r = engine_event_depend(c->queue->object.engine, wire_u64s_at(waits, i), domain,
                                            d);
                d->strict = c->deps.strict && i + 1 == waits.count;
                if (r > 0) {
                        c->deps.count++;
                        c->deps.blocking += d->blocking;
                }
                failed |= r < 0 && (d->strict || !c->deps.regardless);
        }
        if (failed)
                engine_command_fail(c, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
}

const size_t engine_command_block = sizeof(struct command) + 256;

static struct command *command_alloc(struct queue *q, size_t deps, size_t args)
{
        size_t tail = deps * sizeof(struct dependency) +
                      args * (sizeof(struct value *) + sizeof(struct object *));
        struct engine *e = q->object.engine;
        bool small = sizeof(struct command) + tail <= engine_command_block;
        struct command *c = small ? pool_get(&e->commands.pool, sizeof(*c) + tail)
                                  : mem_zalloc(sizeof(*c) + tail);
        if (!c)
                return NULL;
        c->pool = small ? &e->commands.pool : NULL;
        struct list *lists[] = { &c->ready,
                                 &c->held,
                                 &c->barrier,
                                 &c->outcome.unreported,
                                 &c->outcome.coalesced,
                                 &c->submission.over_quota,
                                 &c->submission.room,
                                 &c->outcome.order };
        for (size_t i = 0; i < array_size(lists); i++)
                list_init(lists[i]);
        list_append(&e->commands.all, &c->link);
        c->queue = q;
        engine_object_ref(&q->object);
        c->deps.list = (struct dependency *)(c + 1);
        c->desc.args = (struct value **)(c->deps.list + deps);
        c->desc.arg_objects = (struct object **)(c->desc.args + args);
        c->desc.arg_count = args;
        return c;
}

int engine_command_new(struct engine *e, const struct command_params *params, struct command **ret)
{
        struct queue *q = engine_queue_find(e, params->queue);
        if (!q || engine_event_among(params->event, params->waits))
                return SP_E_PROTO;
        if (e->commands.held >= ENGINE_HELD_MAX)
                return SP_E_LIMIT;
        struct command *c = command_alloc(q, params->waits.count, params->arg_count);
        if (!c)
                return SP_E_NOMEM;
        int r = q->recording ? engine_recording_add(c, params)
                             : engine_event_new(e, params->event, &c->event);
        if (r < 0) {
                engine_command_free(c);
                return r;
        }
        *ret = c;
        if (q->recording)
                return 0;
        c->event->notify = params->flags & COMMAND_NOTIFY;
        c->event->queue = q->object.id;
        if (params->marker && !q->in_order) {
                c->desc.is_barrier = params->flags & COMMAND_BARRIER;
                c->desc.after_all = !params->waits.count;
                c->desc.marks = params->waits.count;
        }
        c->deps.regardless = params->flags & COMMAND_REGARDLESS;
        c->deps.strict = params->flags & COMMAND_FOLLOW;
        c->desc.wide = params->flags & COMMAND_WIDE;
        engine_command_depend(c, params->waits);
        if (q->status < 0)
                engine_command_fail(c, q->status);
        return 0;
}

/* Copy the operation to submit; `like` keeps everything that it points to. */
static void copy_what(struct command *c, const struct command *like)
{
        struct backend_command *n = &c->desc.native;
        *n = like->desc.native;
        memcpy(c->desc.offset, like->desc.offset, sizeof(c->desc.offset));
        memcpy(c->desc.global, like->desc.global, sizeof(c->desc.global));
        memcpy(c->desc.local, like->desc.local, sizeof(c->desc.local));
        memcpy(c->desc.pattern, like->desc.pattern, sizeof(c->desc.pattern));
        n->offset = n->offset ? c->desc.offset : NULL;
        n->global = n->global ? c->desc.global : NULL;
        n->local = n->local ? c->desc.local : NULL;
        n->pattern = n->pattern ? c->desc.pattern : NULL;
        c->desc.buffer = like->desc.buffer;
        c->desc.source = like->desc.source;
        c->desc.kernel = like->desc.kernel;
        struct object *objects[] = {
                c->desc.buffer ? &c->desc.buffer->object : NULL,
                c->desc.source ? &c->desc.source->object : NULL,
                c->desc.kernel ? &c->desc.kernel->object : NULL,
        };
        for (size_t i = 0; i < array_size(objects); i++)
                if (objects[i])
                        engine_object_ref(objects[i]);
        for (size_t i = 0; i < like->desc.arg_count; i++) {
                c->desc.args[i] = like->desc.args[i];
                engine_value_ref(c->desc.args[i]);
                c->desc.arg_objects[i] = like->desc.arg_objects[i];
                if (c->desc.arg_objects[i])
                        engine_object_ref(c->desc.arg_objects[i]);
        }
        c->outcome.status = like->outcome.status;
}

int engine_command_copy(struct queue *q, const struct command *like, size_t deps, size_t args,
                        struct command **ret)
{
        if (q->object.engine->commands.held >= ENGINE_HELD_MAX)
                return SP_E_LIMIT;
        struct command *c = command_alloc(
                q, deps, like && like->desc.arg_count > args ? like->desc.arg_count : args);
        if (!c)
                return SP_E_NOMEM;
        if (like)
                copy_what(c, like);
        *ret = c;
        return 0;
}

void engine_command_output(struct engine *e)
{
        if (!e->programs.prints || !e->params.ops->output)
                return;
        struct buf text = { 0 };
        e->params.ops->output(e->params.user, &text);
        for (size_t at = 0; at < text.size;) {
                size_t n = text.size - at < WIRE_TEXT_MAX ? text.size - at : WIRE_TEXT_MAX;
                peer_send(engine_client(e), output, .text = bytes_of(text.data + at, n));
                at += n;
        }
        buf_fini(&text);
}

/* ---- holding -------------------------------------------------------------------------------- */

void engine_command_poke(struct command *c)
{
        if (!engine_command_in_queue(c) || !list_empty(&c->ready))
                return;
        if (c->state == COMMAND_HELD)
                engine_command_set_state(c, COMMAND_READY);
        list_append(&c->event->engine->commands.ready, &c->ready);
}

void engine_command_poke_launches(const struct program *p)
{
        list_each(c, &p->object.engine->commands.all, struct command, link)
        {
                if (c->desc.kernel && c->desc.kernel->program == p)
                        engine_command_poke(c);
        }
}

void engine_command_fail(struct command *c, cl_int status)
{
        if (c->outcome.status >= 0)
                c->outcome.status = status;
}

void engine_command_unblock(struct dependency *d, cl_int status)
{
        struct command *c = d->command;
        if (d->blocking) {
                d->blocking = false;
                c->deps.blocking--;
        }
        if (d->strict)
                c->deps.follows = NULL;
        if (status < 0 && (d->strict || !c->deps.regardless))
                engine_command_fail(c, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        if (!c->deps.blocking)
                engine_command_poke(c);
        engine_early_completion_check(c);
}

void engine_command_follow(struct command *c)
{
        struct dependency *d = c->deps.count ? &c->deps.list[c->deps.count - 1] : NULL;
        if (!d || !d->strict || !d->blocking || c->desc.native.op != BACKEND_READ)
                return;
        /* A write that waits for its bytes: its transfer has the id of its event. */
        const struct transfer *t = map_get(&c->queue->object.engine->transfers.table, d->event->id);
        struct command *w = t ? t->writer : NULL;
        if (!w || w->event != d->event || w->queue->domain != c->queue->domain ||
            w->queue->in_order || c->queue->in_order || w->desc.buffer != c->desc.buffer ||
            w->desc.native.op != BACKEND_WRITE ||
            c->desc.native.offset_bytes < w->desc.native.offset_bytes ||
            c->desc.native.offset_bytes + c->desc.native.size >
                    w->desc.native.offset_bytes + w->desc.native.size)
                return;
        c->deps.follows = w;
        d->blocking = false;
        c->deps.blocking--;
}

bool engine_command_waits(const struct command *c)
{
        for (size_t i = 0; i < c->deps.count; i++)
                if (c->deps.list[i].event)
                        return true;
        return false;
}

static struct command *queue_head(const struct queue *q)
{
        return list_empty(&q->held) ? NULL : list_entry(q->held.next, struct command, held);
}

/* May the command be submitted? Neither an earlier command nor a dependency holds it back. */
static bool command_may_go(const struct command *c)
{
        const struct queue *q = c->queue;
        if (c->deps.blocking || (c->desc.kernel && c->desc.kernel->program->loading))
                return false;
        if (c->desc.after_all && q->running > q->marker_max)
                return false;
        if (q->in_order || c->desc.after_all)
                return queue_head(q) == c;
        if (list_empty(&q->barriers))
                return true;
        const struct command *first = list_entry(q->barriers.next, struct command, barrier);
        return first->seq >= c->seq;
}

void engine_command_drained(struct queue *q)
{
        struct command *head = q->running == q->marker_max ? queue_head(q) : NULL;
        if (head && head->desc.after_all)
                engine_command_poke(head);
}

/* The command is wholly submitted, or never will be: let the commands behind it go. */
static void command_leave_queue(struct command *c) REQUIRES(engine_held)
{
        struct queue *q = c->queue;
        list_remove(&c->held);
        list_remove(&c->barrier);
        list_remove(&c->ready);
        q->object.engine->commands.held--;
        struct command *head = queue_head(q);
        if (!head)
                return;
        if (!c->desc.is_barrier) {
                if (q->in_order || head->desc.after_all)
                        engine_command_poke(head);
                return;
        }
        list_each(next, &q->held, struct command, held)
        {
                engine_command_poke(next);
                if (next->desc.is_barrier)
                        break;
        }
}

/* ---- launch queries ------------------------------------------------------------------------- */

/* Answer a launch query. A launch that failed for another reason, for example with its wait list,
 * was never submitted. */
static void answer_launch_query(struct engine *e, uint64_t request, const struct event *ev,
                                bool submitted) REQUIRES(engine_held)
{
        cl_int refused = ev ? ev->refused : CL_SUCCESS;
        peer_send(engine_client(e), launch_answer, .request = request, .status = refused,
                  .submitted = submitted || refused);
}

/* Search the newest commands first: a client asks about the launch that it has just sent. */
static struct command *find_command(struct engine *e, const struct event *ev) REQUIRES(engine_held)
{
        for (struct list *l = e->commands.all.prev; l != &e->commands.all; l = l->prev) {
                struct command *c = list_entry(l, struct command, link);
                if (c->event == ev)
                        return c;
        }
        return NULL;
}

/* Does only the loading of its program hold the launch? */
static bool only_loads(const struct command *c)
{
        const struct queue *q = c->queue;
        return c->desc.kernel && c->desc.kernel->program->loading && !c->deps.blocking &&
               (q->in_order ? queue_head(q) == c : list_empty(&q->barriers));
}

int engine_handle_launch_query(void *user, const struct wire_launch_query *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct event *ev = engine_event_find(e, m->event);
        const struct command *c =
                ev && ev->state == EVENT_HELD && !ev->imported ? find_command(e, ev) : NULL;
        bool held = c && engine_command_in_queue(c);
        bool failed = c ? c->outcome.status < 0 : ev && ev->state == EVENT_DONE && ev->status < 0;
        if (held && (only_loads(c) || c->submission.roomless) && !ev->asked)
                ev->asked = m->request;
        else
                answer_launch_query(e, m->request, ev, !held && !failed);
        return 0;
}

/* ---- through the queue ---------------------------------------------------------------------- */

void engine_command_submitted(struct command *c)
{
        command_leave_queue(c);
        engine_command_set_state(c, COMMAND_IN_FLIGHT);
        if (c->event->asked)
                answer_launch_query(c->event->engine, c->event->asked, c->event,
                                    c->outcome.status >= 0);
        c->event->asked = 0;
        list_append(&c->queue->in_flight, &c->held);
        if (c->desc.is_barrier && c->submission.running)
                list_append(&c->queue->fences, &c->barrier);
        if (!c->desc.after_all && !c->event->unreported) /* its completion is reported */
                list_remove(&c->outcome.order);
        if (c->outcome.status >= 0 && c->submission.last)
                engine_event_submitted(c->event, steal(c->submission.last), c->queue->domain);
        if (!c->submission.running)
                engine_completion_end(c);
}

cl_int engine_command_marker(struct queue *q, struct command **ret)
{
        const struct backend_command marker = { .op = BACKEND_MARKER };
        struct command *c = command_alloc(q, 0, 0);
        cl_int status = c ? engine_submission_part(c, &marker) : CL_OUT_OF_HOST_MEMORY;
        if (c && status < 0)
                engine_command_free(c);
        if (status < 0)
                return status;
        engine_command_set_state(c, COMMAND_IN_FLIGHT);
        list_append(&q->in_flight, &c->held);
        *ret = c;
        return status;
}

void engine_command_enqueue(struct command *c)
{
        struct queue *q = c->queue;
        if (q->recording)
                return;
        c->seq = q->next_seq++;
        engine_command_set_state(c, COMMAND_HELD);
        q->object.engine->commands.held++;
        list_append(&q->held, &c->held);
        if (!q->in_order)
                list_append(&q->order, &c->outcome.order);
        if (c->desc.is_barrier)
                list_append(&q->barriers, &c->barrier);
        if (command_may_go(c))
                engine_submission_start(c);
}

void engine_run(struct engine *e)
{
        while (!e->closing) {
                engine_completion_run(e);
                if (list_empty(&e->commands.ready))
                        break;
                struct command *c = list_entry(e->commands.ready.next, struct command, ready);
                list_remove(&c->ready);
                if (c->state == COMMAND_SUBMITTING)
                        engine_submission_continue(c);
                else if (command_may_go(c))
                        engine_submission_start(c);
                else
                        engine_command_set_state(c, COMMAND_HELD);
        }
}
