#include "engine/command/command.h"

#include <limits.h>

#include "base/mem.h"
#include "engine/command/recording.h"
#include "engine/completion/chain_queue.h"
#include "engine/completion/coalesced.h"
#include "engine/completion/completion.h"
#include "engine/completion/early_completion.h"
#include "engine/completion/untracked.h"
#include "engine/transfer/reroute.h"
#include "trace/trace.h"

/* ---- making and ending ---------------------------------------------------------------------- */

/* Release what the command holds, except memory that native parts in flight may use. */
static void command_release(struct command *c)
{
        if (c->queue)
                engine_early_completion_left(c);
        list_remove(&c->ready);
        list_remove(&c->submission.over_quota);
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
                c->queue->object.engine->be->event_release(c->submission.last);
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

/* Let the commands that follow the write `w` go on. */
static void poke_followers(struct command *w)
{
        list_each(d, &w->event->dependents, struct dependency, link)
        {
                if (d->command->deps.follows == w)
                        engine_command_poke(d->command);
        }
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

/* Fewer commands are in flight: let a command go that waited for that. */
static void queue_drained(struct queue *q)
{
        struct command *head = q->running == q->marker_max ? queue_head(q) : NULL;
        if (head && head->desc.after_all)
                engine_command_poke(head);
}

/* The command is wholly submitted, or never will be: let the commands behind it go. */
static void command_leave_queue(struct command *c)
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

/* ---- submitting ----------------------------------------------------------------------------- */

/* Collect the native events to wait for: those of the wait list, and for a later part the part
 * before. */
static cl_int native_deps(struct command *c, struct backend_command *n)
{
        struct buf *deps = &c->queue->object.engine->commands.deps;
        deps->size = 0;
        if (c->deps.follows) {
                const struct command *w = c->deps.follows;
                struct backend_event *written =
                        w->submission.last ? w->submission.last : w->event->native;
                if (written && buf_put(deps, &written, sizeof(written)) < 0)
                        return CL_OUT_OF_HOST_MEMORY;
        }
        if (c->submission.last)
                return buf_put(deps, &c->submission.last, sizeof(c->submission.last)) < 0
                               ? CL_OUT_OF_HOST_MEMORY
                               : 0;
        for (size_t i = 0; i < c->deps.count; i++) {
                const struct event *ev = c->deps.list[i].event;
                bool followed = c->deps.follows && c->deps.list[i].strict;
                if (ev && ev->native && !followed &&
                    buf_put(deps, &ev->native, sizeof(ev->native)) < 0)
                        return CL_OUT_OF_HOST_MEMORY;
        }
        return CL_SUCCESS;
}

/* Note that the untracked launches before the command complete with it. */
static void cover_untracked(struct command *c)
{
        struct queue *q = c->queue;
        if (!q->in_order)
                q = c->desc.after_all ? q->chain_queue : NULL;
        if (q)
                c->outcome.untracked_before = q->untracked.covered = q->untracked.end;
}

/* Submit one part of the command. */
static cl_int command_submit(struct command *c, const struct backend_command *what)
{
        struct queue *q = c->queue;
        struct engine *e = q->object.engine;
        struct backend_command n = *what;
        struct backend_event *native = NULL;
        cl_int status = c->desc.after_all ? engine_chain_join(q) : CL_SUCCESS;
        if (status >= 0)
                status = native_deps(c, &n);
        if (status < 0)
                return status;
        n.deps = (struct backend_event *const *)(const void *)e->commands.deps.data;
        n.dep_count = e->commands.deps.size / sizeof(native);
        bool unreported = engine_coalesced_allowed(c);
        n.cookie = unreported ? NULL : c;
        n.alone = !e->commands.running;
        n.prints = e->programs.prints;
        TRACE_SPAN(submit, c->event ? c->event->id : 0);
        status = e->be->submit(q->native, &n, &native);
        if (status < 0 || !native) /* or it is complete already */
                return status;
        cover_untracked(c);
        if (c->submission.last)
                e->be->event_release(c->submission.last);
        c->submission.last = native;
        engine_coalesced_submitted(c, unreported);
        if (!c->submission.running++)
                e->commands.running++;
        q->running++;
        e->transfers.parts += c->submission.transfer != NULL;
        engine_limit_begin(q);
        engine_queue_dirty(q);
        return CL_SUCCESS;
}

bool engine_command_waits(const struct command *c)
{
        for (size_t i = 0; i < c->deps.count; i++)
                if (c->deps.list[i].event)
                        return true;
        return false;
}

/* Answer a launch query. A launch that failed for another reason, for example with its wait list,
 * was never submitted. */
static void answer_launch_query(struct engine *e, uint64_t request, const struct event *ev,
                                bool submitted)
{
        cl_int refused = ev ? ev->refused : CL_SUCCESS;
        peer_send(engine_client(e), launch_answer, .request = request, .status = refused,
                  .submitted = submitted || refused);
}

/* Search the newest commands first: a client asks about the launch that it has just sent. */
static struct command *find_command(struct engine *e, const struct event *ev)
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
        if (held && only_loads(c) && !ev->asked)
                ev->asked = m->request;
        else
                answer_launch_query(e, m->request, ev, !held && !failed);
        return 0;
}

/* All parts of the command are submitted. */
static void command_submitted(struct command *c)
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
        cl_int status = c ? command_submit(c, &marker) : CL_OUT_OF_HOST_MEMORY;
        if (c && status < 0)
                engine_command_free(c);
        if (status < 0)
                return status;
        engine_command_set_state(c, COMMAND_IN_FLIGHT);
        list_append(&q->in_flight, &c->held);
        *ret = c;
        return status;
}

