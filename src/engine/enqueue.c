#include "base/mem.h"
#include "engine/command.h"

/* Describe the parts that all commands have. */
#define params_of(m, ...)                               \
        (&(struct command_params){ .queue = (m)->queue, \
                                   .event = (m)->event, \
                                   .flags = (m)->flags, \
                                   .waits = (m)->waits, \
                                   __VA_ARGS__ })

static struct buffer *take_mem(struct engine *e, uint64_t id, bool image)
{
        struct buffer *b = engine_buffer_find(e, id);
        if (!b || engine_buffer_is_image(b) != image)
                return NULL;
        engine_object_ref(&b->object);
        return b;
}

static struct buffer *take_buffer(struct engine *e, uint64_t id)
{
        return take_mem(e, id, false);
}

static struct buffer *take_image(struct engine *e, uint64_t id)
{
        return take_mem(e, id, true);
}

static bool range_fits(const struct buffer *b, uint64_t offset, uint64_t size)
{
        return size && offset <= b->size && size <= b->size - offset;
}

static void take_sizes(size_t out[3], struct wire_u64s v)
{
        for (size_t i = 0; i < v.count && i < 3; i++)
                out[i] = (size_t)wire_u64s_at(v, i);
}

/* ---- boxes ---------------------------------------------------------------------------------- */

static int take_box(struct wire_u64s origin, uint64_t row_pitch, uint64_t slice_pitch,
                    struct backend_box *ret)
{
        if (origin.count != 3)
                return SP_E_PROTO;
        take_sizes(ret->origin, origin);
        ret->row_pitch = (size_t)row_pitch;
        ret->slice_pitch = (size_t)slice_pitch;
        return 0;
}

/* a * b + c, SIZE_MAX when it does not fit. */
static size_t mul_add(size_t a, size_t b, size_t c)
{
        size_t r;
        if (__builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, c, &r))
                return SIZE_MAX;
        return r;
}

/* The box ends in the buffer, and its rows and slices do not overlap. */
static bool box_fits(const struct buffer *b, const struct backend_box *x, const size_t region[3])
{
        if (!region[0] || !region[1] || !region[2])
                return false;
        if (x->row_pitch < region[0] || x->slice_pitch < mul_add(x->row_pitch, region[1], 0))
                return false;
        size_t row = mul_add(x->origin[1], 1, region[1] - 1);
        size_t slice = mul_add(x->origin[2], 1, region[2] - 1);
        size_t end = mul_add(x->origin[0], 1, region[0]);
        if (row == SIZE_MAX || slice == SIZE_MAX || end == SIZE_MAX)
                return false;
        end = mul_add(row, x->row_pitch, end);
        if (end == SIZE_MAX)
                return false;
        end = mul_add(slice, x->slice_pitch, end);
        return end != SIZE_MAX && end <= b->size;
}

