#include "engine/command/submission.h"

#include "base/mem.h"
#include "engine/completion/chain_queue.h"
#include "engine/completion/coalesced.h"
#include "engine/transfer/device_staging.h"
#include "engine/transfer/reroute.h"
#include "trace/trace.h"

/* ---- one part ------------------------------------------------------------------------------- */

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

cl_int engine_submission_part(struct command *c, const struct backend_command *what)
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
        engine_observed_submit(c);
        engine_usage_begin(q); /* some drivers run the command now */
        status = e->be->submit(q->native, &n, &native);
        if (status < 0 || !native) { /* or it is complete already */
                engine_usage_end(q);
                return status;
        }
        cover_untracked(c);
        if (c->submission.last)
                e->be->event.release(c->submission.last);
        c->submission.last = native;
        engine_coalesced_submitted(c, unreported);
        if (!c->submission.running++)
                e->commands.running++;
        e->transfers.parts += c->submission.transfer != NULL;
        engine_limit_begin(c);
        engine_queue_dirty(q);
        return CL_SUCCESS;
}

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

/* Submit a read of the number of meaningful bytes. */
static cl_int ask_content_size(struct command *c) REQUIRES(engine_held)
{
        struct backend_command n = {
                .op = BACKEND_READ,
                .offset_bytes = (size_t)c->desc.content_offset,
                .size = sizeof(c->submission.content_size),
                .host = c->submission.content_size,
        };
        cl_int status =
                engine_buffer_native(c->desc.content, c->queue->domain, c->queue->root, &n.buffer);
        c->submission.asking = true;
        if (status >= 0)
                status = engine_submission_part(c, &n);
        c->submission.asking = status >= 0;
        return status;
}

/* The number of meaningful bytes is known: leave out the others if that pays. The size is cut in
 * steps, so that a cut transfer never travels inline. */
static void take_answer(struct command *c) REQUIRES(engine_held)
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

/* The part brought the number of meaningful bytes, or bytes of the transfer. */
static cl_int take_part(struct command *c, cl_int status) REQUIRES(engine_held)
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

void engine_submission_part_complete(struct command *c, cl_int status,
                                     const struct backend_times *t)
{
        struct engine *e = c->queue->object.engine;
        engine_usage_end(c->queue);
        engine_command_drained(c->queue);
        if (!--c->submission.running)
                e->commands.running--;
        e->transfers.parts -= c->submission.transfer != NULL;
        engine_limit_end(c);
        engine_times_add(&c->outcome.times, t);
        if (c->submission.staged_from && !c->submission.stale)
                engine_device_staging_taken(steal(c->submission.staged_from));
        status = take_part(c, status);
        if (c->submission.transfer)
                engine_transfer_uncrowd(e);
        if (status < 0)
                engine_command_fail(c, status);
}

/* ---- all of a command ----------------------------------------------------------------------- */

/* Let the command fail without being executed, but not before the commands that it comes after. The
 * client relies on the order of an in-order queue, and commands behind a barrier rely on that. A
 * command that waits for this one may rely on its wait list. */
static void start_failed(struct command *c) REQUIRES(engine_held)
{
        struct queue *q = c->queue;
        bool ordered = q->running && (q->in_order || c->desc.is_barrier);
        if (q->native && (ordered || engine_command_waits(c))) {
                const struct backend_command stand_in = {
                        .op = c->desc.is_barrier ? BACKEND_BARRIER : BACKEND_MARKER,
                };
                /* If even that can't be submitted, the command just fails early. */
                cl_int status = engine_submission_part(c, &stand_in);
                (void)status;
        }
        engine_command_submitted(c);
}

/* The buffer's bytes, if they are in host memory; else NULL. */
static uint8_t *host_bytes(const struct command *c)
{
        const struct backend_ops *be = c->queue->object.engine->be;
        uint8_t *bytes = be->buffer.bytes ? be->buffer.bytes(c->desc.native.buffer) : NULL;
        return bytes ? bytes + c->desc.native.offset_bytes : NULL;
}

