#include "backend/threaded.h"

#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"

static const struct backend_ops *const native = &backend_native;

/* ---- the threads ---------------------------------------------------------------------------- */

struct task {
        struct list link;
        void (*run)(struct backend *b,
                    struct task *t); /* frees the task, unless it is a part of another object */
};

struct runner {
        struct backend *backend;
        thread_id thread;
        bool started;
        struct lock lock; /* guards what follows, and `done` of calls; a leaf */
        struct condition changed, done;
        struct list tasks;
        bool stop;
};

struct backend {
        struct backend *inner;
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void (*broken)(void *user, const char *text);
        void *user;
        struct runner calls, reports;
};

static void *runner_main(void *arg)
{
        struct runner *r = arg;
        lock_take(&r->lock);
        while (!r->stop || !list_empty(&r->tasks)) {
                if (list_empty(&r->tasks)) {
                        condition_wait(&r->changed, &r->lock);
                        continue;
                }
                struct task *t = list_entry(r->tasks.next, struct task, link);
                list_remove(&t->link);
                lock_release(&r->lock);
                t->run(r->backend, t);
                lock_take(&r->lock);
        }
        lock_release(&r->lock);
        return NULL;
}

static void runner_init(struct runner *r, struct backend *b)
{
        r->backend = b;
        lock_init(&r->lock);
        condition_init(&r->changed);
        condition_init(&r->done);
        list_init(&r->tasks);
}

static int runner_start(struct runner *r)
{
        int e = thread_start_with_signals(&r->thread, runner_main, r);
        r->started = e == 0;
        return e;
}

/* Run the tasks that are left, and end the thread. */
static void runner_stop(struct runner *r)
{
        if (!r->started)
                return;
        lock_take(&r->lock);
        r->stop = true;
        condition_signal(&r->changed);
        lock_release(&r->lock);
        thread_join(r->thread);
        r->started = false;
}

static void runner_fini(struct runner *r)
{
        condition_fini(&r->done);
        condition_fini(&r->changed);
        lock_fini(&r->lock);
}

static void post(struct runner *r, struct task *t)
{
        lock_take(&r->lock);
        list_append(&r->tasks, &t->link);
        condition_signal(&r->changed);
        lock_release(&r->lock);
}

/* A task that another thread waits for. `body` runs on the thread of the calls. */
struct call {
        struct task task;
        void (*body)(struct backend *b, void *user);
        void *user;
        bool done;
};

static void run_call(struct backend *b, struct task *t)
{
        struct call *c = container_of(t, struct call, task);
        c->body(b, c->user);
        lock_take(&b->calls.lock);
        c->done = true;
        condition_broadcast(&b->calls.done);
        lock_release(&b->calls.lock);
}

static void call(struct backend *b, void (*body)(struct backend *b, void *user), void *user)
{
        struct runner *r = &b->calls;
        struct call c = { .task.run = run_call, .body = body, .user = user };
        post(r, &c.task);
        lock_take(&r->lock);
        while (!c.done)
                condition_wait(&r->done, &r->lock);
        lock_release(&r->lock);
}

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
        post(&b->reports, &r->task);
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

/* An object of the native backend, which comes later. Until it is released, only the thread of the
 * calls reads and writes `inner` and `status`. */
#define OBJECT(type)                                    \
        struct backend_##type {                         \
                struct backend *owner;                  \
                struct backend_##type *inner;           \
                cl_int status; /* < 0: there is none */ \
                struct task release;                    \
        };                                              \
        static void run_release_##type(struct backend *b, struct task *t)

OBJECT(buffer);
OBJECT(sampler);
OBJECT(svm);
OBJECT(queue);
OBJECT(program);
OBJECT(event);

struct backend_kernel {
        struct backend *owner;
        struct backend_kernel *inner;
        cl_int status;
        struct task release;
        /* The argument that could not be set; arg_status 0: none. */
        uint32_t bad_arg;
        cl_int arg_status;
};
static void run_release_kernel(struct backend *b, struct task *t);

#define RUN_RELEASE(type, op)                                                               \
        static void run_release_##type(struct backend *b, struct task *t)                   \
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
                        post(&o->owner->calls, &o->release);                                \
        }