/* Let the command fail without being executed, but not before the commands that it comes after. The
 * client relies on the order of an in-order queue, and commands behind a barrier rely on that. A
 * command that waits for this one may rely on its wait list. */
static void start_failed(struct command *c)
{
        struct queue *q = c->queue;
        bool ordered = q->running && (q->in_order || c->desc.is_barrier);
        if (q->native && (ordered || engine_command_waits(c))) {
                const struct backend_command stand_in = {
                        .op = c->desc.is_barrier ? BACKEND_BARRIER : BACKEND_MARKER,
                };
                /* If even that can't be submitted, the command just fails early. */
                (void)command_submit(c, &stand_in);
        }
        command_submitted(c);
}

/* The buffer's bytes, if they are in host memory; else NULL. */
static uint8_t *host_bytes(const struct command *c)
{
        const struct backend_ops *be = c->queue->object.engine->be;
        uint8_t *bytes = be->buffer_bytes ? be->buffer_bytes(c->desc.native.buffer) : NULL;
        return bytes ? bytes + c->desc.native.offset_bytes : NULL;
}

/* May the read be done on this thread? Only if nothing is in flight, and another thread would take
 * longer to do it and notify this one. */
static bool may_be_now(const struct command *c)
{
        enum { COPIED_MAX = 1 << 20 };
        uint64_t size =
                c->desc.native.op == BACKEND_READ ? c->submission.transfer->total : UINT64_MAX;
        if (c->batch || c->queue->profiling || c->queue->object.engine->commands.running)
                return false;
        return size <= SESSION_INLINE_DEFAULT || (size <= COPIED_MAX && host_bytes(c));
}

/* Narrow the command to `len` of its `total` bytes, from `at` on: some rows of the only slice of a
 * rectangle or an image, or some slices. */
static void take_box(struct backend_command *n, uint64_t total, uint64_t at, uint64_t len)
{
        unsigned along = n->region[2] > 1 ? 2 : 1;
        uint64_t step = total / n->region[along];
        n->box.origin[along] += (size_t)(at / step);
        n->region[along] = (size_t)(len / step);
}

/* Submit the part that begins at `sent`. */
static cl_int submit_part(struct command *c)
{
        struct command_submission *s = &c->submission;
        struct backend_command n = c->desc.native;
        uint64_t len;
        n.host = engine_transfer_part(s->transfer, s->sent, &len);
        if (!n.host)
                return s->transfer->memory.lack;
        if (n.op == BACKEND_WRITE || n.op == BACKEND_READ) {
                n.size = (size_t)len;
                n.offset_bytes += (size_t)s->sent;
        } else if (len < s->transfer->announced) {
                take_box(&n, s->transfer->announced, s->sent, len);
        }
        n.now = may_be_now(c);
        cl_int status = command_submit(c, &n);
        if (status >= 0)
                s->sent += len;
        if (status >= 0 && n.now && !s->running)
                status = engine_transfer_progress(s->transfer, s->sent);
        return status;
}

/* The end of the part that begins at `sent`. */
static uint64_t part_end(const struct command *c)
{
        const struct transfer *t = c->submission.transfer;
        uint64_t left = t->total - c->submission.sent;
        return c->submission.sent + (left < t->memory.part_size ? left : t->memory.part_size);
}

