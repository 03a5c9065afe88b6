#include "backend/native/command.h"

/* Queues and commands: backend commands become clEnqueue* calls with native events as wait lists. */
#include "backend/bounds.h"
#include "backend/native/clear.h"
#include "backend/native/clock.h"
#include "backend/native/completion_flag.h"
#include "backend/native/context.h"
#include "backend/native/image.h"
#include "backend/native/notify.h"
#include "backend/native/svm.h"
#include "base/log.h"
#include "os/clock.h"

/* ---- queues --------------------------------------------------------------------------------- */

cl_command_queue native_create_queue(struct native_domain *domain, cl_device_id device,
                                     cl_command_queue_properties props, cl_int *err)
{
        const cl_icd_dispatch *api = domain->api;
        if (api->clCreateCommandQueueWithProperties) {
                cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, props, 0 };
                return api->clCreateCommandQueueWithProperties(domain->context, device,
                                                               props ? list : NULL, err);
        }
        return api->clCreateCommandQueue(domain->context, device, props, err);
}

/* A notifier that no queue uses, or a new one. The backend keeps them until close. */
static struct notifier *take_notifier(struct backend *b)
{
        for (size_t i = 1; i < b->notifier_count; i++) {
                if (!b->notifiers[i]->taken) {
                        b->notifiers[i]->taken = true;
                        return b->notifiers[i];
                }
        }
        struct notifier **more =
                mem_realloc(b->notifiers, (b->notifier_count + 1) * sizeof(struct notifier *));
        if (!more)
                return NULL;
        b->notifiers = more;
        struct notifier *n;
        if (notifier_new(&n) < 0)
                return NULL;
        n->taken = true;
        b->notifiers[b->notifier_count++] = n;
        return n;
}

cl_int native_queue_create(struct backend *b, unsigned device, cl_command_queue_properties props,
                           struct backend_queue **ret)
{
        if (device >= b->device_count)
                return CL_INVALID_DEVICE;
        struct native_device *d = &b->devices[device];
        struct native_domain *domain = &b->domains[d->domain];
        struct backend_queue *q = mem_zalloc(sizeof(*q));
        if (!q)
                return CL_OUT_OF_HOST_MEMORY;
        *q = (struct backend_queue){ .refs = 1, .backend = b, .domain = domain, .device = d };
        list_init(&q->link);
        list_init(&q->polled);
        q->last = mem_zalloc(sizeof(*q->last));
        if (!q->last) {
                queue_unref(q);
                return CL_OUT_OF_HOST_MEMORY;
        }

        /* An in-order queue can replace an out-of-order one: dependencies are always submitted
         * before the commands that wait for them. */
        cl_int err = CL_SUCCESS;
        op_enter();
        q->context = domain->context;
        q->stays = domain->quirks->queues == QUEUES_STAY;
        q->properties = props & d->queue_props;
        q->queue = queue_take_kept(q);
        if (!q->queue)
                q->queue = native_create_queue(domain, d->id, q->properties, &err);
        op_leave();
        if (!q->queue) {
                queue_unref(q);
                return err ? err : CL_OUT_OF_RESOURCES;
        }
        q->profiling = props & d->queue_props & CL_QUEUE_PROFILING_ENABLE;
        if (q->profiling)
                q->estimate_clock = !clock_sync(d);
        q->in_order = !(props & d->queue_props & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        if (domain->quirks->completion == COMPLETION_WAIT ||
            atomic_load(&domain->refuses_callbacks)) {
                q->notifier = take_notifier(b);
                if (!q->notifier)
                        log_info("native", "no thread to wait for a queue, using callbacks");
        }
        completion_flags_begin(b, domain); /* an application does not wait for them earlier */
        *ret = q;
        return CL_SUCCESS;
}

/* The default one is that of the native context, which contexts of the client share. */
cl_int native_device_queue_create(struct backend *b, unsigned device,
                                  cl_command_queue_properties props, cl_uint size,
                                  struct backend_queue **ret)
{
        if (device >= b->device_count)
                return CL_INVALID_DEVICE;
        struct native_device *d = &b->devices[device];
        struct native_domain *domain = &b->domains[d->domain];
        if (!domain->api->clCreateCommandQueueWithProperties)
                return CL_INVALID_QUEUE_PROPERTIES;
        struct backend_queue *q = mem_zalloc(sizeof(*q));
        if (!q)
                return CL_OUT_OF_HOST_MEMORY;
        *q = (struct backend_queue){ .refs = 1, .backend = b, .domain = domain, .device = d };
        cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, props, CL_QUEUE_SIZE, size, 0 };
        if (!size)
                list[2] = 0;
        cl_int err = CL_SUCCESS;
        op_enter();
        q->queue =
                domain->api->clCreateCommandQueueWithProperties(domain->context, d->id, list, &err);
        op_leave();
        if (!q->queue) {
                mem_free(q);
                return err ? err : CL_OUT_OF_RESOURCES;
        }
        *ret = q;
        return CL_SUCCESS;
}