RUN_RELEASE(buffer, buffer.release)
RUN_RELEASE(sampler, sampler.release)
RUN_RELEASE(svm, svm.release)
RUN_RELEASE(queue, queue.release)
RUN_RELEASE(program, program.release)
RUN_RELEASE(kernel, kernel.release)
RUN_RELEASE(event, event.release)

#define NEW(type, b)                                                     \
        __extension__({                                                  \
                struct backend_##type *new_ = mem_zalloc(sizeof(*new_)); \
                if (new_) {                                              \
                        new_->owner = (b);                               \
                        new_->release.run = run_release_##type;          \
                }                                                        \
                new_;                                                    \
        })

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
        call(b, do_partition, &p);
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
        call(b, do_device_release, &device);
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
        post(&b->calls, &k->task);
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
                call(b, do_svm_create, &s);
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
        post(&b->calls, &k->task);
        *ret = made;
        return CL_SUCCESS;
}

/* ---- queues --------------------------------------------------------------------------------- */

struct queue_task {
        struct task task;
        struct backend_queue *queue; /* to make, or else to use */
        struct backend_kernel *kernel;
        bool on_device;
        unsigned number; /* of the device, or of the kernel's argument */
        cl_command_queue_properties props;
        cl_uint size;
};

static cl_int post_queue(struct backend *b, void (*run)(struct backend *, struct task *),
                         const struct queue_task *what)
{
        struct queue_task *k = mem_dup(what, sizeof(*what));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->task.run = run;
        post(&b->calls, &k->task);
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
        cl_int r = k.queue ? post_queue(b, run_queue, &k) : CL_OUT_OF_HOST_MEMORY;
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
        return post_queue(q->owner, run_default, &(struct queue_task){ .queue = q });
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
        (void)post_queue(q->owner, run_flush, &(struct queue_task){ .queue = q });
}

/* ---- programs ------------------------------------------------------------------------------- */

struct program_task {
        struct task task;
        struct backend_program *made;
        unsigned domain, kind;
        unsigned *devices;
        size_t device_count;
        struct bytes parts;
};

static void program_task_free(struct program_task *k)
{
        if (!k)
                return;
        mem_free(k->devices);
        mem_free((void *)(uintptr_t)k->parts.data);
        mem_free(k);
}

static void run_program(struct backend *b, struct task *t)
{
        struct program_task *k = container_of(t, struct program_task, task);
        k->made->status = native->program.create(b->inner, k->domain, k->kind, k->devices,
                                                 k->device_count, k->parts, &k->made->inner);
        program_task_free(k);
}

static cl_int threaded_program_create(struct backend *b, unsigned domain, unsigned kind,
                                      const unsigned *devices, size_t device_count,
                                      struct bytes parts, struct backend_program **ret)
{
        struct backend_program *made = NEW(program, b);
        struct program_task *k = mem_zalloc(sizeof(*k));
        if (made && k) {
                *k = (struct program_task){ { .run = run_program },
                                            made,
                                            domain,
                                            kind,
                                            mem_dup(devices, device_count * sizeof(*devices)),
                                            device_count,
                                            bytes_of(mem_dup(parts.data, parts.size), parts.size) };
                if (k->devices && k->parts.data) {
                        post(&b->calls, &k->task);
                        *ret = made;
                        return CL_SUCCESS;
                }
        }
        program_task_free(k);
        mem_free(made);
        return CL_OUT_OF_HOST_MEMORY;
}

enum program_op { OP_BUILD, OP_COMPILE, OP_LINK, OP_CONSTANT, OP_TYPE, OP_BINARY };

struct program_call {
        enum program_op op;
        struct backend_program *program; /* of a link the new one */
        unsigned domain;
        const unsigned *devices;
        size_t device_count;
        struct backend_program *const *inputs;
        size_t input_count;
        const char *options;
        struct buf *out;
        cl_uint id;
        struct bytes value;
        cl_program_binary_type type;
        cl_int status;
};

