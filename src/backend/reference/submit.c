#include "backend/reference/submit.h"

#include <string.h>

#include "backend/bounds.h"
#include "backend/reference/executor.h"
#include "base/mem.h"

static struct backend_event *ref_event_hold(struct backend_event *e)
{
        atomic_fetch_add(&e->refs, 1);
        return e;
}

void ref_command_free(struct ref_command *k)
{
        for (size_t i = 0; i < k->c.dep_count; i++)
                ref_event_release(k->deps[i]);
        for (unsigned i = 0; i < k->arg_count; i++)
                ref_buffer_release(k->args[i].buffer);
        ref_buffer_release(k->c.buffer);
        ref_buffer_release(k->c.source);
        ref_queue_release(k->queue);
        ref_event_release(&k->event);
}

static const uint8_t *box_end(const struct backend_box *x, const struct backend_buffer *m,
                              const size_t region[3])
{
        return ref_box_row(x, m->data, region[1] - 1, region[2] - 1) + region[0];
}

/* Copies of boxes whose spans meet are refused, even if their rows only interleave. Few callers
 * need such copies, and the result must not depend on the order of rows. */
static bool boxes_meet(const struct backend_command *c)
{
        const uint8_t *to = ref_box_row(&c->box, c->buffer->data, 0, 0);
        const uint8_t *from = ref_box_row(&c->source_box, c->source->data, 0, 0);
        return to < box_end(&c->source_box, c->source, c->region) &&
               from < box_end(&c->box, c->buffer, c->region);
}

static cl_int check_transfer(const struct backend_queue *q, const struct backend_command *c)
{
        bool copy = c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT;
        if (!c->buffer || (copy && !c->source))
                return CL_INVALID_MEM_OBJECT;
        if (c->buffer->domain != q->domain || (copy && c->source->domain != q->domain))
                return CL_INVALID_CONTEXT;
        cl_int r = bounds_check(c, c->buffer->size, copy ? c->source->size : 0);
        if (r != CL_SUCCESS || !copy)
                return r;
        if (c->op == BACKEND_COPY_RECT)
                return boxes_meet(c) ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
        const uint8_t *to = c->buffer->data + c->offset_bytes;
        const uint8_t *from = c->source->data + c->source_offset;
        return to < from + c->size && from < to + c->size ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

static cl_int check_kernel(const struct backend_queue *q, const struct backend_command *c)
{
        if (!c->kernel)
                return CL_INVALID_KERNEL;
        if (c->kernel->domain != q->domain)
                return CL_INVALID_CONTEXT;
        cl_int r = builtin_check_launch(c);
        if (r != CL_SUCCESS)
                return r;
        for (unsigned i = 0; c->kernel->kernel->args[i].name; i++)
                if (!c->kernel->args[i].set)
                        return CL_INVALID_KERNEL_ARGS;
        return CL_SUCCESS;
}

static cl_int check_command(const struct backend_queue *q, const struct backend_command *c)
{
        for (size_t i = 0; i < c->dep_count; i++) {
                if (!c->deps[i])
                        return CL_INVALID_EVENT_WAIT_LIST;
                if (c->deps[i]->domain != q->domain)
                        return CL_INVALID_CONTEXT;
        }
        if (c->op == BACKEND_MARKER || c->op == BACKEND_BARRIER)
                return CL_SUCCESS;
        return c->op == BACKEND_KERNEL ? check_kernel(q, c) : check_transfer(q, c);
}

static void take_kernel(struct ref_command *k, const struct backend_command *c)
{
        k->kernel = c->kernel->kernel;
        for (unsigned i = 0; i < 3; i++) {
                k->global[i] = i < c->dims ? c->global[i] : 1;
                k->offset[i] = i < c->dims && c->offset ? c->offset[i] : 0;
        }
        for (; k->kernel->args[k->arg_count].name; k->arg_count++) {
                unsigned i = k->arg_count;
                k->args[i] = c->kernel->args[i];
                ref_buffer_hold(k->args[i].buffer);
        }
}

static cl_int append(struct backend_queue *q, const struct backend_command *c, bool reports,
                     struct backend_event **ret)
{
        struct backend *b = q->backend;
        cl_int r = check_command(q, c);
        if (r != CL_SUCCESS)
                return r;

        size_t args = 0;
        while (c->op == BACKEND_KERNEL && c->kernel->kernel->args[args].name)
                args++;
        size_t own = sizeof(struct ref_command) + args * sizeof(struct ref_arg);
        struct ref_command *k = mem_zalloc(own + c->dep_count * sizeof(k->deps[0]));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->event = (struct backend_event){
                .refs = 2, .backend = b, .domain = q->domain, .status = CL_SUBMITTED
        };
        atomic_fetch_add(&q->refs, 1);
        k->queue = q;
        k->reports = reports;
        bool transfer = c->op >= BACKEND_WRITE && c->op <= BACKEND_FILL;
        k->c = *c;
        k->c.buffer = transfer ? ref_buffer_hold(c->buffer) : NULL;
        k->c.source = c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT
                              ? ref_buffer_hold(c->source)
                              : NULL;
        if (c->op == BACKEND_KERNEL)
                take_kernel(k, c);
        if (c->op == BACKEND_FILL)
                memcpy(k->pattern, c->pattern, c->pattern_size);

        k->deps = (struct backend_event **)(k->args + args);
        for (size_t i = 0; i < c->dep_count; i++)
                k->deps[i] = ref_event_hold(c->deps[i]);

        *ret = &k->event;
        lock_take(&b->lock);
        k->submit_ns = executor_clock_ns(b);
        list_append(&b->pending, &k->link);
        executor_wake(b);
        lock_release(&b->lock);
        return CL_SUCCESS;
}

cl_int ref_submit(struct backend_queue *q, const struct backend_command *c,
                  struct backend_event **ret)
{
        cl_int r = append(q, c, false, ret);
        if (r == CL_SUCCESS && c->untracked && q->backend->failure_stays)
                ref_event_release(steal(*ret));
        return r;
}

cl_int ref_event_report(struct backend_queue *q, struct backend_event *e, void *cookie)
{
        struct backend_event *own, *const deps[] = { e };
        const struct backend_command marker = {
                .op = BACKEND_MARKER, .deps = deps, .dep_count = 1, .cookie = cookie
        };
        cl_int status = append(q, &marker, true, &own);
        if (status == CL_SUCCESS)
                ref_event_release(own);
        return status;
}