cl_int native_device_queue_set_default(struct backend_queue *q)
{
        if (!q->domain->api->clSetDefaultDeviceCommandQueue)
                return CL_INVALID_OPERATION;
        op_enter();
        cl_int r = q->domain->api->clSetDefaultDeviceCommandQueue(q->domain->context, q->device->id,
                                                                  q->queue);
        op_leave();
        return r;
}

cl_int native_kernel_set_queue(struct backend_kernel *k, unsigned index, struct backend_queue *q)
{
        if (q->domain != k->domain)
                return CL_INVALID_DEVICE_QUEUE;
        op_enter();
        cl_int r = k->domain->api->clSetKernelArg(k->kernel, index, sizeof(q->queue), &q->queue);
        op_leave();
        return r;
}

static void flush(struct backend_queue *q)
{
        if (q->queue && q->flushed < q->submitted) {
                q->domain->api->clFlush(q->queue);
                q->flushed = q->submitted;
        }
}

void native_queue_flush(struct backend_queue *q)
{
        op_enter();
        flush(q);
        op_leave();
}

static cl_int enqueue_marker(struct backend_queue *q, bool barrier, cl_uint count,
                             const cl_event *deps, cl_event *ret)
{
        const cl_icd_dispatch *api = q->domain->api;
        if (barrier && api->clEnqueueBarrierWithWaitList)
                return api->clEnqueueBarrierWithWaitList(q->queue, count, deps, ret);
        if (!barrier && api->clEnqueueMarkerWithWaitList)
                return api->clEnqueueMarkerWithWaitList(q->queue, count, deps, ret);
        /* OpenCL 1.0: clEnqueueWaitForEvents is a barrier, which is more than a marker needs. */
        if (!api->clEnqueueMarker || !api->clEnqueueWaitForEvents || !api->clEnqueueBarrier)
                return CL_INVALID_OPERATION;
        cl_int r = CL_SUCCESS;
        if (count)
                r = api->clEnqueueWaitForEvents(q->queue, count, deps);
        if (r == CL_SUCCESS && !count)
                r = api->clEnqueueMarker(q->queue, ret);
        if (r == CL_SUCCESS && barrier)
                r = api->clEnqueueBarrier(q->queue);
        if (r == CL_SUCCESS && count)
                r = api->clEnqueueMarker(q->queue, ret);
        return r;
}

