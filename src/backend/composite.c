/* Several backends as one, for example this host's own devices and its accelerators. Each object wraps
 * an inner backend's object and notes the part that it belongs to.
 *
 * Device numbers: first the devices that each part has at open, in the order of the parts, then
 * devices that any part gets later (sub-devices), as they come. Domains alike. */
#include "backend/backend.h"

#include <limits.h>
#include <stdatomic.h>

#include "base/mem.h"

enum {
        FILTER_NUMBERS =
                1000, /* the filter knows the devices of the i-th part from i times this on */
        NUMBERS_MAX = 1 << 16, /* of devices, and of domains, also of those released */
        DEPS_SMALL = 32,
};

struct part {
        const struct backend_ops *ops;
        struct backend *b;
        struct backend *whole;
        unsigned *devices, *domains; /* their numbers in the whole */
};

/* A device or domain of a part. */
struct place {
        struct part *part;
        unsigned number;
};

/* The arrays have room for NUMBERS_MAX from the start, since builds read them and their counts on
 * other threads. A build only knows numbers that were there when it began. */
struct backend {
        struct place *devices, *domains;
        atomic_uint device_count, domain_count;
        unsigned part_count;
        struct part parts[];
};

/* An object of an inner backend, and its part. */
#define WRAPPER(type)                         \
        struct backend_##type {               \
                struct part *part;            \
                struct backend_##type *inner; \
        }

WRAPPER(buffer);
WRAPPER(sampler);
WRAPPER(svm);
WRAPPER(queue);
WRAPPER(program);
WRAPPER(kernel);
WRAPPER(event);

/* `call` makes the inner object in *&w->inner. */
#define WRAP(type, at, ret, call)                                  \
        __extension__({                                            \
                struct backend_##type *w = mem_zalloc(sizeof(*w)); \
                cl_int status_ = w ? 0 : CL_OUT_OF_HOST_MEMORY;    \
                if (w) {                                           \
                        w->part = (at);                            \
                        status_ = (call);                          \
                }                                                  \
                if (status_ < 0)                                   \
                        mem_free(w);                               \
                else                                               \
                        *(ret) = w;                                \
                status_;                                           \
        })

/* ---- numbers -------------------------------------------------------------------------------- */

/* Find the part that device or domain `number` belongs to, and translate it to the part's own number.
 * A number that is none goes to the first part as one that the part refuses. */
static struct part *find_part(struct backend *b, const struct place *places, unsigned count,
                              unsigned *number)
{
        struct place at = { &b->parts[0], UINT_MAX };
        if (*number < count)
                at = places[*number];
        *number = at.number;
        return at.part;
}

static struct part *device_part(struct backend *b, unsigned *device)
{
        return find_part(b, b->devices, b->device_count, device);
}

static struct part *domain_part(struct backend *b, unsigned *domain)
{
        return find_part(b, b->domains, b->domain_count, domain);
}

/* Give numbers to all devices and domains of a part that have none. False: there are too many. A
 * part does not use a number again, and those that got none here count, too. */
static bool number_all(struct part *s, unsigned devices, unsigned domains)
{
        struct backend *b = s->whole;
        unsigned device_count = s->ops->device.count(s->b);
        unsigned domain_count = s->ops->domain_count(s->b);
        if (device_count > NUMBERS_MAX || domain_count > NUMBERS_MAX ||
            device_count - devices > NUMBERS_MAX - b->device_count ||
            domain_count - domains > NUMBERS_MAX - b->domain_count)
                return false;
        for (unsigned i = devices; i < device_count; i++) {
                s->devices[i] = b->device_count;
                b->devices[b->device_count] = (struct place){ s, i };
                b->device_count++;
        }
        for (unsigned i = domains; i < domain_count; i++) {
                s->domains[i] = b->domain_count;
                b->domains[b->domain_count] = (struct place){ s, i };
                b->domain_count++;
        }
        return true;
}

/* ---- info records name devices and domains -------------------------------------------------- */