/* How many of the bytes are in the buffer once the submitted part of the write has run. */
static uint64_t readable(const struct command *c)
{
        const struct command *w = c->deps.follows;
        uint64_t before = w ? c->desc.native.offset_bytes - w->desc.native.offset_bytes : 0;
        return !w ? UINT64_MAX : w->submission.sent < before ? 0 : w->submission.sent - before;
}

/* Submit the parts of a read that there is room for. 1: all are submitted; 0: not yet. */
static cl_int submit_read(struct command *c)
{
        const struct transfer *t = c->submission.transfer;
        if (t->peer && t->peer->lost)
                return CL_DEVICE_NOT_AVAILABLE;
        while (c->submission.sent < t->total && !t->unwanted) {
                if (c->submission.sent >= engine_transfer_window(t) || part_end(c) > readable(c) ||
                    engine_transfer_over_quota(c))
                        return 0;
                cl_int status = submit_part(c);
                if (status < 0)
                        return status;
        }
        return 1;
}

/* Submit the parts of a write that have arrived. 1: all are submitted; 0: not yet. */
static cl_int submit_write(struct command *c)
{
        const struct transfer *t = c->submission.transfer;
        if (t->status < 0)
                return engine_reroute_ask(c) ? 0 : t->status;
        if (t->memory.target)
                c->submission.sent = t->arrived;
        while (c->submission.sent < t->total) {
                if (t->arrived < part_end(c))
                        return 0;
                cl_int status = submit_part(c);
                if (status < 0)
                        return status;
        }
        return 1;
}

/* Find the buffers' storage in the queue's domain. */
static cl_int prepare_buffers(struct command *c)
{
        unsigned domain = c->queue->domain;
        cl_int status = CL_SUCCESS;
        if (c->desc.buffer)
                status = engine_buffer_native(c->desc.buffer, domain, &c->desc.native.buffer);
        if (c->desc.source && status >= 0)
                status = engine_buffer_native(c->desc.source, domain, &c->desc.native.source);
        return status;
}

/* The command may be submitted: is every command that it comes after complete? */
static bool is_first(const struct command *c)
{
        const struct queue *q = c->queue;
        if (engine_command_waits(c))
                return false;
        if (q->in_order)
                return list_empty(&q->in_flight) && q->untracked.first == q->untracked.end;
        return list_empty(&q->fences) && !c->desc.after_all;
}

/* Is it a marker with nothing before it? */
static bool command_is_empty(const struct command *c)
{
        bool marks = c->desc.native.op == BACKEND_MARKER || c->desc.native.op == BACKEND_BARRIER;
        return marks && !(c->queue->in_order && c->queue->profiling) && is_first(c);
}

/* Let a write with nothing before it, on a device that works on host memory, receive straight into
 * the buffer. Then no part has to be submitted. A profiling queue would need the time of that, so
 * it is excluded. */
static void write_in_place(struct command *c)
{
        if (c->desc.native.op != BACKEND_WRITE || !c->submission.transfer)
                return;
        uint8_t *bytes = host_bytes(c);
        if (bytes && !c->queue->profiling && is_first(c))
                engine_transfer_aim(c->submission.transfer, bytes, c->desc.buffer);
}

/* Submit a command that has no transfer. */
static cl_int submit_whole(struct command *c)
{
        switch (c->desc.native.op) {
        case BACKEND_KERNEL: {
                cl_int status = engine_kernel_prepare(c->desc.kernel, c->queue->domain,
                                                      c->desc.args, c->desc.arg_objects,
                                                      c->desc.arg_count, &c->desc.native.kernel);
                return status < 0 ? status : command_submit(c, &c->desc.native);
        }
        default:
                return command_submit(c, &c->desc.native);
        }
}

static void submit_and_leave(struct command *c)
{
        cl_int status = c->outcome.status < 0 ? c->outcome.status : submit_whole(c);
        if (status < 0 && c->outcome.status >= 0)
                c->event->refused = status;
        if (status < 0)
                engine_command_fail(c, status);
        if (status < 0 && !c->submission.running)
                start_failed(c);
        else
                command_submitted(c);
}

/* Submit a read of the number of meaningful bytes. */
static cl_int ask_content_size(struct command *c)
{
        struct backend_command n = {
                .op = BACKEND_READ,
                .offset_bytes = (size_t)c->desc.content_offset,
                .size = sizeof(c->submission.content_size),
                .host = c->submission.content_size,
        };
        cl_int status = engine_buffer_native(c->desc.content, c->queue->domain, &n.buffer);
        c->submission.asking = true;
        if (status >= 0)
                status = command_submit(c, &n);
        c->submission.asking = status >= 0;
        return status;
}