static cl_int link_inner(struct backend *b, struct program_call *c)
{
        struct backend_program **inputs =
                mem_alloc(c->input_count * sizeof(struct backend_program *) + 1);
        cl_int r = inputs ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; i < c->input_count && r == CL_SUCCESS; i++) {
                inputs[i] = c->inputs[i]->inner;
                r = c->inputs[i]->status;
        }
        if (r == CL_SUCCESS)
                r = native->program.link(b->inner, c->domain, c->devices, c->device_count, inputs,
                                         c->input_count, c->options, c->out, &c->program->inner);
        mem_free(inputs);
        return r;
}

static void do_program(struct backend *b, void *user)
{
        struct program_call *c = user;
        struct backend_program *p = c->program->inner;
        if (c->op == OP_LINK) {
                c->status = link_inner(b, c);
                return;
        }
        c->status = c->program->status;
        if (c->status < 0)
                return;
        switch (c->op) {
        case OP_BUILD:
                c->status =
                        native->program.build(p, c->devices, c->device_count, c->options, c->out);
                break;
        case OP_COMPILE:
                c->status =
                        native->program.compile(p, c->devices, c->device_count, c->options, c->out);
                break;
        case OP_CONSTANT:
                c->status = native->program.constant(p, c->id, c->value);
                break;
        case OP_TYPE:
                c->type = native->program.type(p, *c->devices);
                break;
        case OP_BINARY:
                c->status = native->program.binary(p, *c->devices, c->out);
                break;
        case OP_LINK:
                break;
        }
}

static cl_int threaded_program_build(struct backend_program *p, const unsigned *devices,
                                     size_t device_count, const char *options, struct buf *info)
{
        struct program_call c = { .op = OP_BUILD,
                                  .program = p,
                                  .devices = devices,
                                  .device_count = device_count,
                                  .options = options,
                                  .out = info };
        call(p->owner, do_program, &c);
        return c.status;
}

static cl_int threaded_program_compile(struct backend_program *p, const unsigned *devices,
                                       size_t device_count, const char *options, struct buf *info)
{
        struct program_call c = { .op = OP_COMPILE,
                                  .program = p,
                                  .devices = devices,
                                  .device_count = device_count,
                                  .options = options,
                                  .out = info };
        call(p->owner, do_program, &c);
        return c.status;
}

static cl_int threaded_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                                    size_t device_count, struct backend_program *const *inputs,
                                    size_t input_count, const char *options, struct buf *info,
                                    struct backend_program **ret)
{
        struct program_call c = { .op = OP_LINK,
                                  .program = NEW(program, b),
                                  .domain = domain,
                                  .devices = devices,
                                  .device_count = device_count,
                                  .inputs = inputs,
                                  .input_count = input_count,
                                  .options = options,
                                  .out = info };
        if (!c.program)
                return CL_OUT_OF_HOST_MEMORY;
        call(b, do_program, &c);
        if (c.status != CL_SUCCESS)
                mem_free(c.program);
        else
                *ret = c.program;
        return c.status;
}

static cl_int threaded_program_constant(struct backend_program *p, cl_uint id, struct bytes value)
{
        struct program_call c = { .op = OP_CONSTANT, .program = p, .id = id, .value = value };
        call(p->owner, do_program, &c);
        return c.status;
}

static bool threaded_binary_is_dear(struct backend *b, unsigned domain)
{
        return native->program.binary_is_dear(b->inner, domain);
}

static cl_program_binary_type threaded_program_type(struct backend_program *p, unsigned device)
{
        struct program_call c = { .op = OP_TYPE, .program = p, .devices = &device };
        call(p->owner, do_program, &c);
        return c.type;
}

static cl_int threaded_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        struct program_call c = { .op = OP_BINARY, .program = p, .devices = &device, .out = out };
        call(p->owner, do_program, &c);
        return c.status;
}

/* ---- kernels -------------------------------------------------------------------------------- */

struct kernel_task {
        struct task task;
        struct backend_kernel *kernel;
        struct backend_program *program; /* to make it */
        struct backend_buffer *buffer;
        struct backend_sampler *sampler;
        struct arg arg; /* its value is in `bytes` */
        char bytes[];   /* or the kernel's name */
};

static struct kernel_task *kernel_task_new(void (*run)(struct backend *, struct task *),
                                           struct backend_kernel *kernel, const void *bytes,
                                           size_t size)
{
        struct kernel_task *k = mem_zalloc(sizeof(*k) + size);
        if (!k)
                return NULL;
        k->task.run = run;
        k->kernel = kernel;
        if (size)
                memcpy(k->bytes, bytes, size);
        return k;
}

