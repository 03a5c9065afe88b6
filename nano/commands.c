/* Buffers, and commands. */
#include "base/mem.h"
#include "state.h"

/* ---- buffers ---------------------------------------------------------------------------------- */

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
                      cl_int *errcode_ret)
{
        const cl_mem_flags access =
                flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
        if (!nano_object(context, TAG_CONTEXT))
                return nano_fail(CL_INVALID_CONTEXT, errcode_ret);
        if (flags & ~(access | CL_MEM_ALLOC_HOST_PTR) || access & (access - 1))
                return nano_fail(CL_INVALID_VALUE, errcode_ret);
        if (host_ptr)
                return nano_fail(CL_INVALID_HOST_PTR, errcode_ret);
        if (!size || size > context->devices[0]->alloc_size)
                return nano_fail(CL_INVALID_BUFFER_SIZE, errcode_ret);
        cl_mem m = nano_new(nano->buffers, TAG_MEM, OBJECT_BUFFER);
        flags = access ? access : CL_MEM_READ_WRITE;
        int r = !m ? SP_E_NOMEM
                   : nano_send(buffer_create, .buffer = m->object.id, .flags = flags, .size = size);
        if (r && m)
                nano_object_free(&m->object);
        (void)nano_fail(nano_status(r), errcode_ret);
        if (r)
                return NULL;
        m->context = context;
        context->object.refs++;
        m->size = size;
        return m;
}

cl_int clReleaseMemObject(cl_mem m)
{
        if (!nano_object(m, TAG_MEM))
                return CL_INVALID_MEM_OBJECT;
        if (--m->object.refs)
                return CL_SUCCESS;
        nano_release(m->object.id);
        if (m->content)
                (void)clReleaseMemObject(m->content);
        (void)clReleaseContext(m->context);
        nano_object_free(&m->object);
        return CL_SUCCESS;
}

cl_int clSetContentSizeBufferPoCL(cl_mem buffer, cl_mem content_size_buffer)
{
        cl_mem content = content_size_buffer, old;
        if (!nano_object(buffer, TAG_MEM))
                return CL_INVALID_MEM_OBJECT;
        if (content && (!nano_object(content, TAG_MEM) || content == buffer || content->content))
                return CL_INVALID_MEM_OBJECT;
        if (content && content->context != buffer->context)
                return CL_INVALID_CONTEXT;
        if (content && content->size < sizeof(uint64_t))
                return CL_INVALID_BUFFER_SIZE;
        if (content)
                content->object.refs++;
        old = buffer->content;
        buffer->content = content;
        return old ? clReleaseMemObject(old) : CL_SUCCESS;
}

/* ---- what all commands have ------------------------------------------------------------------- */

struct command {
        cl_command_queue queue;
        uint64_t id; /* of the event, with or without one */
        cl_event event;
        uint64_t flags;
        uint64_t ids[NANO_WAITS];
        struct wire_u64s waits;
};

/* Check the wait list, and take it over. */
static cl_int take_waits(struct command *c, cl_uint count, const cl_event *waits)
{
        if (!count != !waits)
                return CL_INVALID_EVENT_WAIT_LIST;
        if (count > NANO_WAITS)
                return CL_OUT_OF_HOST_MEMORY;
        for (cl_uint i = 0; i < count; i++) {
                if (!nano_object(waits[i], TAG_EVENT))
                        return CL_INVALID_EVENT_WAIT_LIST;
                if (waits[i]->queue->context != c->queue->context)
                        return CL_INVALID_CONTEXT;
                c->ids[i] = waits[i]->object.id;
        }
        c->waits = (struct wire_u64s){ c->ids, count };
        return CL_SUCCESS;
}

static cl_int begin(struct command *c, cl_command_queue queue, cl_uint count, const cl_event *waits)
{
        c->queue = nano_object(queue, TAG_QUEUE);
        return c->queue ? take_waits(c, count, waits) : CL_INVALID_COMMAND_QUEUE;
}

/* Give the command its number, and an event if one is wanted. `told`: the server says when it ends. */
static cl_int name(struct command *c, cl_uint type, bool wanted, bool told)
{
        if (nano->status)
                return nano_status(nano->status);
        c->event = wanted ? nano_event_new(c->queue, type) : NULL;
        if (wanted && !c->event)
                return nano->status ? nano_status(nano->status) : CL_OUT_OF_HOST_MEMORY;
        c->id = wanted ? c->event->object.id : object_id(OBJECT_EVENT, ++nano->next_id);
        c->flags = !wanted ? 0 : told ? COMMAND_NOTIFY : COMMAND_NAMED;
        if (wanted) {
                c->event->told = told;
                c->event->object.refs++; /* this call's */
        }
        return CL_SUCCESS;
}

