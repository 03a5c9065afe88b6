#include "engine/command/enqueue.h"

#include "backend/bounds.h"
#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/command/recording.h"
#include "engine/completion/chain_queue.h"
#include "engine/completion/untracked.h"

/* The parameters that all commands have. */
#define params_of(m, ...)                                                      \
        (struct command_params)                                                \
        {                                                                      \
                .queue = (m)->queue, .event = (m)->event, .flags = (m)->flags, \
                .waits = (m)->waits, __VA_ARGS__                               \
        }

static void take_sizes(size_t out[3], struct wire_u64s v)
{
        for (size_t i = 0; i < v.count && i < 3; i++)
                out[i] = (size_t)wire_u64s_at(v, i);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void take_args(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        for (size_t i = 0; i < c->desc.arg_count; i++) {
                struct value *v = c->desc.kernel->args[i];
                engine_value_ref(v);
                c->desc.args[i] = v;
                if (!v || !arg_is_object(v->arg.kind) || !v->arg.object)
                        continue;
                cl_int status = engine_arg_object(e, &v->arg, &c->desc.arg_objects[i]);
                if (status < 0)
                        engine_command_fail(c, status);
                else
                        engine_object_ref(c->desc.arg_objects[i]);
        }
}

/* Find the queue in which the launch can be untracked. NULL: there is none. */
static struct queue *find_untracked(struct engine *e, const struct wire_kernel_launch *m,
                                    struct chain_deps *ret) REQUIRES(engine_held)
{
        struct queue *q = engine_queue_find(e, m->queue);
        ret->count = 0;
        if (!q)
                return NULL;
        if (!q->in_order)
                return m->flags & ~(uint64_t)COMMAND_NAMED
                               ? NULL
                               : engine_chain_take(q, m->event, m->waits, ret);
        return m->flags || m->waits.count ? NULL : q;
}

/* Submit the launch untracked: only its event's id is kept. False: nothing was done, the launch
 * needs a command. */
static bool launch_untracked(struct kernel *k, const struct wire_kernel_launch *m)
        REQUIRES(engine_held)
{
        struct chain_deps deps;
        struct queue *q = find_untracked(k->object.engine, m, &deps);
        size_t offset[3], global[3], local[3];
        if (!q || !engine_untracked_allowed(q, m->event))
                return false;
        struct backend_command n = {
                .op = BACKEND_KERNEL,
                .dims = (unsigned)m->global.count,
                .offset = m->offset.count ? offset : NULL,
                .global = global,
                .local = m->local.count ? local : NULL,
                .deps = deps.native,
                .dep_count = deps.count,
        };
        take_sizes(offset, m->offset);
        take_sizes(global, m->global);
        take_sizes(local, m->local);
        return engine_kernel_current(k, q->domain, q->root, &n.kernel) == CL_SUCCESS &&
               engine_untracked_submit(q, m->event, &n);
}

int engine_handle_kernel_launch(void *user, const struct wire_kernel_launch *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct kernel *k = engine_kernel_find(e, m->kernel);
        size_t dims = m->global.count;
        if (!k || !dims || (m->offset.count && m->offset.count != dims) ||
            (m->local.count && m->local.count != dims))
                return SP_E_PROTO;
        int r = engine_kernel_update(k, m->args);
        if (!r && launch_untracked(k, m))
                return 0;
        struct command *c;
        if (!r)
                r = engine_command_new(e, &params_of(m, .arg_count = k->arg_count), &c);
        if (r < 0)
                return r;
        c->desc.kernel = k;
        engine_object_ref(&k->object);
        take_args(c);
        take_sizes(c->desc.offset, m->offset);
        take_sizes(c->desc.global, m->global);
        take_sizes(c->desc.local, m->local);
        c->desc.native = (struct backend_command){
                .op = BACKEND_KERNEL,
                .dims = (unsigned)dims,
                .offset = m->offset.count ? c->desc.offset : NULL,
                .global = c->desc.global,
                .local = m->local.count ? c->desc.local : NULL,
        };
        engine_command_enqueue(c);
        return 0;
}

/* ---- transfers ------------------------------------------------------------------------------ */

/* The operation of a message; fields that its kind of message does not have are 0. */
struct action {
        struct command_params params;
        struct backend_command native; /* the operation; offsets, size and pitches */
        uint64_t buffer, source;       /* ids */
        struct wire_u64s origin, source_origin, region;
        struct bytes pattern;
        uint64_t peer, transfer; /* of bulk data */
};

/* The operands of each operation. */
static const struct kind {
        bool source;              /* two objects */
        bool image, source_image; /* that are images, and not buffers */
        bool region;              /* origins and a region */
        enum { NO_BULK, TAKES, GIVES } bulk;
} kinds[] = {
        [BACKEND_WRITE] = { .bulk = TAKES },
        [BACKEND_READ] = { .bulk = GIVES },
        [BACKEND_WRITE_RECT] = { .region = true, .bulk = TAKES },
        [BACKEND_READ_RECT] = { .region = true, .bulk = GIVES },
        [BACKEND_COPY] = { .source = true },
        [BACKEND_COPY_RECT] = { .source = true, .region = true },
        [BACKEND_FILL] = { .region = false },
        [BACKEND_WRITE_IMAGE] = { .image = true, .region = true, .bulk = TAKES },
        [BACKEND_READ_IMAGE] = { .image = true, .region = true, .bulk = GIVES },
        [BACKEND_COPY_IMAGE] = { .source = true,
                                 .image = true,
                                 .source_image = true,
                                 .region = true },
        [BACKEND_IMAGE_TO_BUFFER] = { .source = true, .source_image = true, .region = true },
        [BACKEND_BUFFER_TO_IMAGE] = { .source = true, .image = true, .region = true },
        [BACKEND_FILL_IMAGE] = { .image = true, .region = true },
};

static int take_mem(struct engine *e, uint64_t id, bool image, struct buffer **ret)
{
        struct buffer *b = engine_buffer_find(e, id);
        if (!b || engine_buffer_is_image(b) != image || engine_buffer_is_pipe(b))
                return SP_E_PROTO;
        engine_object_ref(&b->object);
        *ret = b;
        return 0;
}

static int take_objects(struct command *c, const struct action *a, const struct kind *kind)
{
        struct engine *e = c->queue->object.engine;
        int r = take_mem(e, a->buffer, kind->image, &c->desc.buffer);
        if (r == 0 && kind->source)
                r = take_mem(e, a->source, kind->source_image, &c->desc.source);
        return r;
}

int engine_handle_content_size(void *user, const struct wire_content_size *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        e->commands.content_size.event = m->event;
        e->commands.content_size.buffer = m->buffer;
        e->commands.content_size.offset = m->offset;
        return 0;
}

/* If a content_size message came for this command, take it over. */
static int take_content_size(struct command *c, const struct action *a) REQUIRES(engine_held)
{
        struct engine *e = c->queue->object.engine;
        bool taken =
                e->commands.content_size.event && e->commands.content_size.event == a->params.event;
        e->commands.content_size.event = 0;
        if (!taken)
                return 0;
        if ((c->desc.native.op != BACKEND_READ && c->desc.native.op != BACKEND_COPY) ||
            c->queue->recording)
                return SP_E_PROTO;
        int r = take_mem(e, e->commands.content_size.buffer, false, &c->desc.content);
        c->desc.content_offset = e->commands.content_size.offset;
        if (r == 0 &&
            (c->desc.content_offset > c->desc.content->size ||
             c->desc.content->size - c->desc.content_offset < sizeof(c->submission.content_size)))
                engine_command_fail(c, CL_INVALID_VALUE);
        return r;
}

static int take_boxes(struct command *c, const struct action *a, const struct kind *kind)
{
        struct backend_command *n = &c->desc.native;
        if (!kind->region)
                return 0;
        /* One of the two may be bytes of a buffer. */
        bool flat = n->op == BACKEND_IMAGE_TO_BUFFER,
             source_flat = n->op == BACKEND_BUFFER_TO_IMAGE;
        if (a->region.count != 3 || (!flat && a->origin.count != 3) ||
            (kind->source && !source_flat && a->source_origin.count != 3))
                return SP_E_PROTO;
        take_sizes(n->region, a->region);
        take_sizes(n->box.origin, a->origin);
        take_sizes(n->source_box.origin, a->source_origin);
        return 0;
}

static int take_pattern(struct command *c, struct bytes pattern)
{
        if (pattern.size > sizeof(c->desc.pattern))
                return SP_E_PROTO;
        if (pattern.size)
                memcpy(c->desc.pattern, pattern.data, pattern.size);
        c->desc.native.pattern = c->desc.pattern;
        c->desc.native.pattern_size = pattern.size;
        return 0;
}

/* Compute the bytes of the region without gaps, or of the range. SP_E_PROTO: none, or too many for
 * a transfer. */
static int bulk_size(const struct command *c, const struct kind *kind, uint64_t *ret)
{
        const struct backend_command *n = &c->desc.native;
        size_t size = n->size;
        if (kind->image)
                size = image_bytes(&c->desc.buffer->image, n->region);
        else if (kind->region && (__builtin_mul_overflow(n->region[0], n->region[1], &size) ||
                                  __builtin_mul_overflow(size, n->region[2], &size)))
                return SP_E_PROTO;
        *ret = size;
        return *ret && *ret <= WIRE_BULK_MAX ? 0 : SP_E_PROTO;
}

/* The size of the smallest box that a rectangle or an image is cut into: a slice, or a row if there
 * is only one slice. 0: a range, which can be cut anywhere. */
static uint64_t box_step(const struct command *c, const struct kind *kind, uint64_t total)
{
        const size_t *region = c->desc.native.region;
        return !kind->region ? 0 : region[2] > 1 ? total / region[2] : total / region[1];
}

static int take_bulk(struct command *c, const struct action *a, const struct kind *kind)
        REQUIRES(engine_held)
{
        struct engine *e = c->queue->object.engine;
        struct peer *p = a->peer == PEER_SELF ? NULL : engine_peer_find(e, a->peer);
        uint64_t total;
        if (!kind->bulk)
                return 0;
        int r = p || a->peer == PEER_SELF ? bulk_size(c, kind, &total) : SP_E_PROTO;
        if (r < 0)
                return r;
        uint64_t step = box_step(c, kind, total);
        if (c->queue->recording)
                return p ? SP_E_PROTO
                         : engine_recording_bulk(c, kind->bulk == GIVES, a->transfer, total, step);
        if (kind->bulk == TAKES)
                return engine_transfer_expect(e, p, a->transfer, total, step, c,
                                              &c->submission.transfer);
        if (p && p->lost)
                engine_command_fail(c, CL_DEVICE_NOT_AVAILABLE);
        return engine_transfer_offer(e, p, a->transfer, total, step, c, &c->submission.transfer);
}

static bool fits(const struct command *c)
{
        const struct buffer *b = c->desc.buffer, *s = c->desc.source;
        if (!bounds_is_image_op(c->desc.native.op))
                return bounds_fit(&c->desc.native, b->size, s ? s->size : 0);
        bool image = engine_buffer_is_image(b), source_image = s && engine_buffer_is_image(s);
        return bounds_fit_image(&c->desc.native, image ? &b->image : NULL,
                                source_image ? &s->image : NULL,
                                !image ? b->size
                                : s    ? s->size
                                       : 0);
}

static int action_enqueue(struct peer *from, const struct action *a) REQUIRES(engine_held)
{
        const struct kind *kind = &kinds[a->native.op];
        struct command *c;
        int r = engine_command_new(from->engine, &a->params, &c);
        if (r < 0)
                return r;
        c->desc.native = a->native;
        r = take_objects(c, a, kind);
        if (r == 0)
                r = take_content_size(c, a);
        if (r == 0)
                r = take_boxes(c, a, kind);
        if (r == 0)
                r = take_pattern(c, a->pattern);
        if (r < 0)
                return r;
        if (!fits(c))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = take_bulk(c, a, kind);
        if (r < 0)
                return r;
        engine_command_follow(c);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_write(void *user, const struct wire_buffer_write *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_WRITE,
                                                        .offset_bytes = (size_t)m->offset,
                                                        .size = (size_t)m->size },
                                            .buffer = m->buffer,
                                            .peer = m->peer,
                                            .transfer = m->transfer,
                                    });
}