static void rename_all(const struct part *s, struct bytes block)
{
        struct info_entry e;
        while (info_next(&block, &e)) {
                bool device = e.key == INFO_BUILD_DEVICE, domain = e.key == INFO_DEVICE_DOMAIN;
                if (e.key == INFO_BUILD || e.key == INFO_KERNEL || e.key == INFO_KERNEL_DEVICE)
                        rename_all(s, e.value);
                else if ((device || domain) && e.value.size == 8 &&
                         bytes_get_u64(e.value.data) < NUMBERS_MAX)
                        bytes_put_u64(
                                (void *)(uintptr_t)e.value.data,
                                (device ? s->devices : s->domains)[bytes_get_u64(e.value.data)]);
        }
}

/* Renumber the records appended to `out` behind its first `from` bytes. */
static void rename_from(const struct part *s, struct buf *out, size_t from)
{
        if (out && out->size > from)
                rename_all(s, bytes_of(out->data + from, out->size - from));
}

/* ---- open, close, devices ------------------------------------------------------------------- */

static void composite_close(struct backend *b)
{
        if (!b)
                return;
        for (unsigned i = 0; i < b->part_count; i++) {
                struct part *s = &b->parts[i];
                if (s->b)
                        s->ops->close(s->b);
                mem_free(s->devices);
                mem_free(s->domains);
        }
        mem_free(b->devices);
        mem_free(b->domains);
        mem_free(b);
}

static void composite_closep(struct backend **b)
{
        composite_close(*b);
}

/* Open the next part. SP_E_NODEV: it has no devices, and is none. */
static int open_part(struct backend *b, const struct backend_ops *ops,
                     const struct backend_params *params)
{
        struct part *s = &b->parts[b->part_count];
        struct backend *opened;
        int r = ops->open(params, &opened);
        if (r < 0)
                return r;
        *s = (struct part){ .ops = ops,
                            .b = opened,
                            .whole = b,
                            .devices = mem_zalloc(NUMBERS_MAX * sizeof(*s->devices)),
                            .domains = mem_zalloc(NUMBERS_MAX * sizeof(*s->domains)) };
        b->part_count++;
        if (!s->devices || !s->domains)
                return SP_E_NOMEM;
        return number_all(s, 0, 0) ? 0 : SP_E_LIMIT;
}

static int composite_open(const struct backend_params *params, struct backend **ret)
{
        size_t count = 0;
        while (params->parts[count])
                count++;
        auto_clean(composite_closep) struct backend *b =
                mem_zalloc(sizeof(*b) + count * sizeof(b->parts[0]));
        if (!b)
                return SP_E_NOMEM;
        b->devices = mem_zalloc(NUMBERS_MAX * sizeof(*b->devices));
        b->domains = mem_zalloc(NUMBERS_MAX * sizeof(*b->domains));
        if (!b->devices || !b->domains)
                return SP_E_NOMEM;
        struct backend_params p = *params;
        for (size_t i = 0; i < count; i++) {
                p.first_number = (unsigned)i * FILTER_NUMBERS;
                int r = open_part(b, params->parts[i], &p);
                if (r < 0 && r != SP_E_NODEV)
                        return r;
        }
        if (!b->part_count)
                return SP_E_NODEV;
        *ret = steal(b);
        return 0;
}

static unsigned composite_device_count(struct backend *b)
{
        return b->device_count;
}

static unsigned composite_domain_count(struct backend *b)
{
        return b->domain_count;
}

static unsigned composite_device_domain(struct backend *b, unsigned device)
{
        struct part *s = device_part(b, &device);
        return s->domains[s->ops->device.domain(s->b, device)];
}

static bool composite_device_label(struct backend *b, unsigned device, unsigned *ret_number,
                                   char *ret_name, size_t size)
{
        struct part *s = device_part(b, &device);
        return s->ops->device.label &&
               s->ops->device.label(s->b, device, ret_number, ret_name, size);
}

static int composite_device_info(struct backend *b, unsigned device, struct buf *out)
{
        size_t from = out->size;
        struct part *s = device_part(b, &device);
        int r = s->ops->device.info(s->b, device, out);
        if (r >= 0)
                rename_from(s, out, from);
        return r;
}

