/* The reference backend: devices in software that execute the built-in kernels of registry.def with no
 * OpenCL at all. Each device is a domain of its own. Commands wait in one list in the order in which they
 * were submitted; one executor at a time, the backend's thread or backend_reference_step, takes one
 * that may run, so that runs can be repeated exactly.
 *
 * `lock` guards the list, the events' status and the flags; it is a leaf. Buffers' bytes belong to
 * whoever executes. `complete` is called without it. */
#include "backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "backend/bounds.h"
#include "backend/builtin/devinfo.h"
#include "backend/builtin/program.h"
#include "backend/emit.h"
#include "backend/filter.h"
#include "base/list.h"
#include "base/log.h"
#include "base/vm.h"

enum { DEVICES = 2, LOOK_AHEAD = 64, KERNELS_MAX = 64, NAME_SIZE = 32 };

#define MEM_MAX ((size_t)1 << 30) /* bytes of one buffer */

bool backend_reference_manual;
uint64_t backend_reference_seed;
bool backend_reference_failure_stays;

struct backend {
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void *user;
        unsigned numbers[DEVICES]; /* of those that passed the filter; index = device = domain */
        unsigned count;

        pthread_mutex_t lock;
        pthread_cond_t changed; /* something to run, or stop */
        pthread_t thread;
        bool manual, stop;
        bool executing;      /* an executor works on a command, outside the lock */
        struct list pending; /* commands, oldest first; includes the one that is executed */
        uint64_t random;     /* 0: oldest first */
        uint64_t ticks;      /* manual: the clock */
        bool failure_stays;
        bool failed[DEVICES]; /* domains where something has */

        struct list svms;          /* the engine's lock guards it */
        struct list host_memories; /* as well */
};

struct backend_buffer {
        atomic_uint refs;
        struct backend_buffer *parent; /* sub-buffer: held */
        unsigned domain;
        uint8_t *data;
        size_t size;
        bool mapped; /* data is: not of mem_alloc */
};

struct host_memory {
        struct list link;
        _Alignas(64) uint8_t bytes[];
};

/* Addresses are names here: the bytes lie elsewhere. */
struct backend_svm {
        struct list link;
        uint64_t address;
        struct backend_buffer *memory; /* held */
};

struct backend_queue {
        atomic_uint refs;
        struct backend *backend;
        unsigned domain;
        cl_command_queue_properties props;
};

struct backend_event {
        atomic_uint refs;
        struct backend *backend;
        unsigned domain;
        cl_int status; /* CL_SUBMITTED, CL_COMPLETE or negative; backend->lock */
};

struct backend_program {
        struct backend *backend;
        unsigned domain;
        struct builtin_program p;
};

struct ref_arg {
        bool set;
        struct backend_buffer *buffer; /* held */
        uint64_t value;                /* of a by-value argument, at most 8 bytes */
};

struct backend_kernel {
        struct backend *backend;
        const struct registry_kernel *kernel;
        unsigned domain;
        struct ref_arg args[REGISTRY_ARGS_MAX];
};

struct command {
        struct list link;
        struct backend_queue *queue;
        struct backend_event *event;
        struct backend_command c; /* its kernel and deps are not used any more */
        const struct registry_kernel *kernel;
        size_t offset[3], global[3];
        struct backend_event **deps;
        uint8_t pattern[128];
        uint64_t submit_ns;
        bool reports; /* a marker that tells how its only dependency ended */
        unsigned arg_count;
        struct ref_arg args[]; /* those that the kernel has */
};

/* ---- references ----------------------------------------------------------------------------- */

static struct backend_buffer *buffer_ref(struct backend_buffer *m)
{
        if (m)
                atomic_fetch_add(&m->refs, 1);
        return m;
}

static void buffer_unref(struct backend_buffer *m)
{
        if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
                return;
        if (m->parent)
                buffer_unref(m->parent);
        else if (m->mapped)
                vm_unmap((uint64_t)(uintptr_t)m->data, m->size);
        else
                mem_free(m->data);
        mem_free(m);
}