int engine_handle_buffer_read(void *user, const struct wire_buffer_read *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_READ,
                                                        .offset_bytes = (size_t)m->offset,
                                                        .size = (size_t)m->size },
                                            .buffer = m->buffer,
                                            .peer = m->peer,
                                            .transfer = m->transfer,
                                    });
}

static struct backend_box pitches(uint64_t row, uint64_t slice)
{
        return (struct backend_box){ .row_pitch = (size_t)row, .slice_pitch = (size_t)slice };
}

int engine_handle_buffer_write_rect(void *user, const struct wire_buffer_write_rect *m)
{
        return action_enqueue(user,
                              &(struct action){
                                      .params = params_of(m),
                                      .native = { .op = BACKEND_WRITE_RECT,
                                                  .box = pitches(m->row_pitch, m->slice_pitch) },
                                      .buffer = m->buffer,
                                      .origin = m->origin,
                                      .region = m->region,
                                      .transfer = m->transfer,
                              });
}

int engine_handle_buffer_read_rect(void *user, const struct wire_buffer_read_rect *m)
{
        return action_enqueue(user,
                              &(struct action){
                                      .params = params_of(m),
                                      .native = { .op = BACKEND_READ_RECT,
                                                  .box = pitches(m->row_pitch, m->slice_pitch) },
                                      .buffer = m->buffer,
                                      .origin = m->origin,
                                      .region = m->region,
                                      .transfer = m->transfer,
                              });
}

