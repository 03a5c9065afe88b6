#include "backend/threaded/threaded.h"

#include <string.h>

#include "backend/threaded/program.h"
#include "backend/threaded/state.h"

static const struct backend_ops *const native = &backend_native;

/* ---- reports -------------------------------------------------------------------------------- */

struct report {
        struct task task;
        void *cookie;
        cl_int status;
        struct backend_times times;
};

static void run_report(struct backend *b, struct task *t)
{
        struct report *r = container_of(t, struct report, task);
        b->complete(b->user, r->cookie, r->status, &r->times);
        mem_free(r);
}

/* Any thread, also inside a call of an implementation. */
static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        struct backend *b = user;
        struct report *r = mem_alloc(sizeof(*r));
        if (!r) { /* then this thread may have to wait */
                b->complete(b->user, cookie, status, t);
                return;
        }
        *r = (struct report){ { .run = run_report }, cookie, status, *t };
        runner_post(&b->reports, &r->task);
}

static void report_failure(struct backend *b, void *cookie, cl_int status)
{
        const struct backend_times none = { 0 };
        if (cookie)
                on_complete(b, cookie, status, &none);
}

static void on_broken(void *user, const char *text)
{
        struct backend *b = user;
        if (b->broken)
                b->broken(b->user, text);
}
/* ---- objects -------------------------------------------------------------------------------- */

#define RUN_RELEASE(type, op)                                                               \
        void threaded_run_release_##type(struct backend *b, struct task *t)                 \
        {                                                                                   \
                struct backend_##type *o = container_of(t, struct backend_##type, release); \
                (void)b;                                                                    \
                if (o->inner)                                                               \
                        native->op(o->inner);                                               \
                mem_free(o);                                                                \
        }                                                                                   \
        static void threaded_##type##_release(struct backend_##type *o)                     \
        {                                                                                   \
                if (o)                                                                      \
                        runner_post(&o->owner->calls, &o->release);                         \
        }

RUN_RELEASE(buffer, buffer.release)
RUN_RELEASE(sampler, sampler.release)
RUN_RELEASE(svm, svm.release)
RUN_RELEASE(queue, queue.release)
RUN_RELEASE(program, program.release)
RUN_RELEASE(kernel, kernel.release)
RUN_RELEASE(event, event.release)

/* ---- open, close, devices ------------------------------------------------------------------- */

static void threaded_close(struct backend *b)
{
        if (!b)
                return;
        runner_stop(&b->calls);
        if (b->inner)
                native->close(b->inner);
        runner_stop(&b->reports);
        runner_fini(&b->calls);
        runner_fini(&b->reports);
        mem_free(b);
}

static void threaded_closep(struct backend **b)
{
        threaded_close(*b);
}

static int threaded_open(const struct backend_params *params, struct backend **ret)
{
        auto_clean(threaded_closep) struct backend *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        b->complete = params->complete;
        b->broken = params->broken;
        b->user = params->user;
        runner_init(&b->calls, b);
        runner_init(&b->reports, b);
        struct backend_params p = *params;
        p.first_number = 0; /* the native backend counts all devices */
        p.calls = BACKEND_CALLS_BLOCK;
        p.complete = on_complete;
        p.broken = on_broken;
        p.user = b;
        int r = native->open(&p, &b->inner);
        if (r == 0)
                r = runner_start(&b->calls);
        if (r == 0)
                r = runner_start(&b->reports);
        if (r < 0)
                return r;
        *ret = steal(b);
        return 0;
}

static unsigned threaded_domain_count(struct backend *b)
{
        return native->domain_count(b->inner);
}

static unsigned threaded_device_count(struct backend *b)
{
        return native->device.count(b->inner);
}

static unsigned threaded_device_domain(struct backend *b, unsigned device)
{
        return native->device.domain(b->inner, device);
}

static bool threaded_device_label(struct backend *b, unsigned device, unsigned *ret_number,
                                  char *ret_name, size_t size)
{
        return native->device.label(b->inner, device, ret_number, ret_name, size);
}

static int threaded_device_info(struct backend *b, unsigned device, struct buf *out)
{
        return native->device.info(b->inner, device, out);
}

struct partition {
        unsigned device;
        const cl_device_partition_property *properties;
        unsigned first, count;
        cl_int status;
};