/* The number of meaningful bytes is known: leave out the others if that pays. The size is cut in
 * steps, so that a cut transfer never travels inline. */
static void take_answer(struct command *c)
{
        enum { STEP = 32 << 10 };
        struct backend_command *n = &c->desc.native;
        uint64_t content = bytes_get_u64(c->submission.content_size);
        uint64_t begin = n->op == BACKEND_COPY ? n->source_offset : n->offset_bytes;
        uint64_t size = content > begin ? content - begin : 0;
        if (size >= n->size || n->size - size <= STEP)
                return;
        size = (size / STEP + 1) * STEP;
        if (size >= n->size)
                return;
        if (c->submission.transfer)
                engine_transfer_cut(c->submission.transfer, size);
        else
                n->size = (size_t)size;
}

static void command_pump(struct command *c)
{
        cl_int r = c->outcome.status;
        if (c->submission.asking)
                return;
        if (!c->submission.transfer) {
                submit_and_leave(c);
                return;
        }
        if (r >= 0)
                r = c->submission.transfer->reader == c ? submit_read(c) : submit_write(c);
        if (c->submission.transfer->writer == c)
                poke_followers(c);
        if (r < 0)
                engine_command_fail(c, r);
        if (r < 0 && !c->submission.last)
                start_failed(c);
        else if (r)
                command_submitted(c);
}

static void command_start(struct command *c)
{
        engine_command_set_state(c, COMMAND_SUBMITTING);
        if (c->outcome.status >= 0 && command_is_empty(c)) {
                command_submitted(c);
                return;
        }
        if (c->outcome.status >= 0) {
                cl_int status = prepare_buffers(c);
                if (status < 0)
                        engine_command_fail(c, status);
                else
                        write_in_place(c);
        }
        if (c->outcome.status < 0) {
                start_failed(c);
                return;
        }
        cl_int status = c->desc.content ? ask_content_size(c) : CL_SUCCESS;
        if (status < 0) {
                engine_command_fail(c, status);
                start_failed(c);
        } else {
                command_pump(c);
        }
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
                command_start(c);
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
                        command_pump(c);
                else if (command_may_go(c))
                        command_start(c);
                else
                        engine_command_set_state(c, COMMAND_HELD);
        }
}

/* ---- parts that are complete ----------------------------------------------------------------- */

void engine_times_add(struct backend_times *sum, const struct backend_times *t)
{
        if (!t || !t->end_ns)
                return;
        if (!sum->end_ns) {
                *sum = *t;
                return;
        }
        if (t->submit_ns < sum->submit_ns)
                sum->submit_ns = t->submit_ns;
        if (t->start_ns < sum->start_ns)
                sum->start_ns = t->start_ns;
        if (t->end_ns > sum->end_ns)
                sum->end_ns = t->end_ns;
}

/* The part brought the number of meaningful bytes, or bytes of the transfer. */
static cl_int take_part(struct command *c, cl_int status)
{
        struct command_submission *s = &c->submission;
        struct transfer *t = s->transfer;
        if (s->asking) {
                s->asking = false;
                if (status >= 0)
                        take_answer(c);
        } else if (s->stale) {
                if (!--s->stale)
                        engine_reroute_settled(c);
        } else if (status >= 0 && c->outcome.status >= 0 && t) {
                /* Parts complete in order, because each waits for the one before. */
                uint64_t ready = ++s->parts * t->memory.part_size;
                if (ready > t->total)
                        ready = t->total;
                if (t->reader == c)
                        return engine_transfer_progress(t, ready);
                engine_transfer_pass(t, ready);
        }
        return status;
}

void engine_command_part_complete(struct command *c, cl_int status, const struct backend_times *t)
{
        struct engine *e = c->queue->object.engine;
        c->queue->running--;
        queue_drained(c->queue);
        if (!--c->submission.running)
                e->commands.running--;
        e->transfers.parts -= c->submission.transfer != NULL;
        engine_limit_end(c->queue);
        engine_times_add(&c->outcome.times, t);
        status = take_part(c, status);
        if (c->submission.transfer)
                engine_transfer_uncrowd(e);
        if (status < 0)
                engine_command_fail(c, status);
}