void native_queue_release(struct backend_queue *q)
{
        if (!q)
                return;
        if (!q->submitted) /* no event will be the last to hold it */
                mem_free(steal(q->last));
        op_enter();
        /* Commands without a cookie are not reported. So a marker behind them notifies close when
         * the last one is complete. */
        struct backend_event *e = q->submitted ? mem_zalloc(sizeof(*e)) : NULL;
        if (e && enqueue_marker(q, false, 0, NULL, &e->event) == CL_SUCCESS) {
                atomic_fetch_add(&q->refs, 1);
                e->refs = 1;
                e->queue = q;
                list_init(&e->link);
                notify_when_complete(e);
                q->submitted++;
        } else {
                mem_free(e);
        }
        flush(q);
        if (q->notifier)
                q->notifier->taken = false;
        op_leave();
        queue_unref(q);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* If the driver's events have to be polled, a blocking read is several microseconds faster than
 * polling. */
static bool is_now(const struct backend_queue *q, const struct backend_command *c)
{
        return c->now && !c->dep_count && !q->domain->clearing &&
               q->domain->quirks->completion == COMPLETION_WAIT;
}

static cl_int enqueue_transfer(struct backend_queue *q, const struct backend_command *c,
                               cl_uint count, const cl_event *deps, cl_event *ret)
{
        const cl_icd_dispatch *api = q->domain->api;
        const size_t no_origin[3] = { 0, 0, 0 };
        const struct backend_box *x = &c->box, *y = &c->source_box;
        cl_mem mem = c->buffer->mem;
        switch (c->op) {
        case BACKEND_WRITE:
                return api->clEnqueueWriteBuffer(q->queue, mem, CL_FALSE, c->offset_bytes, c->size,
                                                 c->host, count, deps, ret);
        case BACKEND_READ:
                return api->clEnqueueReadBuffer(q->queue, mem, is_now(q, c), c->offset_bytes,
                                                c->size, c->host, count, deps, ret);
        case BACKEND_COPY:
                return api->clEnqueueCopyBuffer(q->queue, c->source->mem, mem, c->source_offset,
                                                c->offset_bytes, c->size, count, deps, ret);
        case BACKEND_WRITE_RECT:
                if (!api->clEnqueueWriteBufferRect)
                        return CL_INVALID_OPERATION;
                return api->clEnqueueWriteBufferRect(q->queue, mem, CL_FALSE, x->origin, no_origin,
                                                     c->region, x->row_pitch, x->slice_pitch,
                                                     c->region[0], c->region[0] * c->region[1],
                                                     c->host, count, deps, ret);
        case BACKEND_READ_RECT:
                if (!api->clEnqueueReadBufferRect)
                        return CL_INVALID_OPERATION;
                return api->clEnqueueReadBufferRect(q->queue, mem, CL_FALSE, x->origin, no_origin,
                                                    c->region, x->row_pitch, x->slice_pitch,
                                                    c->region[0], c->region[0] * c->region[1],
                                                    c->host, count, deps, ret);
        case BACKEND_COPY_RECT:
                if (!api->clEnqueueCopyBufferRect)
                        return CL_INVALID_OPERATION;
                return api->clEnqueueCopyBufferRect(q->queue, c->source->mem, mem, y->origin,
                                                    x->origin, c->region, y->row_pitch,
                                                    y->slice_pitch, x->row_pitch, x->slice_pitch,
                                                    count, deps, ret);
        case BACKEND_FILL:
                if (!api->clEnqueueFillBuffer)
                        return CL_INVALID_OPERATION;
                return api->clEnqueueFillBuffer(q->queue, mem, c->pattern, c->pattern_size,
                                                c->offset_bytes, c->size, count, deps, ret);
        default:
                return CL_INVALID_OPERATION;
        }
}

static cl_int enqueue(struct backend_queue *q, const struct backend_command *c, cl_uint count,
                      const cl_event *deps, cl_event *ret)
{
        bool copy = c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT;
        cl_int r;
        switch (c->op) {
        case BACKEND_KERNEL:
                if (!c->kernel)
                        return CL_INVALID_KERNEL;
                if (c->kernel->domain != q->domain)
                        return CL_INVALID_CONTEXT;
                r = native_svm_announce(c->kernel);
                if (r != CL_SUCCESS)
                        return r;
                return q->domain->api->clEnqueueNDRangeKernel(q->queue, c->kernel->kernel, c->dims,
                                                              c->offset, c->global, c->local, count,
                                                              deps, ret);
        case BACKEND_MARKER:
        case BACKEND_BARRIER:
                return enqueue_marker(q, c->op == BACKEND_BARRIER, count, deps, ret);
        default:
                break;
        }
        if (bounds_is_image_op(c->op))
                return native_enqueue_image(q, c, count, deps, ret);
        if (!c->buffer || (copy && !c->source))
                return CL_INVALID_MEM_OBJECT;
        if (c->buffer->image.type || (copy && c->source->image.type))
                return CL_INVALID_MEM_OBJECT;
        if (c->buffer->domain != q->domain || (copy && c->source->domain != q->domain))
                return CL_INVALID_CONTEXT;
        r = bounds_check(c, c->buffer->size, copy ? c->source->size : 0);
        return r == CL_SUCCESS ? enqueue_transfer(q, c, count, deps, ret) : r;
}

/* The native events of c->deps, and `clearing`, if any. A wait for another queue's command needs that queue
 * flushed. */
static cl_int take_deps(struct backend_queue *q, const struct backend_command *c, cl_event clearing,
                        cl_event *deps)
{
        if (clearing)
                deps[c->dep_count] = clearing;
        for (size_t i = 0; i < c->dep_count; i++) {
                struct backend_event *dep = c->deps[i];
                if (!dep)
                        return CL_INVALID_EVENT_WAIT_LIST;
                if (dep->queue->domain != q->domain)
                        return CL_INVALID_CONTEXT;
                if (dep->queue != q && dep->number > dep->queue->flushed)
                        flush(dep->queue);
                deps[i] = dep->event;
        }
        return CL_SUCCESS;
}

/* Enqueue a command whose completion a flag shows. */
static cl_int enqueue_with_flag(struct backend_queue *q, const struct backend_command *c,
                                cl_uint count, const cl_event *deps, struct backend_event *e)
{
        struct backend_command n = *c;
        completion_flag_begin(q, c, e);
        if (c->op == BACKEND_READ) {
                n.host = (void *)(uintptr_t)e->completion_flag.at;
                n.now = false;
                return enqueue(q, &n, count, deps, &e->event);
        }
        cl_int r = enqueue(q, c, count, deps, NULL);
        if (r == CL_SUCCESS && completion_flag_mark(q, e) != CL_SUCCESS)
                r = enqueue_marker(q, false, 0, NULL, &e->event);
        return r;
}

static cl_int start(struct backend_queue *q, const struct backend_command *c, cl_event *deps,
                    struct backend_event *e)
{
        /* Markers need not wait for the clearing of memory, because they use none. And a marker
         * without wait list waits for all earlier commands, so it must not get one. */
        bool marks = c->op == BACKEND_MARKER || c->op == BACKEND_BARRIER;
        cl_event clearing = marks ? NULL : native_clearing(q->domain);
        cl_uint count = (cl_uint)c->dep_count + (clearing ? 1 : 0);
        cl_int r = take_deps(q, c, clearing, deps);
        if (r != CL_SUCCESS)
                return r;
        if (q->profiling)
                e->enter_ns = clock_now_ns();
        r = completion_flag_takes(q, c) ? enqueue_with_flag(q, c, count, count ? deps : NULL, e)
                                        : enqueue(q, c, count, count ? deps : NULL, &e->event);
        if (r != CL_SUCCESS) {
                e->status = r;
                completion_flag_end(e);
                return r;
        }
        if (q->profiling)
                e->return_ns = clock_now_ns();
        e->number = ++q->submitted;
        if (c->cookie)
                notify_when_complete(e);
        return CL_SUCCESS;
}

enum { BLIND_DEPS = 8 };

/* A command whose failure stays needs no event, and a command that is already complete needs
 * none. */
static cl_int submit_blind(struct backend_queue *q, const struct backend_command *c,
                           struct backend_event **ret)
{
        cl_event deps[BLIND_DEPS];
        op_enter();
        cl_int r = take_deps(q, c, NULL, deps);
        if (r == CL_SUCCESS)
                r = enqueue(q, c, (cl_uint)c->dep_count, c->dep_count ? deps : NULL, NULL);
        op_leave();
        if (r != CL_SUCCESS)
                return r;
        q->submitted++;
        if (is_now(q, c))
                q->flushed = q->submitted;
        *ret = NULL;
        return CL_SUCCESS;
}

bool native_failure_stays(const struct backend_queue *q)
{
        return q->domain->quirks->failure == FAILURE_STAYS;
}

size_t native_marker_max(const struct backend_queue *q)
{
        enum { FEW = 64 };
        return q->domain->quirks->marker == MARKER_SEARCHES ? FEW : SIZE_MAX;
}

/* A read of what is in memory of ours, which nothing that runs may change. */
static bool copies(const struct backend_queue *q, const struct backend_command *c)
{
        return c->now && !c->dep_count && !q->domain->clearing && c->buffer->bytes_at &&
               bounds_check(c, c->buffer->size, 0) == CL_SUCCESS;
}

static cl_int submit(struct backend_queue *q, const struct backend_command *c,
                     struct backend_event **ret)
{
        enum { FEW = 32 };
        if (copies(q, c)) {
                memcpy(c->host, c->buffer->bytes_at + c->offset_bytes, c->size);
                *ret = NULL;
                return CL_SUCCESS;
        }
        if (is_now(q, c) && !completion_flag_takes(q, c))
                return submit_blind(q, c, ret);
        if (c->untracked && c->dep_count <= BLIND_DEPS && native_failure_stays(q) &&
            !q->domain->clearing)
                return submit_blind(q, c, ret);
        cl_event few[FEW + 1], *deps = few;
        struct backend_event *e = mem_zalloc(sizeof(*e));
        if (c->dep_count > FEW)
                deps = mem_alloc((c->dep_count + 1) * sizeof(*deps));
        cl_int r = CL_OUT_OF_HOST_MEMORY;
        if (e && deps) {
                atomic_fetch_add(&q->refs, 1);
                *e = (struct backend_event){ .refs = c->cookie ? 2 : 1,
                                             .queue = q,
                                             .cookie = c->cookie };
                list_init(&e->link);
                op_enter();
                r = start(q, c, deps, e);
                op_leave();
        }
        if (deps != few)
                mem_free(deps);
        if (r == CL_SUCCESS) {
                *ret = e;
                return r;
        }
        if (e && e->queue)
                queue_unref(e->queue);
        mem_free(e);
        return r;
}

cl_int native_submit(struct backend_queue *q, const struct backend_command *c,
                     struct backend_event **ret)
{
        if (atomic_load_explicit(&q->domain->broken, memory_order_relaxed))
                return CL_OUT_OF_RESOURCES;
        cl_int r = submit(q, c, ret);
        if (r < 0)
                native_probe(q->backend, q->domain, r);
        return r;
}

void native_event_release(struct backend_event *e)
{
        op_enter();
        event_unref(e);
        op_leave();
}

cl_int native_event_report(struct backend_queue *q, struct backend_event *e, void *cookie)
{
        (void)q;
        e->cookie = cookie;
        atomic_fetch_add(&e->refs, 1);
        op_enter();
        notify_when_complete(e);
        op_leave();
        return CL_SUCCESS;
}

cl_int native_event_status(struct backend_event *e)
{
        cl_int status = CL_COMPLETE;
        op_enter();
        e->queue->domain->api->clGetEventInfo(e->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                              sizeof(status), &status, NULL);
        op_leave();
        return status < 0 ? status : CL_COMPLETE;
}