static void do_partition(struct backend *b, void *user)
{
        struct partition *p = user;
        p->status =
                native->device.partition(b->inner, p->device, p->properties, &p->first, &p->count);
}

static cl_int threaded_device_partition(struct backend *b, unsigned device,
                                        const cl_device_partition_property *properties,
                                        unsigned *ret_first, unsigned *ret_count)
{
        struct partition p = { .device = device, .properties = properties };
        runner_call(&b->calls, do_partition, &p);
        if (p.status == CL_SUCCESS) {
                *ret_first = p.first;
                *ret_count = p.count;
        }
        return p.status;
}

static void do_device_release(struct backend *b, void *user)
{
        const unsigned *device = user;
        native->device.release(b->inner, *device);
}

static void threaded_device_release(struct backend *b, unsigned device)
{
        runner_call(&b->calls, do_device_release, &device);
}

/* ---- memory --------------------------------------------------------------------------------- */

enum kind { KIND_BUFFER, KIND_SUB_BUFFER, KIND_IMAGE, KIND_PIPE, KIND_SVM };

struct buffer_task {
        struct task task;
        struct backend_buffer *made, *parent;
        struct backend_svm *svm;
        enum kind kind;
        unsigned domain;
        cl_mem_flags flags;
        size_t origin, size;
        cl_uint packet_size, packets;
        struct image_desc image;
};

static cl_int make_buffer(struct backend *b, const struct buffer_task *k)
{
        struct backend_buffer *parent = k->parent ? k->parent->inner : NULL,
                              **ret = &k->made->inner;
        if (k->parent && !parent)
                return k->parent->status;
        switch (k->kind) {
        case KIND_BUFFER:
                return native->buffer.create(b->inner, k->domain, k->flags, k->size, ret);
        case KIND_SUB_BUFFER:
                return native->buffer.create_sub(b->inner, parent, k->flags, k->origin, k->size,
                                                 ret);
        case KIND_IMAGE:
                return native->buffer.create_image(b->inner, k->domain, k->flags, &k->image, parent,
                                                   ret);
        case KIND_PIPE:
                return native->buffer.create_pipe(b->inner, k->domain, k->packet_size, k->packets,
                                                  ret);
        case KIND_SVM:
                return native->svm.create_buffer(b->inner, k->domain, k->svm->inner, k->flags,
                                                 k->origin, k->size, ret);
        }
        return CL_INVALID_OPERATION;
}

static void run_buffer(struct backend *b, struct task *t)
{
        struct buffer_task *k = container_of(t, struct buffer_task, task);
        k->made->status = make_buffer(b, k);
        mem_free(k);
}

static cl_int post_buffer(struct backend *b, const struct buffer_task *what,
                          struct backend_buffer **ret)
{
        struct backend_buffer *made = NEW(buffer, b);
        struct buffer_task *k = mem_dup(what, sizeof(*what));
        if (!made || !k) {
                mem_free(made);
                mem_free(k);
                return CL_OUT_OF_HOST_MEMORY;
        }
        k->task.run = run_buffer;
        k->made = made;
        runner_post(&b->calls, &k->task);
        *ret = made;
        return CL_SUCCESS;
}

static cl_int threaded_buffer_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                     size_t size, struct backend_buffer **ret)
{
        return post_buffer(
                b,
                &(struct buffer_task){
                        .kind = KIND_BUFFER, .domain = domain, .flags = flags, .size = size },
                ret);
}

static cl_int threaded_sub_buffer_create(struct backend *b, struct backend_buffer *parent,
                                         cl_mem_flags flags, size_t origin, size_t size,
                                         struct backend_buffer **ret)
{
        return post_buffer(b,
                           &(struct buffer_task){ .kind = KIND_SUB_BUFFER,
                                                  .parent = parent,
                                                  .flags = flags,
                                                  .origin = origin,
                                                  .size = size },
                           ret);
}

static cl_int threaded_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                    const struct image_desc *d, struct backend_buffer *parent,
                                    struct backend_buffer **ret)
{
        return post_buffer(b,
                           &(struct buffer_task){ .kind = KIND_IMAGE,
                                                  .domain = domain,
                                                  .flags = flags,
                                                  .image = *d,
                                                  .parent = parent },
                           ret);
}