/* May the read be done on this thread? Only if nothing is in flight, and another thread would take
 * longer to do it and notify this one. */
static bool may_be_now(const struct command *c) REQUIRES(engine_held)
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
static cl_int submit_part(struct command *c) REQUIRES(engine_held)
{
        struct command_submission *s = &c->submission;
        struct backend_command n = c->desc.native;
        uint64_t len;
        if (s->transfer->staged.used)
                return engine_device_staging_submit(c);
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
        cl_int status = engine_submission_part(c, &n);
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
static cl_int submit_read(struct command *c) REQUIRES(engine_held)
{
        const struct transfer *t = c->submission.transfer;
        if (t->peer && t->peer->lost)
                return CL_DEVICE_NOT_AVAILABLE;
        if (!c->submission.sent)
                engine_device_staging_begin(c);
        while (c->submission.sent < t->total && !t->unwanted) {
                if (c->submission.sent >= engine_transfer_window(t) || part_end(c) > readable(c) ||
                    engine_transfer_over_quota(c))
                        return 0;
                cl_int status = submit_part(c);
                if (status < 0)
                        return status;
        }
        return engine_device_staging_waits(t) ? 0 : 1;
}

/* Submit the parts of a write that have arrived. 1: all are submitted; 0: not yet. */
static cl_int submit_write(struct command *c) REQUIRES(engine_held)
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
static cl_int prepare_buffers(struct command *c) REQUIRES(engine_held)
{
        unsigned domain = c->queue->domain, root = c->queue->root;
        cl_int status = CL_SUCCESS;
        if (c->desc.buffer)
                status = engine_buffer_native(c->desc.buffer, domain, root, &c->desc.native.buffer);
        if (c->desc.source && status >= 0)
                status = engine_buffer_native(c->desc.source, domain, root, &c->desc.native.source);
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
static cl_int submit_whole(struct command *c) REQUIRES(engine_held)
{
        cl_int status = CL_SUCCESS;
        if (c->desc.native.op == BACKEND_KERNEL)
                status = engine_kernel_prepare(c->desc.kernel, c->queue->domain, c->queue->root,
                                               c->desc.args, c->desc.arg_objects, c->desc.arg_count,
                                               &c->desc.native.kernel);
        return status < 0 ? status : engine_submission_part(c, &c->desc.native);
}

static void submit_and_leave(struct command *c) REQUIRES(engine_held)
{
        cl_int status = c->outcome.status < 0 ? c->outcome.status : submit_whole(c);
        if (status < 0 && !c->submission.running && engine_room_wait(c, status))
                return;
        if (status < 0 && c->outcome.status >= 0)
                c->event->refused = status;
        if (status < 0)
                engine_command_fail(c, status);
        if (status < 0 && !c->submission.running)
                start_failed(c);
        else
                engine_command_submitted(c);
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

/* Submit as much of the command as is there; its buffers have storage. */
static void go_on(struct command *c) REQUIRES(engine_held)
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
                engine_command_submitted(c);
}

static void begin(struct command *c) REQUIRES(engine_held)
{
        c->submission.roomless = false;
        if (c->outcome.status >= 0 && command_is_empty(c)) {
                engine_command_submitted(c);
                return;
        }
        if (c->outcome.status >= 0 && engine_limit_pauses(c))
                return;
        if (c->outcome.status >= 0) {
                cl_int status = prepare_buffers(c);
                if (status < 0 && engine_room_wait(c, status))
                        return;
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
                go_on(c);
        }
}

void engine_submission_start(struct command *c)
{
        engine_command_set_state(c, COMMAND_SUBMITTING);
        begin(c);
}

void engine_submission_continue(struct command *c)
{
        if (!c->submission.roomless)
                go_on(c);
        else if (list_empty(&c->submission.room))
                begin(c);
}
