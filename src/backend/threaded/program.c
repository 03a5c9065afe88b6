#include "backend/threaded/program.h"

#include <string.h>

#include "backend/threaded/state.h"

static const struct backend_ops *const native = &backend_native;

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

cl_int threaded_program_create(struct backend *b, unsigned domain, unsigned kind,
                               const unsigned *devices, size_t device_count, struct bytes parts,
                               struct backend_program **ret)
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
                        runner_post(&b->calls, &k->task);
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

cl_int threaded_program_build(struct backend_program *p, const unsigned *devices,
                              size_t device_count, const char *options, struct buf *info)
{
        struct program_call c = { .op = OP_BUILD,
                                  .program = p,
                                  .devices = devices,
                                  .device_count = device_count,
                                  .options = options,
                                  .out = info };
        runner_call(&p->owner->calls, do_program, &c);
        return c.status;
}

cl_int threaded_program_compile(struct backend_program *p, const unsigned *devices,
                                size_t device_count, const char *options, struct buf *info)
{
        struct program_call c = { .op = OP_COMPILE,
                                  .program = p,
                                  .devices = devices,
                                  .device_count = device_count,
                                  .options = options,
                                  .out = info };
        runner_call(&p->owner->calls, do_program, &c);
        return c.status;
}

cl_int threaded_program_link(struct backend *b, unsigned domain, const unsigned *devices,
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
        runner_call(&b->calls, do_program, &c);
        if (c.status != CL_SUCCESS)
                mem_free(c.program);
        else
                *ret = c.program;
        return c.status;
}

cl_int threaded_program_constant(struct backend_program *p, cl_uint id, struct bytes value)
{
        struct program_call c = { .op = OP_CONSTANT, .program = p, .id = id, .value = value };
        runner_call(&p->owner->calls, do_program, &c);
        return c.status;
}

bool threaded_binary_is_dear(struct backend *b, unsigned domain)
{
        return native->program.binary_is_dear(b->inner, domain);
}

cl_program_binary_type threaded_program_type(struct backend_program *p, unsigned device)
{
        struct program_call c = { .op = OP_TYPE, .program = p, .devices = &device };
        runner_call(&p->owner->calls, do_program, &c);
        return c.type;
}

cl_int threaded_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        struct program_call c = { .op = OP_BINARY, .program = p, .devices = &device, .out = out };
        runner_call(&p->owner->calls, do_program, &c);
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

cl_int threaded_kernel_create(struct backend_program *p, const char *name,
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
        runner_post(&p->owner->calls, &k->task);
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

cl_int threaded_kernel_set_arg(struct backend_kernel *kernel, const struct arg *a,
                               struct backend_buffer *buffer, struct backend_sampler *sampler)
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
        runner_post(&kernel->owner->calls, &k->task);
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

cl_int threaded_kernel_set_queue(struct backend_kernel *k, unsigned index, struct backend_queue *q)
{
        return queue_task_post(k->owner, run_set_queue,
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

cl_int threaded_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                             const size_t *input, size_t input_count, size_t size, void *ret)
{
        struct query q = { k, device, name, input, input_count, size, ret, CL_SUCCESS };
        runner_call(&k->owner->calls, do_query, &q);
        return q.status;
}