static cl_int threaded_pipe_create(struct backend *b, unsigned domain, cl_uint packet_size,
                                   cl_uint packets, struct backend_buffer **ret)
{
        return post_buffer(b,
                           &(struct buffer_task){ .kind = KIND_PIPE,
                                                  .domain = domain,
                                                  .packet_size = packet_size,
                                                  .packets = packets },
                           ret);
}

static cl_int threaded_svm_buffer_create(struct backend *b, unsigned domain,
                                         struct backend_svm *svm, cl_mem_flags flags, size_t offset,
                                         size_t size, struct backend_buffer **ret)
{
        return post_buffer(b,
                           &(struct buffer_task){ .kind = KIND_SVM,
                                                  .domain = domain,
                                                  .svm = svm,
                                                  .flags = flags,
                                                  .origin = offset,
                                                  .size = size },
                           ret);
}

/* To map memory may take as long as a kernel, too. */
static cl_int threaded_host_memory(struct backend *b, unsigned domain, size_t size, void *given,
                                   void **ret)
{
        (void)b;
        (void)domain;
        (void)size;
        (void)given;
        (void)ret;
        return CL_INVALID_OPERATION;
}

struct svm_create {
        unsigned device;
        uint64_t address;
        size_t size;
        bool mapped;
        struct backend_svm *made;
        cl_int status;
};

static void do_svm_create(struct backend *b, void *user)
{
        struct svm_create *s = user;
        s->status = native->svm.create(b->inner, s->device, s->address, s->size, s->mapped,
                                       &s->made->inner, &s->address);
}

static cl_int threaded_svm_create(struct backend *b, unsigned device, uint64_t address, size_t size,
                                  bool mapped, struct backend_svm **ret, uint64_t *ret_address)
{
        struct svm_create s = { device, address, size, mapped, NEW(svm, b), CL_OUT_OF_HOST_MEMORY };
        if (s.made)
                runner_call(&b->calls, do_svm_create, &s);
        if (s.status != CL_SUCCESS) {
                mem_free(s.made);
                return s.status;
        }
        *ret = s.made;
        *ret_address = s.address;
        return CL_SUCCESS;
}

struct sampler_task {
        struct task task;
        struct backend_sampler *made;
        unsigned domain;
        struct sampler_desc desc;
};

static void run_sampler(struct backend *b, struct task *t)
{
        struct sampler_task *k = container_of(t, struct sampler_task, task);
        k->made->status = native->sampler.create(b->inner, k->domain, &k->desc, &k->made->inner);
        mem_free(k);
}

static cl_int threaded_sampler_create(struct backend *b, unsigned domain,
                                      const struct sampler_desc *d, struct backend_sampler **ret)
{
        struct backend_sampler *made = NEW(sampler, b);
        struct sampler_task *k = mem_alloc(sizeof(*k));
        if (!made || !k) {
                mem_free(made);
                mem_free(k);
                return CL_OUT_OF_HOST_MEMORY;
        }
        *k = (struct sampler_task){ { .run = run_sampler }, made, domain, *d };
        runner_post(&b->calls, &k->task);
        *ret = made;
        return CL_SUCCESS;
}

/* ---- queues --------------------------------------------------------------------------------- */

cl_int queue_task_post(struct backend *b, void (*run)(struct backend *, struct task *),
                       const struct queue_task *what)
{
        struct queue_task *k = mem_dup(what, sizeof(*what));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->task.run = run;
        runner_post(&b->calls, &k->task);
        return CL_SUCCESS;
}

static void run_queue(struct backend *b, struct task *t)
{
        struct queue_task *k = container_of(t, struct queue_task, task);
        struct backend_queue *q = k->queue;
        q->status = k->on_device ? native->device_queue.create(b->inner, k->number, k->props,
                                                               k->size, &q->inner)
                                 : native->queue.create(b->inner, k->number, k->props, &q->inner);
        mem_free(k);
}

static cl_int make_queue(struct backend *b, const struct queue_task *what,
                         struct backend_queue **ret)
{
        struct queue_task k = *what;
        k.queue = NEW(queue, b);
        cl_int r = k.queue ? queue_task_post(b, run_queue, &k) : CL_OUT_OF_HOST_MEMORY;
        if (r < 0)
                mem_free(k.queue);
        else
                *ret = k.queue;
        return r;
}