static cl_int composite_device_partition(struct backend *b, unsigned device,
                                         const cl_device_partition_property *properties,
                                         unsigned *ret_first, unsigned *ret_count)
{
        unsigned first, count;
        struct part *s = device_part(b, &device);
        if (!s->ops->device.partition)
                return CL_INVALID_VALUE;
        unsigned devices = s->ops->device.count(s->b), domains = s->ops->domain_count(s->b);
        cl_int r = s->ops->device.partition(s->b, device, properties, &first, &count);
        if (r != CL_SUCCESS)
                return r;
        if (!number_all(s, devices, domains)) {
                for (unsigned i = 0; i < count; i++)
                        s->ops->device.release(s->b, first + i);
                return CL_OUT_OF_RESOURCES;
        }
        *ret_first = s->devices[first];
        *ret_count = count;
        return CL_SUCCESS;
}

static void composite_device_release(struct backend *b, unsigned device)
{
        struct part *s = device_part(b, &device);
        s->ops->device.release(s->b, device);
}

/* ---- memory --------------------------------------------------------------------------------- */

static cl_int composite_buffer_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                      size_t size, struct backend_buffer **ret)
{
        struct part *s = domain_part(b, &domain);
        return WRAP(buffer, s, ret, s->ops->buffer.create(s->b, domain, flags, size, &w->inner));
}

static cl_int composite_sub_buffer_create(struct backend *b, struct backend_buffer *parent,
                                          cl_mem_flags flags, size_t origin, size_t size,
                                          struct backend_buffer **ret)
{
        struct part *s = parent->part;
        return WRAP(buffer, s, ret,
                    s->ops->buffer.create_sub(s->b, parent->inner, flags, origin, size, &w->inner));
}

static cl_int composite_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                     const struct image_desc *d, struct backend_buffer *parent,
                                     struct backend_buffer **ret)
{
        struct part *s = domain_part(b, &domain);
        return WRAP(buffer, s, ret,
                    s->ops->buffer.create_image(s->b, domain, flags, d,
                                                parent ? parent->inner : NULL, &w->inner));
}

static cl_int composite_pipe_create(struct backend *b, unsigned domain, cl_uint packet_size,
                                    cl_uint packets, struct backend_buffer **ret)
{
        struct part *s = domain_part(b, &domain);
        if (!s->ops->buffer.create_pipe)
                return CL_INVALID_OPERATION;
        return WRAP(buffer, s, ret,
                    s->ops->buffer.create_pipe(s->b, domain, packet_size, packets, &w->inner));
}

static void composite_buffer_release(struct backend_buffer *m)
{
        if (!m)
                return;
        m->part->ops->buffer.release(m->inner);
        mem_free(m);
}

static void *composite_buffer_bytes(struct backend_buffer *m)
{
        const struct backend_ops *ops = m->part->ops;
        return ops->buffer.bytes ? ops->buffer.bytes(m->inner) : NULL;
}

static cl_int composite_host_memory(struct backend *b, unsigned domain, size_t size, void *given,
                                    void **ret)
{
        struct part *s = domain_part(b, &domain);
        return s->ops->host_memory(s->b, domain, size, given, ret);
}

static cl_int composite_svm_create(struct backend *b, unsigned device, uint64_t address,
                                   size_t size, bool mapped, struct backend_svm **ret,
                                   uint64_t *ret_address)
{
        struct part *s = device_part(b, &device);
        return WRAP(
                svm, s, ret,
                s->ops->svm.create(s->b, device, address, size, mapped, &w->inner, ret_address));
}

static cl_int composite_svm_buffer_create(struct backend *b, unsigned domain,
                                          struct backend_svm *svm, cl_mem_flags flags,
                                          size_t offset, size_t size, struct backend_buffer **ret)
{
        unsigned number = domain;
        struct part *s = domain_part(b, &number);
        if (s != svm->part)
                return composite_buffer_create(b, domain, flags, size, ret);
        return WRAP(buffer, s, ret,
                    s->ops->svm.create_buffer(s->b, number, svm->inner, flags, offset, size,
                                              &w->inner));
}