int engine_handle_buffer_copy(void *user, const struct wire_buffer_copy *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_COPY,
                                                        .offset_bytes = (size_t)m->dst_offset,
                                                        .source_offset = (size_t)m->src_offset,
                                                        .size = (size_t)m->size },
                                            .buffer = m->dst,
                                            .source = m->src,
                                    });
}

int engine_handle_buffer_copy_rect(void *user, const struct wire_buffer_copy_rect *m)
{
        return action_enqueue(
                user,
                &(struct action){
                        .params = params_of(m),
                        .native = { .op = BACKEND_COPY_RECT,
                                    .box = pitches(m->dst_row_pitch, m->dst_slice_pitch),
                                    .source_box = pitches(m->src_row_pitch, m->src_slice_pitch) },
                        .buffer = m->dst,
                        .source = m->src,
                        .origin = m->dst_origin,
                        .source_origin = m->src_origin,
                        .region = m->region,
                });
}

int engine_handle_buffer_fill(void *user, const struct wire_buffer_fill *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_FILL,
                                                        .offset_bytes = (size_t)m->offset,
                                                        .size = (size_t)m->size },
                                            .buffer = m->buffer,
                                            .pattern = m->pattern,
                                    });
}

int engine_handle_image_write(void *user, const struct wire_image_write *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native.op = BACKEND_WRITE_IMAGE,
                                            .buffer = m->image,
                                            .origin = m->origin,
                                            .region = m->region,
                                            .peer = m->peer,
                                            .transfer = m->transfer,
                                    });
}

