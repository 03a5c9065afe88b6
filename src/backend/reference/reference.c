/* The reference backend: devices in software that execute built-in kernels with no OpenCL at all. Each
 * device is a domain of its own. */
#include "backend/reference/reference.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/bounds.h"
#include "backend/builtin/devinfo.h"
#include "backend/emit.h"
#include "backend/filter.h"
#include "backend/media/media.h"
#include "backend/reference/executor.h"
#include "backend/reference/submit.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/once.h"
#include "os/shared_memory.h"
#include "os/vm.h"

enum { KERNELS_MAX = 64, NAME_SIZE = 32 };

#define MEM_MAX ((size_t)1 << 30) /* bytes of one buffer */

bool backend_reference_manual;
uint64_t backend_reference_seed;
bool backend_reference_failure_stays;
size_t backend_reference_marker_max = SIZE_MAX;
bool backend_reference_bytes;

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

struct backend_program {
        struct backend *backend;
        unsigned domain;
        struct builtin_program p;
};

/* ---- references ----------------------------------------------------------------------------- */

struct backend_buffer *ref_buffer_hold(struct backend_buffer *m)
{
        if (m)
                atomic_fetch_add(&m->refs, 1);
        return m;
}

void ref_buffer_release(struct backend_buffer *m)
{
        if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
                return;
        if (m->parent)
                ref_buffer_release(m->parent);
        else if (m->mapped)
                vm_unmap((uint64_t)(uintptr_t)m->data, m->size);
        else
                mem_free(m->data);
        if (m->attachment.free)
                m->attachment.free(m->attachment.data);
        mem_free(m);
}

void ref_queue_release(struct backend_queue *q)
{
        if (q && atomic_fetch_sub(&q->refs, 1) == 1)
                mem_free(q);
}

void ref_event_release(struct backend_event *e)
{
        if (e && atomic_fetch_sub(&e->refs, 1) == 1)
                mem_free(container_of(e, struct ref_command, event));
}

/* ---- the backend ---------------------------------------------------------------------------- */

static void name_of(const struct reference_devices *d, unsigned number, char name[NAME_SIZE])
{
        if (d->count > 1)
                snprintf(name, NAME_SIZE, "%s %u", d->name, number);
        else
                snprintf(name, NAME_SIZE, "%s", d->name);
}