static void composite_svm_release(struct backend_svm *svm)
{
        svm->part->ops->svm.release(svm->inner);
        mem_free(svm);
}

static cl_int composite_sampler_create(struct backend *b, unsigned domain,
                                       const struct sampler_desc *d, struct backend_sampler **ret)
{
        struct part *s = domain_part(b, &domain);
        return WRAP(sampler, s, ret, s->ops->sampler.create(s->b, domain, d, &w->inner));
}

static void composite_sampler_release(struct backend_sampler *x)
{
        if (!x)
                return;
        x->part->ops->sampler.release(x->inner);
        mem_free(x);
}

/* ---- queues --------------------------------------------------------------------------------- */

static cl_int composite_queue_create(struct backend *b, unsigned device,
                                     cl_command_queue_properties props, struct backend_queue **ret)
{
        struct part *s = device_part(b, &device);
        return WRAP(queue, s, ret, s->ops->queue.create(s->b, device, props, &w->inner));
}

static cl_int composite_device_queue_create(struct backend *b, unsigned device,
                                            cl_command_queue_properties props, cl_uint size,
                                            struct backend_queue **ret)
{
        struct part *s = device_part(b, &device);
        if (!s->ops->device_queue.create)
                return CL_INVALID_QUEUE_PROPERTIES;
        return WRAP(queue, s, ret,
                    s->ops->device_queue.create(s->b, device, props, size, &w->inner));
}

static cl_int composite_device_queue_set_default(struct backend_queue *q)
{
        return q->part->ops->device_queue.set_default(q->inner);
}

static cl_int composite_kernel_set_queue(struct backend_kernel *k, unsigned index,
                                         struct backend_queue *q)
{
        if (k->part != q->part)
                return CL_INVALID_DEVICE_QUEUE;
        return k->part->ops->kernel.set_queue(k->inner, index, q->inner);
}

static void composite_queue_release(struct backend_queue *q)
{
        if (!q)
                return;
        q->part->ops->queue.release(q->inner);
        mem_free(q);
}

static void composite_queue_flush(struct backend_queue *q)
{
        q->part->ops->queue.flush(q->inner);
}

/* ---- programs ------------------------------------------------------------------------------- */

/* The numbers of devices as their part knows them; NULL: no memory. Freed with mem_free. */
static unsigned *inner_devices(struct backend *b, const unsigned *devices, size_t count)
{
        unsigned *list = mem_alloc(count * sizeof(*list) + 1);
        for (size_t i = 0; list && i < count; i++) {
                list[i] = devices[i];
                device_part(b, &list[i]);
        }
        return list;
}

static cl_int composite_program_create(struct backend *b, unsigned domain, unsigned kind,
                                       const unsigned *devices, size_t device_count,
                                       struct bytes parts, struct backend_program **ret)
{
        struct part *s = domain_part(b, &domain);
        unsigned *list = inner_devices(b, devices, device_count);
        cl_int r = CL_OUT_OF_HOST_MEMORY;
        if (list)
                r = WRAP(program, s, ret,
                         s->ops->program.create(s->b, domain, kind, list, device_count, parts,
                                                &w->inner));
        mem_free(list);
        return r;
}

typedef cl_int build_op(struct backend_program *p, const unsigned *devices, size_t device_count,
                        const char *options, struct buf *info);

static cl_int build_with(build_op *op, struct backend_program *p, const unsigned *devices,
                         size_t device_count, const char *options, struct buf *info)
{
        struct backend *b = p->part->whole;
        size_t from = info ? info->size : 0;
        unsigned *list = inner_devices(b, devices, device_count);
        if (!list)
                return CL_OUT_OF_HOST_MEMORY;
        cl_int r = op(p->inner, list, device_count, options, info);
        rename_from(p->part, info, from);
        mem_free(list);
        return r;
}