int engine_handle_image_read(void *user, const struct wire_image_read *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native.op = BACKEND_READ_IMAGE,
                                            .buffer = m->image,
                                            .origin = m->origin,
                                            .region = m->region,
                                            .peer = m->peer,
                                            .transfer = m->transfer,
                                    });
}

int engine_handle_image_copy(void *user, const struct wire_image_copy *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native.op = BACKEND_COPY_IMAGE,
                                            .buffer = m->dst,
                                            .source = m->src,
                                            .origin = m->dst_origin,
                                            .source_origin = m->src_origin,
                                            .region = m->region,
                                    });
}

int engine_handle_image_to_buffer(void *user, const struct wire_image_to_buffer *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_IMAGE_TO_BUFFER,
                                                        .offset_bytes = (size_t)m->offset },
                                            .buffer = m->buffer,
                                            .source = m->image,
                                            .source_origin = m->origin,
                                            .region = m->region,
                                    });
}

int engine_handle_buffer_to_image(void *user, const struct wire_buffer_to_image *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native = { .op = BACKEND_BUFFER_TO_IMAGE,
                                                        .source_offset = (size_t)m->offset },
                                            .buffer = m->image,
                                            .source = m->buffer,
                                            .origin = m->origin,
                                            .region = m->region,
                                    });
}

int engine_handle_image_fill(void *user, const struct wire_image_fill *m)
{
        return action_enqueue(user, &(struct action){
                                            .params = params_of(m),
                                            .native.op = BACKEND_FILL_IMAGE,
                                            .buffer = m->image,
                                            .origin = m->origin,
                                            .region = m->region,
                                            .pattern = m->color,
                                    });
}

/* ---- order ---------------------------------------------------------------------------------- */

int engine_handle_marker(void *user, const struct wire_marker *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        int r = engine_command_new(e, &params_of(m, .marker = true), &c);
        if (r < 0)
                return r;
        c->desc.native.op = m->flags & COMMAND_BARRIER ? BACKEND_BARRIER : BACKEND_MARKER;
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_queue_flush(void *user, const struct wire_queue_flush *m)
{
        struct queue *q = engine_queue_find(((struct peer *)user)->engine, m->queue);
        if (!q)
                return SP_E_PROTO;
        if (q->native)
                engine_queue_dirty(q);
        return 0;
}