static cl_int threaded_queue_create(struct backend *b, unsigned device,
                                    cl_command_queue_properties props, struct backend_queue **ret)
{
        if (device >= threaded_device_count(b))
                return CL_INVALID_DEVICE;
        return make_queue(b, &(struct queue_task){ .number = device, .props = props }, ret);
}

static cl_int threaded_device_queue_create(struct backend *b, unsigned device,
                                           cl_command_queue_properties props, cl_uint size,
                                           struct backend_queue **ret)
{
        return make_queue(
                b,
                &(struct queue_task){
                        .on_device = true, .number = device, .props = props, .size = size },
                ret);
}

static void run_default(struct backend *b, struct task *t)
{
        struct queue_task *k = container_of(t, struct queue_task, task);
        (void)b;
        if (k->queue->inner)
                (void)native->device_queue.set_default(k->queue->inner);
        mem_free(k);
}

static cl_int threaded_device_queue_set_default(struct backend_queue *q)
{
        return queue_task_post(q->owner, run_default, &(struct queue_task){ .queue = q });
}

static void run_flush(struct backend *b, struct task *t)
{
        struct queue_task *k = container_of(t, struct queue_task, task);
        (void)b;
        if (k->queue->inner)
                native->queue.flush(k->queue->inner);
        mem_free(k);
}

/* Without memory the next flush does it. */
static void threaded_queue_flush(struct backend_queue *q)
{
        (void)!queue_task_post(q->owner, run_flush, &(struct queue_task){ .queue = q });
}

/* ---- commands ------------------------------------------------------------------------------- */

enum { DIMS = 3, PATTERN_MAX = 128, COLOUR = 16 };

struct submit_task {
        struct task task;
        struct backend_queue *queue;
        struct backend_event *event;
        struct backend_command command; /* points into this task */
        size_t offset[DIMS], global[DIMS], local[DIMS];
        uint8_t pattern[PATTERN_MAX];
        struct backend_event *deps[];
};

/* Objects become those of the native backend. */
static cl_int take_object(struct backend_buffer **m)
{
        if (!*m)
                return CL_SUCCESS;
        cl_int r = (*m)->status;
        *m = (*m)->inner;
        return r;
}

static cl_int take_kernel(struct backend_command *c)
{
        struct backend_kernel *k = c->kernel;
        if (!k)
                return CL_SUCCESS;
        c->kernel = k->inner;
        return k->status < 0 ? k->status : k->arg_status;
}

static cl_int take_deps(struct submit_task *k)
{
        size_t count = 0;
        for (size_t i = 0; i < k->command.dep_count; i++) {
                const struct backend_event *e = k->deps[i];
                if (e->status < 0)
                        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
                k->deps[count++] = e->inner;
        }
        k->command.deps = k->deps;
        return CL_SUCCESS;
}

static void run_submit(struct backend *b, struct task *t)
{
        struct submit_task *k = container_of(t, struct submit_task, task);
        struct backend_command *c = &k->command;
        cl_int r = k->queue->status;
        if (r == CL_SUCCESS)
                r = take_kernel(c);
        if (r == CL_SUCCESS)
                r = take_object(&c->buffer);
        if (r == CL_SUCCESS)
                r = take_object(&c->source);
        if (r == CL_SUCCESS)
                r = take_deps(k);
        if (r == CL_SUCCESS)
                r = native->submit(k->queue->inner, c, &k->event->inner);
        k->event->status = r;
        if (r < 0)
                report_failure(b, c->cookie, r);
        mem_free(k);
}

static const size_t *keep_sizes(size_t to[DIMS], const size_t *from, unsigned dims)
{
        if (!from)
                return NULL;
        memcpy(to, from, dims * sizeof(*from));
        return to;
}