static cl_int composite_program_build(struct backend_program *p, const unsigned *devices,
                                      size_t device_count, const char *options, struct buf *info)
{
        return build_with(p->part->ops->program.build, p, devices, device_count, options, info);
}

static cl_int composite_program_compile(struct backend_program *p, const unsigned *devices,
                                        size_t device_count, const char *options, struct buf *info)
{
        return build_with(p->part->ops->program.compile, p, devices, device_count, options, info);
}

static cl_int composite_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                                     size_t device_count, struct backend_program *const *inputs,
                                     size_t input_count, const char *options, struct buf *info,
                                     struct backend_program **ret)
{
        struct part *s = domain_part(b, &domain);
        size_t from = info ? info->size : 0;
        unsigned *list = inner_devices(b, devices, device_count);
        struct backend_program **inner =
                mem_alloc(input_count * sizeof(struct backend_program *) + 1);
        cl_int r = CL_OUT_OF_HOST_MEMORY;
        if (list && inner) {
                for (size_t i = 0; i < input_count; i++)
                        inner[i] = inputs[i]->inner;
                r = WRAP(program, s, ret,
                         s->ops->program.link(s->b, domain, list, device_count, inner, input_count,
                                              options, info, &w->inner));
                rename_from(s, info, from);
        }
        mem_free(list);
        mem_free(inner);
        return r;
}

static cl_int composite_program_constant(struct backend_program *p, cl_uint id, struct bytes value)
{
        return p->part->ops->program.constant(p->inner, id, value);
}

static bool composite_binary_is_dear(struct backend *b, unsigned domain)
{
        struct part *s = domain_part(b, &domain);
        return s->ops->program.binary_is_dear && s->ops->program.binary_is_dear(s->b, domain);
}

static cl_program_binary_type composite_program_type(struct backend_program *p, unsigned device)
{
        device_part(p->part->whole, &device);
        return p->part->ops->program.type ? p->part->ops->program.type(p->inner, device)
                                          : CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
}

static cl_int composite_program_binary(struct backend_program *p, unsigned device, struct buf *out)
{
        device_part(p->part->whole, &device);
        return p->part->ops->program.binary(p->inner, device, out);
}

static void composite_program_release(struct backend_program *p)
{
        if (!p)
                return;
        p->part->ops->program.release(p->inner);
        mem_free(p);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static cl_int composite_kernel_create(struct backend_program *p, const char *name,
                                      struct backend_kernel **ret)
{
        return WRAP(kernel, p->part, ret, p->part->ops->kernel.create(p->inner, name, &w->inner));
}

static cl_int composite_kernel_set_arg(struct backend_kernel *k, const struct arg *a,
                                       struct backend_buffer *buffer,
                                       struct backend_sampler *sampler)
{
        if ((buffer && buffer->part != k->part) || (sampler && sampler->part != k->part))
                return CL_INVALID_MEM_OBJECT;
        return k->part->ops->kernel.set_arg(k->inner, a, buffer ? buffer->inner : NULL,
                                            sampler ? sampler->inner : NULL);
}

static cl_int composite_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                                     const size_t *input, size_t input_count, size_t size,
                                     void *ret)
{
        device_part(k->part->whole, &device);
        return k->part->ops->kernel.query(k->inner, device, name, input, input_count, size, ret);
}

static void composite_kernel_release(struct backend_kernel *k)
{
        if (!k)
                return;
        k->part->ops->kernel.release(k->inner);
        mem_free(k);
}

/* ---- commands ------------------------------------------------------------------------------- */