/* The command was sent (0), or could not be. */
static cl_int end(struct command *c, int r, bool blocking, cl_event *event)
{
        cl_int status = nano_status(r);
        if (!c->event)
                return status;
        if (r)
                nano_event_end(c->event, status);
        else if (blocking)
                status = nano_event_wait(c->event);
        if (event && (!r && (!blocking || !nano->status)))
                *event = c->event;
        else
                nano_event_unhold(c->event);
        return status;
}

static cl_int check_range(const struct command *c, cl_mem m, size_t offset, size_t size)
{
        if (!nano_object(m, TAG_MEM))
                return CL_INVALID_MEM_OBJECT;
        if (m->context != c->queue->context)
                return CL_INVALID_CONTEXT;
        return !size || offset > m->size || size > m->size - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

/* Announce that the command reads a buffer with a content size. */
static int send_content(const struct command *c, cl_mem m)
{
        return m->content ? nano_send(content_size, .event = c->id, .buffer = m->content->object.id)
                          : 0;
}

/* ---- reads and writes ------------------------------------------------------------------------- */

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                           size_t size, void *ptr, cl_uint num_waits, const cl_event *waits,
                           cl_event *event)
{
        struct command c;
        cl_int status = begin(&c, queue, num_waits, waits);
        if (!status)
                status = ptr ? check_range(&c, buffer, offset, size) : CL_INVALID_VALUE;
        struct nano_transfer *t = status ? NULL : nano_transfer_new();
        if (!status)
                status =
                        t ? name(&c, CL_COMMAND_READ_BUFFER, true, false) : CL_DEVICE_NOT_AVAILABLE;
        if (status)
                return status;
        t->bulk.transfer = c.id;
        t->reads = true;
        t->at = ptr;
        t->total = size;
        t->event = c.event;
        nano->link.wants_bulk |= size > SESSION_INLINE_DEFAULT;
        int r = send_content(&c, buffer);
        if (!r)
                r = nano_send(buffer_read, .event = c.id, .queue = queue->object.id,
                              .flags = c.flags, .buffer = buffer->object.id, .offset = offset,
                              .size = size, .transfer = c.id, .waits = c.waits);
        if (r && t->bulk.transfer == c.id)
                nano_transfer_end(t, nano_status(r));
        return end(&c, r, blocking, event);
}

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        const struct nano_transfer *t = container_of(b, struct nano_transfer, bulk);
        *ret_len = (size_t)(b->total - offset);
        return t->at + offset;
}

static void bulk_done(struct session_bulk *b, int status)
{
        struct nano_transfer *t = container_of(b, struct nano_transfer, bulk);
        nano_transfer_end(t, status ? CL_DEVICE_NOT_AVAILABLE : t->status);
}

/* Send the bytes of a write, whose command was sent. */
static int send_bytes(struct nano_transfer *t, uint64_t id, const void *from, size_t size)
{
        t->at = (uint8_t *)(uintptr_t)from;
        t->total = size;
        t->bulk = (struct session_bulk){
                .transfer = id, .total = size, .at = bulk_at, .done = bulk_done
        };
        nano->link.wants_bulk |= size > NANO_INLINE_MAX;
        int r = session_bulk_send(nano->session, &t->bulk, size);
        if (r)
                t->bulk.transfer = 0;
        return r;
}