static cl_int threaded_submit(struct backend_queue *q, const struct backend_command *c,
                              struct backend_event **ret)
{
        size_t pattern = c->op == BACKEND_FILL_IMAGE ? COLOUR : c->pattern ? c->pattern_size : 0;
        if (c->dims > DIMS || pattern > PATTERN_MAX)
                return CL_INVALID_VALUE;
        for (size_t i = 0; i < c->dep_count; i++)
                if (!c->deps[i])
                        return CL_INVALID_EVENT_WAIT_LIST;
        struct backend_event *e = NEW(event, q->owner);
        struct submit_task *k =
                mem_alloc(sizeof(*k) + c->dep_count * sizeof(struct backend_event *));
        if (!e || !k) {
                mem_free(e);
                mem_free(k);
                return CL_OUT_OF_HOST_MEMORY;
        }
        k->task.run = run_submit;
        k->queue = q;
        k->event = e;
        k->command = *c;
        k->command.offset = keep_sizes(k->offset, c->offset, c->dims);
        k->command.global = keep_sizes(k->global, c->global, c->dims);
        k->command.local = keep_sizes(k->local, c->local, c->dims);
        if (pattern) {
                memcpy(k->pattern, c->pattern, pattern);
                k->command.pattern = k->pattern;
        }
        if (c->dep_count)
                memcpy(k->deps, c->deps, c->dep_count * sizeof(struct backend_event *));
        /* There is an event in any case, and so a native one that others can wait for. */
        k->command.untracked = k->command.now = false;
        runner_post(&q->owner->calls, &k->task);
        *ret = e;
        return CL_SUCCESS;
}

struct event_report {
        struct task task;
        struct backend_queue *queue;
        struct backend_event *event;
        void *cookie;
};

static void run_event_report(struct backend *b, struct task *t)
{
        struct event_report *k = container_of(t, struct event_report, task);
        cl_int r = k->event->status;
        if (r == CL_SUCCESS)
                r = native->event.report(k->queue->inner, k->event->inner, k->cookie);
        if (r < 0)
                report_failure(b, k->cookie, r);
        mem_free(k);
}

static cl_int threaded_event_report(struct backend_queue *q, struct backend_event *e, void *cookie)
{
        struct event_report *k = mem_alloc(sizeof(*k));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        *k = (struct event_report){ { .run = run_event_report }, q, e, cookie };
        runner_post(&q->owner->calls, &k->task);
        return CL_SUCCESS;
}

/* A later command of the queue was reported, so the thread has submitted this one. */
static cl_int threaded_event_status(struct backend_event *e)
{
        return e->status < 0 ? e->status : native->event.status(e->inner);
}

const struct backend_ops backend_threaded = {
        .name = "threaded",
        .open = threaded_open,
        .close = threaded_close,
        .domain_count = threaded_domain_count,
        .device = {
                .count = threaded_device_count,
                .domain = threaded_device_domain,
                .label = threaded_device_label,
                .info = threaded_device_info,
                .partition = threaded_device_partition,
                .release = threaded_device_release,
        },
        .buffer = {
                .create = threaded_buffer_create,
                .create_sub = threaded_sub_buffer_create,
                .create_image = threaded_image_create,
                .create_pipe = threaded_pipe_create,
                .release = threaded_buffer_release,
        },
        .host_memory = threaded_host_memory,
        .svm = {
                .create = threaded_svm_create,
                .create_buffer = threaded_svm_buffer_create,
                .release = threaded_svm_release,
        },
        .sampler = {
                .create = threaded_sampler_create,
                .release = threaded_sampler_release,
        },
        .queue = {
                .create = threaded_queue_create,
                .release = threaded_queue_release,
                .flush = threaded_queue_flush,
        },
        .device_queue = {
                .create = threaded_device_queue_create,
                .set_default = threaded_device_queue_set_default,
        },
        .program = {
                .create = threaded_program_create,
                .build = threaded_program_build,
                .compile = threaded_program_compile,
                .link = threaded_program_link,
                .constant = threaded_program_constant,
                .binary_is_dear = threaded_binary_is_dear,
                .type = threaded_program_type,
                .binary = threaded_program_binary,
                .release = threaded_program_release,
        },
        .kernel = {
                .create = threaded_kernel_create,
                .set_arg = threaded_kernel_set_arg,
                .set_queue = threaded_kernel_set_queue,
                .query = threaded_kernel_query,
                .release = threaded_kernel_release,
        },
        .submit = threaded_submit,
        .event = {
                .release = threaded_event_release,
                .report = threaded_event_report,
                .status = threaded_event_status,
        },
};