static void queue_unref(struct backend_queue *q)
{
        if (q && atomic_fetch_sub(&q->refs, 1) == 1)
                mem_free(q);
}

static struct backend_event *event_ref(struct backend_event *e)
{
        atomic_fetch_add(&e->refs, 1);
        return e;
}

static void event_unref(struct backend_event *e)
{
        if (e && atomic_fetch_sub(&e->refs, 1) == 1)
                mem_free(e);
}

/* Also of one half made: everything it points to is held by it. */
static void command_free(struct command *k)
{
        for (size_t i = 0; k->deps && i < k->c.dep_count; i++)
                event_unref(k->deps[i]);
        mem_free(k->deps);
        for (unsigned i = 0; i < k->arg_count; i++)
                buffer_unref(k->args[i].buffer);
        buffer_unref(k->c.buffer);
        buffer_unref(k->c.source);
        queue_unref(k->queue);
        event_unref(k->event);
        mem_free(k);
}

static void command_freep(struct command **k)
{
        if (*k)
                command_free(*k);
}

/* ---- execution ------------------------------------------------------------------------------ */

static uint64_t clock_ns(struct backend *b)
{
        if (b->manual)
                return b->ticks += 1000;
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint8_t *box_row(const struct backend_box *x, uint8_t *base, size_t y, size_t z)
{
        return base + (x->origin[2] + z) * x->slice_pitch + (x->origin[1] + y) * x->row_pitch +
               x->origin[0];
}

static void copy_box(const struct backend_box *to, uint8_t *to_base, const struct backend_box *from,
                     uint8_t *from_base, const size_t region[3])
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memmove(box_row(to, to_base, y, z), box_row(from, from_base, y, z),
                                region[0]);
}

static cl_int run_kernel(struct command *k)
{
        struct registry_launch launch;
        launch.dims = k->c.dims;
        memcpy(launch.offset, k->offset, sizeof(launch.offset));
        memcpy(launch.global, k->global, sizeof(launch.global));
        for (unsigned i = 0; i < k->arg_count; i++) {
                struct backend_buffer *m = k->args[i].buffer;
                struct registry_value *v = &launch.args[i];
                *v = (struct registry_value){ 0 };
                if (!k->kernel->args[i].buffer)
                        *v = (struct registry_value){ &k->args[i].value, 8 };
                else if (m)
                        *v = (struct registry_value){ m->data, m->size };
        }
        return k->kernel->run(&launch);
}

static cl_int run_command(struct command *k)
{
        const struct backend_command *c = &k->c;
        struct backend_box packed = { .row_pitch = c->region[0],
                                      .slice_pitch = c->region[0] * c->region[1] };
        switch (c->op) {
        case BACKEND_KERNEL:
                return run_kernel(k);
        case BACKEND_WRITE:
                memcpy(c->buffer->data + c->offset_bytes, c->host, c->size);
                return CL_SUCCESS;
        case BACKEND_READ:
                memcpy(c->host, c->buffer->data + c->offset_bytes, c->size);
                return CL_SUCCESS;
        case BACKEND_WRITE_RECT:
                copy_box(&c->box, c->buffer->data, &packed, c->host, c->region);
                return CL_SUCCESS;
        case BACKEND_READ_RECT:
                copy_box(&packed, c->host, &c->box, c->buffer->data, c->region);
                return CL_SUCCESS;
        case BACKEND_COPY:
                memcpy(c->buffer->data + c->offset_bytes, c->source->data + c->source_offset,
                       c->size);
                return CL_SUCCESS;
        case BACKEND_COPY_RECT:
                copy_box(&c->box, c->buffer->data, &c->source_box, c->source->data, c->region);
                return CL_SUCCESS;
        case BACKEND_FILL:
                for (size_t i = 0; i < c->size; i += c->pattern_size)
                        memcpy(c->buffer->data + c->offset_bytes + i, k->pattern, c->pattern_size);
                return CL_SUCCESS;
        case BACKEND_MARKER:
        case BACKEND_BARRIER:
                return CL_SUCCESS;
        /* Not submitted: there are no images. */
        case BACKEND_WRITE_IMAGE:
        case BACKEND_READ_IMAGE:
        case BACKEND_COPY_IMAGE:
        case BACKEND_IMAGE_TO_BUFFER:
        case BACKEND_BUFFER_TO_IMAGE:
        case BACKEND_FILL_IMAGE:
                break;
        }
        return CL_INVALID_OPERATION;
}