int reference_open(const struct backend_params *params, const struct reference_devices *devices,
                   struct backend **ret)
{
        struct backend *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        b->complete = params->complete;
        b->user = params->user;
        b->devices = *devices;
        b->first_number = params->first_number;
        for (unsigned i = 0; i < devices->count; i++) {
                char name[NAME_SIZE];
                name_of(devices, i, name);
                if (filter_match(config_option_text(params->options, CONFIG_devices),
                                 params->first_number + i, CL_DEVICE_TYPE_CUSTOM, name))
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
        b->marker_max = backend_reference_marker_max;
        b->bytes = devices->bytes;
        int r = executor_start(b);
        if (r < 0) {
                mem_free(b);
                return r;
        }
        *ret = b;
        return 0;
}

/* The whole table. */
static struct once table_once = ONCE_INIT;
static const struct registry_kernel *table[KERNELS_MAX];
static size_t table_count;

static void fill_table(void)
{
        while (table_count < KERNELS_MAX && (table[table_count] = registry_at(table_count)))
                table_count++;
}

static int ref_open(const struct backend_params *params, struct backend **ret)
{
        once_run(&table_once, fill_table);
        return reference_open(params,
                              &(struct reference_devices){ .name = "SpanCL reference",
                                                           .count = 2,
                                                           .kernels = table,
                                                           .kernel_count = table_count,
                                                           .executors = 1,
                                                           .svm = true,
                                                           .bytes = backend_reference_bytes },
                              ret);
}

static void ref_close(struct backend *b)
{
        if (!b)
                return;
        if (b->devices.stop)
                b->devices.stop(b->devices.user);
        executor_stop(b);
        while (!list_empty(&b->host_memories)) {
                struct host_memory *m = list_entry(b->host_memories.next, struct host_memory, link);
                list_remove(&m->link);
                mem_free(m);
        }
        if (b->devices.close)
                b->devices.close(b->devices.user);
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

static bool ref_device_label(struct backend *b, unsigned device, unsigned *ret_number,
                             char *ret_name, size_t size)
{
        char name[NAME_SIZE];
        *ret_number = b->first_number + b->numbers[device];
        name_of(&b->devices, b->numbers[device], name);
        snprintf(ret_name, size, "%s", name);
        return true;
}

static int ref_device_info(struct backend *b, unsigned device, struct buf *out)
{
        if (device >= b->count)
                return SP_E_INVAL;
        struct emit e = { .out = out };
        const struct reference_devices *d = &b->devices;
        char name[NAME_SIZE], version[NAME_SIZE + 16];
        name_of(d, b->numbers[device], name);
        snprintf(version, sizeof(version), "OpenCL 3.0 %s", d->name);
        devinfo_device(&e, &(struct devinfo_params){
                                   .name = name,
                                   .vendor = "SpanCL",
                                   .version = version,
                                   .platform = d->name,
                                   .vendor_id = 0x5350,
                                   .compute_units = d->executors,
                                   .domain = device,
                                   .buffer_max = MEM_MAX,
                                   .memory = 4 * (cl_ulong)MEM_MAX,
                                   .svm = d->svm,
                                   .kernels = d->kernels,
                                   .kernel_count = d->kernel_count,
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
        *m = (struct backend_buffer){
                .refs = 1, .domain = domain, .size = size, .bytes = b->bytes
        };
        m->data = mem_zalloc(size);
        if (!m->data) {
                mem_free(m);
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        }
        *ret = m;
        return CL_SUCCESS;
}

static cl_int ref_shared_device(struct backend *b, unsigned domain,
                                uint8_t ret[BACKEND_DEVICE_NAME])
{
        static const char name[BACKEND_DEVICE_NAME] = "reference";
        if (domain >= b->count)
                return CL_INVALID_CONTEXT;
        memcpy(ret, name, sizeof(name));
        ret[sizeof(name) - 1] = (uint8_t)b->numbers[domain];
        return CL_SUCCESS;
}

static cl_int ref_shared_import(struct backend *b, unsigned domain, int fd, size_t size,
                                struct backend_buffer **ret)
{
        uint64_t has, at;
        if (domain >= b->count)
                return CL_INVALID_CONTEXT;
        if (shared_memory_size(fd, &has) < 0 || has < size)
                return CL_INVALID_VALUE;
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        if (vm_map_file(fd, 0, size, &at) < 0) {
                mem_free(m);
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        }
        vm_keep_from_children(at, size);
        *m = (struct backend_buffer){ .refs = 1,
                                      .domain = domain,
                                      .data = (uint8_t *)(uintptr_t)at,
                                      .size = size,
                                      .mapped = true };
        *ret = m;
        return CL_SUCCESS;
}

static cl_int ref_shared_create(struct backend *b, unsigned domain, size_t size,
                                struct backend_buffer **ret, int *ret_fd)
{
        int fd = shared_memory_new(size);
        if (fd < 0)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        cl_int status = ref_shared_import(b, domain, fd, size, ret);
        if (status < 0)
                (void)file_close(fd);
        else
                *ret_fd = fd;
        return status;
}

static void *ref_buffer_bytes(struct backend_buffer *m)
{
        return m->bytes ? m->data : NULL;
}

static cl_int ref_host_memory(struct backend *b, unsigned domain, size_t size, void *given,
                              void **ret)
{
        (void)domain;
        if (given) {
                *ret = given;
                return CL_SUCCESS;
        }
        struct host_memory *m = mem_alloc(sizeof(*m) + size);
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
                .parent = ref_buffer_hold(whole),
                .domain = domain,
                .data = whole->data + origin,
                .size = size,
                .bytes = whole->bytes,
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
        ref_buffer_release(s->memory);
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
        cl_int r = builtin_program_init(&p->p, kind, parts, b->devices.kernels,
                                        b->devices.kernel_count);
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

/* Make a buffer of the bytes from the address to the end of its allocation. The caller owns it. */
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
                        ref_buffer_hold(buffer);
                if (status < 0)
                        return status;
                ref_buffer_release(arg->buffer);
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
                ref_buffer_release(k->args[i].buffer);
        mem_free(k);
}

/* ---- events -------------------------------------------------------------------------------- */

static cl_int ref_event_status(struct backend_event *e)
{
        lock_take(&e->backend->lock);
        cl_int status = e->status;
        lock_release(&e->backend->lock);
        return status < 0 ? status : CL_COMPLETE;
}

static bool ref_failure_stays(const struct backend_queue *q)
{
        return q->backend->failure_stays;
}

static size_t ref_marker_max(const struct backend_queue *q)
{
        return q->backend->marker_max;
}

/* clang-format off */
#define OPERATIONS(own_name, own_open) {                                                    \
        .name = own_name,                                                                   \
        .open = own_open,                                                                   \
        .close = ref_close,                                                                 \
        .domain_count = ref_device_count,                                                   \
        .device = {                                                                         \
                .count = ref_device_count,                                                  \
                .domain = ref_device_domain,                                                \
                .label = ref_device_label,                                                  \
                .info = ref_device_info,                                                    \
        },                                                                                  \
        .buffer = {                                                                         \
                .create = ref_buffer_create,                                                \
                .create_sub = ref_sub_buffer_create,                                        \
                .create_image = builtin_image_create,                                       \
                .release = ref_buffer_release,                                              \
                .bytes = ref_buffer_bytes,                                                  \
        },                                                                                  \
        .shared = {                                                                         \
                .device = ref_shared_device,                                                \
                .create = ref_shared_create,                                                \
                .import = ref_shared_import,                                                \
        },                                                                                  \
        .host_memory = ref_host_memory,                                                     \
        .svm = {                                                                            \
                .create = ref_svm_create,                                                   \
                .create_buffer = ref_svm_buffer_create,                                     \
                .release = ref_svm_release,                                                 \
        },                                                                                  \
        .sampler = {                                                                        \
                .create = builtin_sampler_create,                                           \
                .release = builtin_sampler_release,                                         \
        },                                                                                  \
        .queue = {                                                                          \
                .create = ref_queue_create,                                                 \
                .release = ref_queue_release,                                               \
                .flush = ref_queue_flush,                                                   \
                .failure_stays = ref_failure_stays,                                         \
                .marker_max = ref_marker_max,                                               \
        },                                                                                  \
        .program = {                                                                        \
                .create = ref_program_create,                                               \
                .build = ref_program_build,                                                 \
                .compile = builtin_program_compile,                                         \
                .link = builtin_program_link,                                               \
                .constant = builtin_program_constant,                                       \
                .binary = builtin_program_binary,                                           \
                .release = ref_program_release,                                             \
        },                                                                                  \
        .kernel = {                                                                         \
                .create = ref_kernel_create,                                                \
                .set_arg = ref_kernel_set_arg,                                              \
                .query = builtin_kernel_query,                                              \
                .release = ref_kernel_release,                                              \
        },                                                                                  \
        .submit = ref_submit,                                                               \
        .event = {                                                                          \
                .release = ref_event_release,                                               \
                .report = ref_event_report,                                                 \
                .status = ref_event_status,                                                 \
        },                                                                                  \
}
/* clang-format on */

const struct backend_ops backend_reference = OPERATIONS("reference", ref_open);
const struct backend_ops backend_media = OPERATIONS("media", media_open);