static cl_int composite_submit(struct backend_queue *q, const struct backend_command *c,
                               struct backend_event **ret)
{
        struct part *s = q->part;
        struct backend_command inner = *c;
        struct backend_event *small[DEPS_SMALL], **deps = small;
        if ((c->kernel && c->kernel->part != s) || (c->buffer && c->buffer->part != s) ||
            (c->source && c->source->part != s))
                return CL_INVALID_CONTEXT;
        if (c->dep_count > DEPS_SMALL)
                deps = mem_alloc(c->dep_count * sizeof(*deps));
        if (!deps)
                return CL_OUT_OF_HOST_MEMORY;
        cl_int r = CL_SUCCESS;
        for (size_t i = 0; i < c->dep_count; i++) {
                if (!c->deps[i] || c->deps[i]->part != s)
                        r = c->deps[i] ? CL_INVALID_CONTEXT : CL_INVALID_EVENT_WAIT_LIST;
                else
                        deps[i] = c->deps[i]->inner;
        }
        inner.kernel = c->kernel ? c->kernel->inner : NULL;
        inner.buffer = c->buffer ? c->buffer->inner : NULL;
        inner.source = c->source ? c->source->inner : NULL;
        inner.deps = deps;
        if (r == CL_SUCCESS)
                r = WRAP(event, s, ret, s->ops->submit(q->inner, &inner, &w->inner));
        if (r == CL_SUCCESS && !(*ret)->inner)
                mem_free(steal(*ret)); /* an untracked one */
        if (deps != small)
                mem_free(deps);
        return r;
}

static void composite_event_release(struct backend_event *e)
{
        if (!e)
                return;
        e->part->ops->event.release(e->inner);
        mem_free(e);
}

static cl_int composite_event_status(struct backend_event *e)
{
        return e->part->ops->event.status(e->inner);
}

static bool composite_failure_stays(const struct backend_queue *q)
{
        const struct backend_ops *ops = q->part->ops;
        return ops->queue.failure_stays && ops->queue.failure_stays(q->inner);
}

static size_t composite_marker_max(const struct backend_queue *q)
{
        const struct backend_ops *ops = q->part->ops;
        return ops->queue.marker_max ? ops->queue.marker_max(q->inner) : SIZE_MAX;
}

static enum backend_polled composite_poll(struct backend *b, bool last)
{
        enum backend_polled most = BACKEND_IDLE;
        for (unsigned i = 0; i < b->part_count; i++) {
                const struct part *s = &b->parts[i];
                enum backend_polled r = s->ops->poll ? s->ops->poll(s->b, last) : BACKEND_IDLE;
                most = r > most ? r : most;
        }
        return most;
}

const struct backend_ops backend_composite = {
        .name = "composite",
        .open = composite_open,
        .close = composite_close,
        .domain_count = composite_domain_count,
        .device = {
                .count = composite_device_count,
                .domain = composite_device_domain,
                .label = composite_device_label,
                .info = composite_device_info,
                .partition = composite_device_partition,
                .release = composite_device_release,
        },
        .buffer = {
                .create = composite_buffer_create,
                .create_sub = composite_sub_buffer_create,
                .create_image = composite_image_create,
                .create_pipe = composite_pipe_create,
                .release = composite_buffer_release,
                .bytes = composite_buffer_bytes,
        },
        .host_memory = composite_host_memory,
        .svm = {
                .create = composite_svm_create,
                .create_buffer = composite_svm_buffer_create,
                .release = composite_svm_release,
        },
        .sampler = {
                .create = composite_sampler_create,
                .release = composite_sampler_release,
        },
        .queue = {
                .create = composite_queue_create,
                .release = composite_queue_release,
                .flush = composite_queue_flush,
                .failure_stays = composite_failure_stays,
                .marker_max = composite_marker_max,
        },
        .device_queue = {
                .create = composite_device_queue_create,
                .set_default = composite_device_queue_set_default,
        },
        .program = {
                .create = composite_program_create,
                .build = composite_program_build,
                .compile = composite_program_compile,
                .link = composite_program_link,
                .constant = composite_program_constant,
                .binary_is_dear = composite_binary_is_dear,
                .type = composite_program_type,
                .binary = composite_program_binary,
                .release = composite_program_release,
        },
        .kernel = {
                .create = composite_kernel_create,
                .set_arg = composite_kernel_set_arg,
                .set_queue = composite_kernel_set_queue,
                .query = composite_kernel_query,
                .release = composite_kernel_release,
        },
        .submit = composite_submit,
        .poll = composite_poll,
        .event = {
                .release = composite_event_release,
                .status = composite_event_status,
        },
};