static bool after_all(const struct command *k)
{
        return (k->c.op == BACKEND_MARKER || k->c.op == BACKEND_BARRIER) && !k->c.dep_count;
}

/* May `k` run, given what is pending before it? Lock held. */
static bool command_ready(struct backend *b, const struct command *k)
{
        for (size_t i = 0; i < k->c.dep_count; i++)
                if (k->deps[i]->status > CL_COMPLETE)
                        return false;
        bool in_order = !(k->queue->props & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        list_each(before, &b->pending, struct command, link)
        {
                if (before == k)
                        break;
                if (before->queue == k->queue &&
                    (in_order || after_all(k) || before->c.op == BACKEND_BARRIER))
                        return false;
        }
        return true;
}

static uint64_t next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* The next command to run; it stays in the list. The oldest is always ready. Lock held. */
static struct command *choose(struct backend *b)
{
        struct command *ready[LOOK_AHEAD];
        size_t count = 0, seen = 0;
        list_each(k, &b->pending, struct command, link)
        {
                if (command_ready(b, k))
                        ready[count++] = k;
                if (!b->random || ++seen == LOOK_AHEAD)
                        break;
        }
        if (!count)
                return NULL;
        return ready[count > 1 ? next_random(&b->random) % count : 0];
}

/* Run one command and report it. False: none is ready, or somebody else is executing. Lock held, left
 * while it works. */
static bool execute_one(struct backend *b)
{
        struct command *k = b->executing ? NULL : choose(b);
        if (!k)
                return false;
        cl_int status = CL_SUCCESS;
        for (size_t i = 0; i < k->c.dep_count; i++)
                if (k->deps[i]->status < 0)
                        status = k->reports ? k->deps[i]->status
                                            : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        bool *failed = &b->failed[k->queue->domain];
        if (*failed && status == CL_SUCCESS)
                status = CL_OUT_OF_RESOURCES;
        struct backend_times times = { .submit_ns = k->submit_ns, .start_ns = clock_ns(b) };
        b->executing = true;
        pthread_mutex_unlock(&b->lock);

        if (status == CL_SUCCESS)
                status = run_command(k);

        pthread_mutex_lock(&b->lock);
        times.end_ns = clock_ns(b);
        k->event->status = status;
        *failed |= b->failure_stays && status < 0;
        list_remove(&k->link);
        b->executing = false;
        pthread_mutex_unlock(&b->lock);

        if (!(k->queue->props & CL_QUEUE_PROFILING_ENABLE))
                times = (struct backend_times){ 0 };
        void *cookie = k->c.cookie;
        command_free(k);
        if (cookie)
                b->complete(b->user, cookie, status, &times);
        pthread_mutex_lock(&b->lock);
        return true;
}

static void *thread_main(void *arg)
{
        struct backend *b = arg;
        pthread_mutex_lock(&b->lock);
        for (;;) {
                if (execute_one(b))
                        continue;
                if (b->stop && list_empty(&b->pending))
                        break;
                pthread_cond_wait(&b->changed, &b->lock);
        }
        pthread_mutex_unlock(&b->lock);
        return NULL;
}

size_t backend_reference_step(struct backend *b, size_t max)
{
        size_t ran = 0;
        pthread_mutex_lock(&b->lock);
        while (ran < max && execute_one(b))
                ran++;
        pthread_mutex_unlock(&b->lock);
        return ran;
}

/* ---- the backend ---------------------------------------------------------------------------- */

static void name_of(unsigned number, char name[NAME_SIZE])
{
        snprintf(name, NAME_SIZE, "SpanCL reference %u", number);
}

/* The whole table. */
static size_t all_kernels(const struct registry_kernel *ret[KERNELS_MAX])
{
        size_t n = 0;
        while (n < KERNELS_MAX && (ret[n] = registry_at(n)))
                n++;
        return n;
}

static int ref_open(const struct backend_params *params, struct backend **ret)
{
        struct backend *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        b->complete = params->complete;
        b->user = params->user;
        for (unsigned i = 0; i < DEVICES; i++) {
                char name[NAME_SIZE];
                name_of(i, name);
                if (filter_match(params->devices, i, CL_DEVICE_TYPE_CUSTOM, name))
                        b->numbers[b->count++] = i;
        }
        if (!b->count) {
                mem_free(b);
                return SP_E_NODEV;
        }
        list_init(&b->pending);
        list_init(&b->svms);
        list_init(&b->host_memories);
        b->manual = backend_reference_manual;
        b->random = backend_reference_seed;
        b->failure_stays = backend_reference_failure_stays;
        pthread_mutex_init(&b->lock, NULL);
        pthread_cond_init(&b->changed, NULL);
        if (!b->manual && pthread_create(&b->thread, NULL, thread_main, b)) {
                pthread_cond_destroy(&b->changed);
                pthread_mutex_destroy(&b->lock);
                mem_free(b);
                return SP_E_NOMEM;
        }
        *ret = b;
        return 0;
}

static void ref_close(struct backend *b)
{
        if (!b)
                return;
        if (b->manual) {
                backend_reference_step(b, SIZE_MAX);
        } else {
                pthread_mutex_lock(&b->lock);
                b->stop = true;
                pthread_cond_signal(&b->changed);
                pthread_mutex_unlock(&b->lock);
                pthread_join(b->thread, NULL);
        }
        while (!list_empty(&b->host_memories)) {
                struct host_memory *m = list_entry(b->host_memories.next, struct host_memory, link);
                list_remove(&m->link);
                mem_free(m);
        }
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        mem_free(b);
}

static unsigned ref_device_count(struct backend *b)
{
        return b->count;
}

static unsigned ref_device_domain(struct backend *b, unsigned device)
{
        return device;
}

static int ref_device_info(struct backend *b, unsigned device, struct buf *out)
{
        if (device >= b->count)
                return SP_E_INVAL;
        struct emit e = { .out = out };
        const struct registry_kernel *kernels[KERNELS_MAX];
        size_t count = all_kernels(kernels);
        char name[NAME_SIZE];
        name_of(b->numbers[device], name);
        devinfo_device(&e, &(struct devinfo_params){
                                   .name = name,
                                   .vendor = "SpanCL",
                                   .version = "OpenCL 3.0 SpanCL reference",
                                   .platform = "SpanCL reference",
                                   .vendor_id = 0x5350,
                                   .compute_units = 1,
                                   .domain = device,
                                   .buffer_max = MEM_MAX,
                                   .memory = 4 * (cl_ulong)MEM_MAX,
                                   .svm = true,
                                   .kernels = kernels,
                                   .kernel_count = count,
                           });
        return e.status;
}

/* ---- buffers and queues --------------------------------------------------------------------- */

static cl_int ref_buffer_create(struct backend *b, unsigned domain, cl_mem_flags flags, size_t size,
                                struct backend_buffer **ret)
{
        if (domain >= b->count)
                return CL_INVALID_CONTEXT;
        if (!size || size > MEM_MAX)
                return CL_INVALID_BUFFER_SIZE;
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        *m = (struct backend_buffer){ .refs = 1, .domain = domain, .size = size };
        m->data = mem_zalloc(size);
        if (!m->data) {
                mem_free(m);
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        }
        *ret = m;
        return CL_SUCCESS;
}

static cl_int ref_host_memory(struct backend *b, unsigned domain, size_t size, void **ret)
{
        struct host_memory *m = mem_alloc(sizeof(*m) + size);
        (void)domain;
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        list_init(&m->link);
        list_append(&b->host_memories, &m->link);
        *ret = m->bytes;
        return CL_SUCCESS;
}

static cl_int part_create(struct backend_buffer *whole, unsigned domain, size_t origin, size_t size,
                          struct backend_buffer **ret)
{
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        *m = (struct backend_buffer){
                .refs = 1,
                .parent = buffer_ref(whole),
                .domain = domain,
                .data = whole->data + origin,
                .size = size,
        };
        *ret = m;
        return CL_SUCCESS;
}

static cl_int ref_sub_buffer_create(struct backend *b, struct backend_buffer *parent,
                                    cl_mem_flags flags, size_t origin, size_t size,
                                    struct backend_buffer **ret)
{
        if (parent->parent)
                return CL_INVALID_MEM_OBJECT;
        if (!size)
                return CL_INVALID_BUFFER_SIZE;
        if (!bounds_range(parent->size, origin, size))
                return CL_INVALID_VALUE;
        if (origin % DEVINFO_ALIGN)
                return CL_MISALIGNED_SUB_BUFFER_OFFSET;
        return part_create(parent, parent->domain, origin, size, ret);
}

static cl_int ref_svm_create(struct backend *b, unsigned device, uint64_t address, size_t size,
                             bool mapped, struct backend_svm **ret, uint64_t *ret_address)
{
        if (!address)
                return CL_INVALID_OPERATION;
        struct backend_svm *s = mem_zalloc(sizeof(*s));
        if (!s)
                return CL_OUT_OF_HOST_MEMORY;
        cl_int status = ref_buffer_create(b, device, CL_MEM_READ_WRITE, size, &s->memory);
        if (status < 0) {
                mem_free(s);
                return status;
        }
        if (mapped) {
                mem_free(s->memory->data);
                s->memory->data = (uint8_t *)(uintptr_t)address;
                s->memory->mapped = true;
        }
        s->address = address;
        list_init(&s->link);
        list_append(&b->svms, &s->link);
        *ret = s;
        *ret_address = address;
        return CL_SUCCESS;
}

static void ref_svm_release(struct backend_svm *s)
{
        list_remove(&s->link);
        buffer_unref(s->memory);
        mem_free(s);
}

static cl_int ref_svm_buffer_create(struct backend *b, unsigned domain, struct backend_svm *svm,
                                    cl_mem_flags flags, size_t offset, size_t size,
                                    struct backend_buffer **ret)
{
        if (domain >= b->count)
                return CL_INVALID_CONTEXT;
        if (!bounds_range(svm->memory->size, offset, size))
                return CL_INVALID_VALUE;
        return part_create(svm->memory, domain, offset, size, ret);
}

static cl_int ref_queue_create(struct backend *b, unsigned device,
                               cl_command_queue_properties props, struct backend_queue **ret)
{
        if (device >= b->count)
                return CL_INVALID_DEVICE;
        if (props & ~(cl_command_queue_properties)DEVINFO_QUEUE_PROPS)
                return CL_INVALID_QUEUE_PROPERTIES;
        struct backend_queue *q = mem_zalloc(sizeof(*q));
        if (!q)
                return CL_OUT_OF_HOST_MEMORY;
        *q = (struct backend_queue){ .refs = 1, .backend = b, .domain = device, .props = props };
        *ret = q;
        return CL_SUCCESS;
}

static void ref_queue_flush(struct backend_queue *q)
{
        /* Nothing is held back. */
}

/* ---- programs and kernels ------------------------------------------------------------------- */

static void ref_program_release(struct backend_program *p)
{
        if (!p)
                return;
        builtin_program_fini(&p->p);
        mem_free(p);
}

static cl_int ref_program_create(struct backend *b, unsigned domain, unsigned kind,
                                 const unsigned *devices, size_t device_count, struct bytes parts,
                                 struct backend_program **ret)
{
        if (domain >= b->count)
                return CL_INVALID_CONTEXT;
        struct backend_program *p = mem_zalloc(sizeof(*p));
        if (!p)
                return CL_OUT_OF_HOST_MEMORY;
        *p = (struct backend_program){ .backend = b, .domain = domain };
        const struct registry_kernel *kernels[KERNELS_MAX];
        cl_int r = builtin_program_init(&p->p, kind, parts, kernels, all_kernels(kernels));
        if (r != CL_SUCCESS) {
                mem_free(p);
                return r;
        }
        *ret = p;
        return CL_SUCCESS;
}

static cl_int ref_program_build(struct backend_program *p, const unsigned *devices,
                                size_t device_count, const char *options, struct buf *info)
{
        return builtin_program_build(&p->p, devices, device_count, info);
}

static cl_int ref_kernel_create(struct backend_program *p, const char *name,
                                struct backend_kernel **ret)
{
        const struct registry_kernel *found;
        cl_int r = builtin_program_find(&p->p, name, &found);
        if (r != CL_SUCCESS)
                return r;
        struct backend_kernel *k = mem_zalloc(sizeof(*k));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        k->backend = p->backend;
        k->kernel = found;
        k->domain = p->domain;
        *ret = k;
        return CL_SUCCESS;
}

/* From the address to the end of what it is in; the new buffer is the caller's. */
static cl_int svm_at(struct backend *b, unsigned domain, uint64_t address,
                     struct backend_buffer **ret)
{
        list_each(s, &b->svms, struct backend_svm, link)
        {
                uint64_t offset = address - s->address, size = s->memory->size;
                if (address >= s->address && offset < size)
                        return part_create(s->memory, domain, (size_t)offset,
                                           (size_t)(size - offset), ret);
        }
        return CL_INVALID_ARG_VALUE;
}

static cl_int ref_kernel_set_arg(struct backend_kernel *k, const struct arg *a,
                                 struct backend_buffer *buffer, struct backend_sampler *sampler)
{
        cl_int valid = builtin_check_arg(k->kernel, a);
        if (valid != CL_SUCCESS)
                return valid;
        const struct registry_arg *want = &k->kernel->args[a->index];
        struct ref_arg *arg = &k->args[a->index];
        if (want->buffer) {
                if (buffer && buffer->domain != k->domain)
                        return CL_INVALID_MEM_OBJECT;
                cl_int status = CL_SUCCESS;
                if (a->kind == ARG_SVM)
                        status = svm_at(k->backend, k->domain, a->object, &buffer);
                else
                        buffer_ref(buffer);
                if (status < 0)
                        return status;
                buffer_unref(arg->buffer);
                *arg = (struct ref_arg){ .set = true, .buffer = buffer };
                return CL_SUCCESS;
        }
        *arg = (struct ref_arg){ .set = true };
        memcpy(&arg->value, a->value, want->size);
        return CL_SUCCESS;
}

static void ref_kernel_release(struct backend_kernel *k)
{
        if (!k)
                return;
        for (unsigned i = 0; i < REGISTRY_ARGS_MAX; i++)
                buffer_unref(k->args[i].buffer);
        mem_free(k);
}

/* ---- submit: check everything, copy what the caller may take away, append ------------------- */

static const uint8_t *box_end(const struct backend_box *x, const struct backend_buffer *m,
                              const size_t region[3])
{
        return box_row(x, m->data, region[1] - 1, region[2] - 1) + region[0];
}

/* Copies of boxes whose spans meet are refused, even where rows would interleave: callers who need
 * that are rare, and the result must not depend on the order of rows. */
static bool boxes_meet(const struct backend_command *c)
{
        const uint8_t *to = box_row(&c->box, c->buffer->data, 0, 0);
        const uint8_t *from = box_row(&c->source_box, c->source->data, 0, 0);
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

static void take_kernel(struct command *k, const struct backend_command *c)
{
        k->kernel = c->kernel->kernel;
        for (unsigned i = 0; i < 3; i++) {
                k->global[i] = i < c->dims ? c->global[i] : 1;
                k->offset[i] = i < c->dims && c->offset ? c->offset[i] : 0;
        }
        for (; k->kernel->args[k->arg_count].name; k->arg_count++) {
                unsigned i = k->arg_count;
                k->args[i] = c->kernel->args[i];
                buffer_ref(k->args[i].buffer);
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
        auto_clean(command_freep) struct command *k =
                mem_zalloc(sizeof(*k) + args * sizeof(k->args[0]));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        list_init(&k->link);
        atomic_fetch_add(&q->refs, 1);
        k->queue = q;
        k->reports = reports;
        bool transfer = c->op >= BACKEND_WRITE && c->op <= BACKEND_FILL;
        k->c = *c;
        k->c.buffer = transfer ? buffer_ref(c->buffer) : NULL;
        k->c.source =
                c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT ? buffer_ref(c->source) : NULL;
        if (c->op == BACKEND_KERNEL)
                take_kernel(k, c);
        if (c->op == BACKEND_FILL)
                memcpy(k->pattern, c->pattern, c->pattern_size);

        k->event = mem_zalloc(sizeof(*k->event));
        k->deps = mem_alloc(c->dep_count * sizeof(*k->deps));
        if (!k->event || !k->deps) {
                mem_free(k->deps);
                k->deps = NULL;
                mem_free(steal(k->event));
                return CL_OUT_OF_HOST_MEMORY;
        }
        *k->event = (struct backend_event){
                .refs = 2, .backend = b, .domain = q->domain, .status = CL_SUBMITTED
        };
        for (size_t i = 0; i < c->dep_count; i++)
                k->deps[i] = event_ref(c->deps[i]);

        *ret = k->event;
        pthread_mutex_lock(&b->lock);
        k->submit_ns = clock_ns(b);
        struct command *appended = steal(k);
        list_append(&b->pending, &appended->link);
        if (!b->manual)
                pthread_cond_signal(&b->changed);
        pthread_mutex_unlock(&b->lock);
        return CL_SUCCESS;
}

static cl_int ref_submit(struct backend_queue *q, const struct backend_command *c,
                         struct backend_event **ret)
{
        cl_int r = append(q, c, false, ret);
        if (r == CL_SUCCESS && c->quiet && q->backend->failure_stays)
                event_unref(steal(*ret));
        return r;
}

static cl_int ref_event_report(struct backend_queue *q, struct backend_event *e, void *cookie)
{
        struct backend_event *own, *const deps[] = { e };
        const struct backend_command marker = {
                .op = BACKEND_MARKER, .deps = deps, .dep_count = 1, .cookie = cookie
        };
        cl_int status = append(q, &marker, true, &own);
        if (status == CL_SUCCESS)
                event_unref(own);
        return status;
}

static cl_int ref_event_status(struct backend_event *e)
{
        pthread_mutex_lock(&e->backend->lock);
        cl_int status = e->status;
        pthread_mutex_unlock(&e->backend->lock);
        return status < 0 ? status : CL_COMPLETE;
}

static bool ref_failure_stays(const struct backend_queue *q)
{
        return q->backend->failure_stays;
}

const struct backend_ops backend_reference = {
        .name = "reference",
        .open = ref_open,
        .close = ref_close,
        .device_count = ref_device_count,
        .device_domain = ref_device_domain,
        .domain_count = ref_device_count,
        .device_info = ref_device_info,
        .buffer_create = ref_buffer_create,
        .sub_buffer_create = ref_sub_buffer_create,
        .image_create = builtin_image_create,
        .sampler_create = builtin_sampler_create,
        .sampler_release = builtin_sampler_release,
        .buffer_release = buffer_unref,
        .host_memory = ref_host_memory,
        .svm_create = ref_svm_create,
        .svm_buffer_create = ref_svm_buffer_create,
        .svm_release = ref_svm_release,
        .queue_create = ref_queue_create,
        .queue_release = queue_unref,
        .queue_flush = ref_queue_flush,
        .program_create = ref_program_create,
        .program_build = ref_program_build,
        .program_compile = builtin_program_compile,
        .program_link = builtin_program_link,
        .program_constant = builtin_program_constant,
        .program_binary = builtin_program_binary,
        .program_release = ref_program_release,
        .kernel_create = ref_kernel_create,
        .kernel_set_arg = ref_kernel_set_arg,
        .kernel_query = builtin_kernel_query,
        .kernel_release = ref_kernel_release,
        .submit = ref_submit,
        .event_release = event_unref,
        .event_report = ref_event_report,
        .event_status = ref_event_status,
        .failure_stays = ref_failure_stays,
};