static bool is_sent(const void *arg)
{
        return !nano_transfer_find(*(const uint64_t *)arg);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                            size_t size, const void *ptr, cl_uint num_waits, const cl_event *waits,
                            cl_event *event)
{
        struct command c;
        cl_int status = begin(&c, queue, num_waits, waits);
        if (!status)
                status = ptr ? check_range(&c, buffer, offset, size) : CL_INVALID_VALUE;
        struct nano_transfer *t = status ? NULL : nano_transfer_new();
        if (!status)
                status = t ? name(&c, CL_COMMAND_WRITE_BUFFER, event || num_waits, true)
                           : CL_DEVICE_NOT_AVAILABLE;
        if (status)
                return status;
        int r = nano_room(num_waits * 8 + 160 + (size <= NANO_INLINE_MAX ? 48 + size : 0));
        if (!r)
                r = nano_send(buffer_write, .event = c.id, .queue = queue->object.id,
                              .flags = c.flags, .buffer = buffer->object.id, .offset = offset,
                              .size = size, .transfer = c.id, .waits = c.waits);
        t->queue = queue;
        if (!r && c.event && c.event->status <= 0)
                nano_end(r = SP_E_PROTO); /* its end came before it was sent */
        if (!r)
                r = send_bytes(t, c.id, ptr, size);
        if (!r && blocking)
                r = nano_until(is_sent, &c.id);
        /* As OpenCL specifies: a blocking write whose wait list has failed events fails. */
        return end(&c, r, blocking && num_waits, event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset,
                           size_t dst_offset, size_t size, cl_uint num_waits, const cl_event *waits,
                           cl_event *event)
{
        struct command c;
        cl_int status = begin(&c, queue, num_waits, waits);
        if (!status)
                status = check_range(&c, src, src_offset, size);
        if (!status)
                status = check_range(&c, dst, dst_offset, size);
        if (!status && src == dst && src_offset < dst_offset + size &&
            dst_offset < src_offset + size)
                status = CL_MEM_COPY_OVERLAP;
        if (!status)
                status = name(&c, CL_COMMAND_COPY_BUFFER, event, true);
        if (status)
                return status;
        int r = send_content(&c, src);
        if (!r)
                r = nano_send(buffer_copy, .event = c.id, .queue = queue->object.id,
                              .flags = c.flags, .src = src->object.id, .dst = dst->object.id,
                              .src_offset = src_offset, .dst_offset = dst_offset, .size = size,
                              .waits = c.waits);
        return end(&c, r, false, event);
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static cl_int check_launch(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *global,
                           const size_t *local)
{
        uint64_t items = 1;
        if (!nano_object(k, TAG_KERNEL))
                return CL_INVALID_KERNEL;
        if (k->program->context != q->context)
                return CL_INVALID_CONTEXT;
        if (k->set != (1u << k->as->arg_count) - 1)
                return CL_INVALID_KERNEL_ARGS;
        if (dims < 1 || dims > 3)
                return CL_INVALID_WORK_DIMENSION;
        for (cl_uint i = 0; i < dims; i++) {
                if (!global || !global[i])
                        return CL_INVALID_GLOBAL_WORK_SIZE;
                if (local && (!local[i] || global[i] % local[i]))
                        return CL_INVALID_WORK_GROUP_SIZE;
                items *= local ? local[i] : 1;
                if (items > q->device->group_size)
                        return CL_INVALID_WORK_GROUP_SIZE;
        }
        return CL_SUCCESS;
}

static struct wire_u64s numbers(uint64_t to[3], const size_t *from, cl_uint count)
{
        for (cl_uint i = 0; from && i < count; i++)
                to[i] = from[i];
        return (struct wire_u64s){ to, from ? count : 0 };
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim,
                              const size_t *global_offset, const size_t *global_size,
                              const size_t *local_size, cl_uint num_waits, const cl_event *waits,
                              cl_event *event)
{
        struct command c;
        uint64_t offset[3], global[3], local[3];
        cl_int status = begin(&c, queue, num_waits, waits);
        if (!status)
                status = check_launch(queue, kernel, work_dim, global_size, local_size);
        if (!status)
                status = name(&c, CL_COMMAND_NDRANGE_KERNEL, event, true);
        if (status)
                return status;
        int r = nano_send(
                kernel_launch, .event = c.id, .queue = queue->object.id, .flags = c.flags,
                .kernel = kernel->object.id, .offset = numbers(offset, global_offset, work_dim),
                .global = numbers(global, global_size, work_dim),
                .local = numbers(local, local_size, work_dim),
                .args = bytes_of(kernel->changed.data, kernel->changed.size), .waits = c.waits);
        if (!r)
                kernel->changed.size = 0;
        return end(&c, r, false, event);
}

/* Has the server taken the bytes of all writes of the queue? */
static bool all_sent(const void *queue)
{
        for (size_t i = 0; i < NANO_TRANSFERS; i++) {
                const struct nano_transfer *t = &nano->transfers[i];
                if (t->bulk.transfer && !t->reads && t->queue == queue)
                        return false;
        }
        return true;
}

cl_int clFinish(cl_command_queue queue)
{
        struct command c;
        cl_int status = begin(&c, queue, 0, NULL);
        if (!status)
                status = name(&c, CL_COMMAND_MARKER, true, true);
        if (status)
                return status;
        int r = nano_send(marker, .event = c.id, .queue = queue->object.id, .flags = c.flags);
        (void)end(&c, r, true, NULL);
        /* The bytes of reads may come after the completion of later commands. */
        for (size_t i = 0; i < NANO_EVENTS; i++) {
                cl_event e = &nano->events[i];
                if (e->object.refs && e->queue == queue && e->status > 0)
                        (void)nano_event_wait(e);
        }
        /* Also the bytes of a failed write, because they are lent. */
        if (!r)
                r = nano_until(all_sent, queue);
        return nano_status(r ? r : nano->status);
}