static void run_kernel(struct backend *b, struct task *t)
{
        struct kernel_task *k = container_of(t, struct kernel_task, task);
        (void)b;
        k->kernel->status = k->program->status;
        if (k->program->inner)
                k->kernel->status =
                        native->kernel.create(k->program->inner, k->bytes, &k->kernel->inner);
        mem_free(k);
}

static cl_int threaded_kernel_create(struct backend_program *p, const char *name,
                                     struct backend_kernel **ret)
{
        struct backend_kernel *made = NEW(kernel, p->owner);
        struct kernel_task *k = kernel_task_new(run_kernel, made, name, strlen(name) + 1);
        if (!made || !k) {
                mem_free(made);
                mem_free(k);
                return CL_OUT_OF_HOST_MEMORY;
        }
        k->program = p;
        post(&p->owner->calls, &k->task);
        *ret = made;
        return CL_SUCCESS;
}

static void arg_was_set(struct backend_kernel *k, uint32_t index, cl_int status)
{
        if (status < 0) {
                k->bad_arg = index;
                k->arg_status = status;
        } else if (k->bad_arg == index) {
                k->arg_status = CL_SUCCESS;
        }
}

static void run_arg(struct backend *b, struct task *t)
{
        struct kernel_task *k = container_of(t, struct kernel_task, task);
        cl_int r = k->kernel->status;
        (void)b;
        if (r == CL_SUCCESS && k->buffer)
                r = k->buffer->status;
        if (r == CL_SUCCESS && k->sampler)
                r = k->sampler->status;
        if (k->arg.value)
                k->arg.value = k->bytes;
        if (r == CL_SUCCESS)
                r = native->kernel.set_arg(k->kernel->inner, &k->arg,
                                           k->buffer ? k->buffer->inner : NULL,
                                           k->sampler ? k->sampler->inner : NULL);
        arg_was_set(k->kernel, k->arg.index, r);
        mem_free(k);
}

static cl_int threaded_kernel_set_arg(struct backend_kernel *kernel, const struct arg *a,
                                      struct backend_buffer *buffer,
                                      struct backend_sampler *sampler)
{
        size_t size = a->kind == ARG_VALUE && a->value ? (size_t)a->size : 0;
        struct kernel_task *k = kernel_task_new(run_arg, kernel, a->value, size);
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->buffer = buffer;
        k->sampler = sampler;
        k->arg = *a;
        if (!size)
                k->arg.value = NULL;
        post(&kernel->owner->calls, &k->task);
        return CL_SUCCESS;
}

static void run_set_queue(struct backend *b, struct task *t)
{
        struct queue_task *k = container_of(t, struct queue_task, task);
        cl_int r = k->kernel->status < 0 ? k->kernel->status : k->queue->status;
        (void)b;
        if (r == CL_SUCCESS)
                r = native->kernel.set_queue(k->kernel->inner, k->number, k->queue->inner);
        arg_was_set(k->kernel, k->number, r);
        mem_free(k);
}

static cl_int threaded_kernel_set_queue(struct backend_kernel *k, unsigned index,
                                        struct backend_queue *q)
{
        return post_queue(k->owner, run_set_queue,
                          &(struct queue_task){ .queue = q, .kernel = k, .number = index });
}

struct query {
        struct backend_kernel *kernel;
        unsigned device;
        uint32_t name;
        const size_t *input;
        size_t input_count, size;
        void *to;
        cl_int status;
};

static void do_query(struct backend *b, void *user)
{
        struct query *q = user;
        (void)b;
        q->status = q->kernel->status;
        if (q->status == CL_SUCCESS)
                q->status = native->kernel.query(q->kernel->inner, q->device, q->name, q->input,
                                                 q->input_count, q->size, q->to);
}

static cl_int threaded_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                                    const size_t *input, size_t input_count, size_t size, void *ret)
{
        struct query q = { k, device, name, input, input_count, size, ret, CL_SUCCESS };
        call(k->owner, do_query, &q);
        return q.status;
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
        post(&q->owner->calls, &k->task);
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
        post(&q->owner->calls, &k->task);
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