/* Bytes of a box without gaps. SP_E_PROTO: none, or no transfer could be so large. */
static int box_size(struct wire_u64s region, uint64_t *ret)
{
        size_t r[3];
        if (region.count != 3)
                return SP_E_PROTO;
        take_sizes(r, region);
        size_t size = mul_add(mul_add(r[0], r[1], 0), r[2], 0);
        if (!size || size > WIRE_BULK_MAX)
                return SP_E_PROTO;
        *ret = size;
        return 0;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void take_args(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        for (size_t i = 0; i < c->arg_count; i++) {
                struct value *v = c->kernel->args[i];
                engine_value_ref(v);
                c->args[i] = v;
                if (!v || !arg_is_object(v->arg.kind) || !v->arg.object)
                        continue;
                cl_int status = engine_arg_object(e, &v->arg, &c->arg_objects[i]);
                if (status < 0)
                        engine_command_fail(c, status);
                else
                        engine_object_ref(c->arg_objects[i]);
        }
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
        struct command *c;
        if (!r)
                r = engine_command_new(e, params_of(m, .arg_count = k->arg_count), &c);
        if (r < 0)
                return r;
        c->kernel = k;
        engine_object_ref(&k->object);
        take_args(c);
        take_sizes(c->offset, m->offset);
        take_sizes(c->global, m->global);
        take_sizes(c->local, m->local);
        c->native = (struct backend_command){
                .op = BACKEND_KERNEL,
                .dims = (unsigned)dims,
                .offset = m->offset.count ? c->offset : NULL,
                .global = c->global,
                .local = m->local.count ? c->local : NULL,
        };
        engine_command_enqueue(c);
        return 0;
}

/* ---- bulk ----------------------------------------------------------------------------------- */

/* The other end of a command's bulk data; *ret NULL: this server. */
static int take_peer(struct engine *e, uint64_t id, struct peer **ret)
{
        struct peer *p = id == PEER_SELF ? NULL : engine_peer_find(e, id);
        if (!p && id != PEER_SELF)
                return SP_E_PROTO;
        *ret = p;
        return 0;
}

int engine_handle_buffer_write(void *user, const struct wire_buffer_write *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        struct peer *from;
        int r = take_peer(e, m->peer, &from);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->buffer);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native = (struct backend_command){
                .op = BACKEND_WRITE,
                .offset_bytes = (size_t)m->offset,
                .size = (size_t)m->size,
        };
        if (!range_fits(c->buffer, m->offset, m->size))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_expect(e, from, m->transfer, m->size, false, c, &c->transfer);
        if (r < 0)
                return r;
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_read(void *user, const struct wire_buffer_read *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        struct peer *to;
        int r = take_peer(e, m->peer, &to);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->buffer);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native = (struct backend_command){
                .op = BACKEND_READ,
                .offset_bytes = (size_t)m->offset,
                .size = (size_t)m->size,
        };
        if (!range_fits(c->buffer, m->offset, m->size))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_offer(e, to, m->transfer, m->size, false, c, &c->transfer);
        if (r < 0)
                return r;
        if (to && to->lost)
                engine_command_fail(c, CL_DEVICE_NOT_AVAILABLE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_write_rect(void *user, const struct wire_buffer_write_rect *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t total;
        int r = box_size(m->region, &total);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->buffer);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native.op = BACKEND_WRITE_RECT;
        take_sizes(c->native.region, m->region);
        r = take_box(m->origin, m->row_pitch, m->slice_pitch, &c->native.box);
        if (r < 0)
                return r;
        if (!box_fits(c->buffer, &c->native.box, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_expect(e, user, m->transfer, total, true, c, &c->transfer);
        if (r < 0)
                return r;
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_read_rect(void *user, const struct wire_buffer_read_rect *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t total;
        int r = box_size(m->region, &total);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->buffer);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native.op = BACKEND_READ_RECT;
        take_sizes(c->native.region, m->region);
        r = take_box(m->origin, m->row_pitch, m->slice_pitch, &c->native.box);
        if (r < 0)
                return r;
        if (!box_fits(c->buffer, &c->native.box, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_offer(e, user, m->transfer, total, true, c, &c->transfer);
        if (r < 0)
                return r;
        engine_command_enqueue(c);
        return 0;
}

/* ---- within a domain ------------------------------------------------------------------------ */

int engine_handle_buffer_copy(void *user, const struct wire_buffer_copy *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->dst);
        c->source = take_buffer(e, m->src);
        if (!c->buffer || !c->source)
                return SP_E_PROTO;
        c->native = (struct backend_command){
                .op = BACKEND_COPY,
                .offset_bytes = (size_t)m->dst_offset,
                .source_offset = (size_t)m->src_offset,
                .size = (size_t)m->size,
        };
        if (!range_fits(c->buffer, m->dst_offset, m->size) ||
            !range_fits(c->source, m->src_offset, m->size))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_copy_rect(void *user, const struct wire_buffer_copy_rect *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        int r = m->region.count == 3 ? 0 : SP_E_PROTO;
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->dst);
        c->source = take_buffer(e, m->src);
        if (!c->buffer || !c->source)
                return SP_E_PROTO;
        c->native.op = BACKEND_COPY_RECT;
        take_sizes(c->native.region, m->region);
        r = take_box(m->dst_origin, m->dst_row_pitch, m->dst_slice_pitch, &c->native.box);
        if (!r)
                r = take_box(m->src_origin, m->src_row_pitch, m->src_slice_pitch,
                             &c->native.source_box);
        if (r < 0)
                return r;
        if (!box_fits(c->buffer, &c->native.box, c->native.region) ||
            !box_fits(c->source, &c->native.source_box, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_fill(void *user, const struct wire_buffer_fill *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_buffer(e, m->buffer);
        if (!c->buffer)
                return SP_E_PROTO;
        size_t n = m->pattern.size;
        if (n > sizeof(c->pattern))
                return SP_E_PROTO;
        if (n)
                memcpy(c->pattern, m->pattern.data, n);
        c->native = (struct backend_command){
                .op = BACKEND_FILL,
                .offset_bytes = (size_t)m->offset,
                .size = (size_t)m->size,
                .pattern = c->pattern,
                .pattern_size = n,
        };
        /* "pattern_size must be one of { 1, 2, 4, 8, 16, 32, 64, 128 }"; offset and size multiples. */
        if (!n || (n & (n - 1)) || m->offset % n || m->size % n ||
            !range_fits(c->buffer, m->offset, m->size))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

/* ---- images --------------------------------------------------------------------------------- */

static int take_origin(struct wire_u64s origin, size_t ret[3])
{
        if (origin.count != 3)
                return SP_E_PROTO;
        take_sizes(ret, origin);
        return 0;
}

/* The bytes of a region without gaps. SP_E_PROTO: none, or no transfer could be so large. */
static int take_region(const struct buffer *image, struct wire_u64s region, size_t ret[3],
                       uint64_t *ret_bytes)
{
        int r = take_origin(region, ret);
        uint64_t bytes = r < 0 ? 0 : image_bytes(&image->image, ret);
        if (!bytes || bytes > WIRE_BULK_MAX)
                return SP_E_PROTO;
        *ret_bytes = bytes;
        return 0;
}

int engine_handle_image_write(void *user, const struct wire_image_write *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        struct peer *from;
        uint64_t total;
        int r = take_peer(e, m->peer, &from);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_image(e, m->image);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native.op = BACKEND_WRITE_IMAGE;
        r = take_origin(m->origin, c->native.box.origin);
        if (!r)
                r = take_region(c->buffer, m->region, c->native.region, &total);
        if (r < 0)
                return r;
        if (!image_has(&c->buffer->image, c->native.box.origin, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_expect(e, from, m->transfer, total, true, c, &c->transfer);
        if (r < 0)
                return r;
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_image_read(void *user, const struct wire_image_read *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        struct peer *to;
        uint64_t total;
        int r = take_peer(e, m->peer, &to);
        if (!r)
                r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_image(e, m->image);
        if (!c->buffer)
                return SP_E_PROTO;
        c->native.op = BACKEND_READ_IMAGE;
        r = take_origin(m->origin, c->native.box.origin);
        if (!r)
                r = take_region(c->buffer, m->region, c->native.region, &total);
        if (r < 0)
                return r;
        if (!image_has(&c->buffer->image, c->native.box.origin, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        r = engine_transfer_offer(e, to, m->transfer, total, true, c, &c->transfer);
        if (r < 0)
                return r;
        if (to && to->lost)
                engine_command_fail(c, CL_DEVICE_NOT_AVAILABLE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_image_copy(void *user, const struct wire_image_copy *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t bytes;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        struct backend_command *n = &c->native;
        c->buffer = take_image(e, m->dst);
        c->source = take_image(e, m->src);
        if (!c->buffer || !c->source)
                return SP_E_PROTO;
        n->op = BACKEND_COPY_IMAGE;
        r = take_origin(m->dst_origin, n->box.origin);
        if (!r)
                r = take_origin(m->src_origin, n->source_box.origin);
        if (!r)
                r = take_region(c->buffer, m->region, n->region, &bytes);
        if (r < 0)
                return r;
        if (!image_has(&c->buffer->image, n->box.origin, n->region) ||
            !image_has(&c->source->image, n->source_box.origin, n->region))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_image_to_buffer(void *user, const struct wire_image_to_buffer *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t bytes;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        struct backend_command *n = &c->native;
        c->buffer = take_buffer(e, m->buffer);
        c->source = take_image(e, m->image);
        if (!c->buffer || !c->source)
                return SP_E_PROTO;
        n->op = BACKEND_IMAGE_TO_BUFFER;
        n->offset_bytes = (size_t)m->offset;
        r = take_origin(m->origin, n->source_box.origin);
        if (!r)
                r = take_region(c->source, m->region, n->region, &bytes);
        if (r < 0)
                return r;
        if (!image_has(&c->source->image, n->source_box.origin, n->region) ||
            !range_fits(c->buffer, m->offset, bytes))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_buffer_to_image(void *user, const struct wire_buffer_to_image *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t bytes;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        struct backend_command *n = &c->native;
        c->buffer = take_image(e, m->image);
        c->source = take_buffer(e, m->buffer);
        if (!c->buffer || !c->source)
                return SP_E_PROTO;
        n->op = BACKEND_BUFFER_TO_IMAGE;
        n->source_offset = (size_t)m->offset;
        r = take_origin(m->origin, n->box.origin);
        if (!r)
                r = take_region(c->buffer, m->region, n->region, &bytes);
        if (r < 0)
                return r;
        if (!image_has(&c->buffer->image, n->box.origin, n->region) ||
            !range_fits(c->source, m->offset, bytes))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

int engine_handle_image_fill(void *user, const struct wire_image_fill *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        uint64_t bytes;
        int r = engine_command_new(e, params_of(m), &c);
        if (r < 0)
                return r;
        c->buffer = take_image(e, m->image);
        if (!c->buffer || m->color.size != 16)
                return SP_E_PROTO;
        memcpy(c->pattern, m->color.data, m->color.size);
        c->native.op = BACKEND_FILL_IMAGE;
        c->native.pattern = c->pattern;
        c->native.pattern_size = m->color.size;
        r = take_origin(m->origin, c->native.box.origin);
        if (!r)
                r = take_region(c->buffer, m->region, c->native.region, &bytes);
        if (r < 0)
                return r;
        if (!image_has(&c->buffer->image, c->native.box.origin, c->native.region))
                engine_command_fail(c, CL_INVALID_VALUE);
        engine_command_enqueue(c);
        return 0;
}

/* ---- order ---------------------------------------------------------------------------------- */

int engine_handle_marker(void *user, const struct wire_marker *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct command *c;
        int r = engine_command_new(e, params_of(m, .marker = true), &c);
        if (r < 0)
                return r;
        c->native.op = m->flags & COMMAND_BARRIER ? BACKEND_BARRIER : BACKEND_MARKER;
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
