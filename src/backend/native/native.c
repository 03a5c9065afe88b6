/* The native backend: devices of this host's OpenCL implementations. A context is a domain: one for each platform,
 * with all of its devices that are used, or one for each device. */
#include "backend/native/native.h"

#include "backend/native/clear.h"
#include "backend/native/command.h"
#include "backend/native/context.h"
#include "backend/native/device.h"
#include "backend/native/devinfo.h"
#include "backend/native/hostmem.h"
#include "backend/native/image.h"
#include "backend/native/kernelquery.h"
#include "backend/native/program.h"
#include "backend/native/shared.h"
#include "backend/native/svm.h"

#include <stdio.h>

#include "backend/bounds.h"
#include "backend/filter.h"
#include "backend/native/completion_flag.h"
#include "backend/native/notify.h"
#include "base/log.h"

_Thread_local unsigned op_depth;

/* ---- finding devices ------------------------------------------------------------------------ */

/* Sub-devices are counted over the whole life of a session; room that is not used costs nothing. */
enum { DEVICES_MAX = 256, SUB_DEVICES_MAX = 65536 };

/* All of a platform's devices; CL_DEVICE_TYPE_ALL leaves custom ones out. */
static unsigned list_devices(const struct icd_platform *p, cl_device_id ids[DEVICES_MAX])
{
        static const cl_device_type kinds[] = { CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CUSTOM };
        unsigned count = 0;
        for (size_t k = 0; k < array_size(kinds) && count < DEVICES_MAX; k++) {
                cl_device_id found[DEVICES_MAX];
                cl_uint n = 0;
                if (p->api.clGetDeviceIDs(p->id, kinds[k], DEVICES_MAX, found, &n) != CL_SUCCESS)
                        continue;
                for (cl_uint i = 0; i < n && i < DEVICES_MAX && count < DEVICES_MAX; i++) {
                        bool known = false;
                        for (unsigned j = 0; j < count; j++)
                                known |= ids[j] == found[i];
                        if (!known)
                                ids[count++] = found[i];
                }
        }
        return count;
}

static bool query(const struct icd_platform *p, cl_device_id id, cl_device_info key, void *value,
                  size_t size)
{
        return p->api.clGetDeviceInfo(id, key, size, value, NULL) == CL_SUCCESS;
}

/* The devices of one platform that pass the filter. *number counts all that exist. */
static unsigned choose_devices(const struct icd_platform *p, const char *filter, unsigned *number,
                               cl_device_id ids[DEVICES_MAX], unsigned numbers[DEVICES_MAX])
{
        unsigned all = list_devices(p, ids), count = 0;
        for (unsigned i = 0; i < all; i++) {
                char name[1024] = "";
                cl_device_type type = 0;
                cl_bool available = CL_TRUE;
                query(p, ids[i], CL_DEVICE_NAME, name, sizeof(name) - 1);
                query(p, ids[i], CL_DEVICE_TYPE, &type, sizeof(type));
                query(p, ids[i], CL_DEVICE_AVAILABLE, &available, sizeof(available));
                unsigned own = (*number)++;
                if (!filter_match(filter, own, type, name))
                        continue;
                if (!available) {
                        log_info("native", "%s is not available", name);
                        continue;
                }
                numbers[count] = own;
                ids[count++] = ids[i];
        }
        return count;
}

static bool add_context(struct backend *b, const struct icd_platform *p, const cl_device_id *ids,
                        const unsigned *numbers, unsigned count)
{
        cl_context context = native_context(p, ids, count);
        if (!context)
                return false;
        native_add_domain(b, p, context, NULL, ids, count);
        for (unsigned i = 0; i < count; i++)
                b->devices[b->device_count - count + i].number = numbers[i];
        return true;
}

static bool shares_context(const struct icd_platform *p, enum backend_contexts contexts)
{
        if (contexts != BACKEND_CONTEXTS_AUTO)
                return contexts == BACKEND_CONTEXTS_PLATFORM;
        return quirks_find(p->name, p->version_text)->contexts == CONTEXTS_PLATFORM;
}

/* Is the platform one of those to open? */
static bool is_wanted(const struct icd_platform *p, const struct backend_params *params)
{
        enum backend_driver_calls how = config_option_number(params->options, CONFIG_driver_calls);
        bool blocks = how == DRIVER_CALLS_AUTO
                              ? quirks_find(p->name, p->version_text)->calls == CALLS_BLOCK
                              : how == DRIVER_CALLS_THREAD;
        return params->calls == BACKEND_CALLS_ANY ||
               blocks == (params->calls == BACKEND_CALLS_BLOCK);
}

static void add_platform(struct backend *b, const struct icd_platform *p,
                         const struct backend_params *params, unsigned *number)
{
        cl_device_id ids[DEVICES_MAX];
        unsigned numbers[DEVICES_MAX];
        if (!is_wanted(p, params)) {
                b->left_out = true;
                *number += list_devices(p, ids);
                return;
        }
        unsigned count = choose_devices(p, config_option_text(params->options, CONFIG_devices),
                                        number, ids, numbers);
        bool together = count == 1 ||
                        (count &&
                         shares_context(p, config_option_number(params->options, CONFIG_contexts)));
        if (together && (add_context(b, p, ids, numbers, count) || count == 1))
                return;
        for (unsigned i = 0; i < count; i++)
                add_context(b, p, &ids[i], &numbers[i], 1);
}

/* ---- the backend ---------------------------------------------------------------------------- */

/* Close the backend, also one that is half opened. */
static void native_close(struct backend *b)
{
        if (!b)
                return;
        notify_poll(b, true);
        notify_wait_idle(b);
        native_svm_reap(b);
        native_host_memory_free_all(b);
        for (size_t i = 0; i < b->notifier_count; i++)
                notifier_free(b->notifiers[i]);
        mem_free(b->notifiers);
        for (unsigned i = 0; i < b->domain_count; i++) {
                native_clear_end(&b->domains[i]);
                completion_flags_end(&b->domains[i]);
                native_probe_end(&b->domains[i]);
        }
        for (unsigned i = 0; i < b->domain_count; i++)
                if (b->domains[i].context)
                        b->domains[i].api->clReleaseContext(b->domains[i].context);
        list_each(q, &b->kept_queues, struct backend_queue, link)
        {
                mem_free(q); /* its native one ends with the process */
        }
        mem_free(b->domains);
        for (unsigned i = 0; i < b->device_count; i++)
                lock_fini(&b->devices[i].clock_lock);
        mem_free(b->devices);
        mem_free(b->platforms);
        condition_fini(&b->idle);
        lock_fini(&b->lock);
        mem_free(b);
}

static void native_closep(struct backend **b)
{
        native_close(*b);
}

static int native_open(const struct backend_params *params, struct backend **ret)
{
        auto_clean(native_closep) struct backend *b = mem_zalloc(sizeof(*b));
        if (!b)
                return SP_E_NOMEM;
        lock_init(&b->lock);
        condition_init(&b->idle);
        list_init(&b->dead_svms);
        list_init(&b->host_memories);
        list_init(&b->polled);
        list_init(&b->spent);
        list_init(&b->kept_queues);
        b->in_process = params->in_process;
        b->clear = config_option_number(params->options, CONFIG_clear_memory);
        b->complete = params->complete;
        b->broken = params->broken;
        b->user = params->user;
        int r = icd_platforms(&b->platforms, &b->platform_count);
        if (r < 0)
                return r == SP_E_NOENT ? SP_E_NODEV : r;

        b->device_room = b->platform_count * DEVICES_MAX + SUB_DEVICES_MAX;
        b->domains = mem_zalloc(b->device_room * sizeof(*b->domains));
        b->devices = mem_zalloc(b->device_room * sizeof(*b->devices));
        b->notifiers = mem_zalloc(sizeof(struct notifier *));
        if (!b->domains || !b->devices || !b->notifiers)
                return SP_E_NOMEM;
        unsigned number = params->first_number;
        for (size_t i = 0; i < b->platform_count; i++)
                add_platform(b, &b->platforms[i], params, &number);
        if (!b->device_count)
                return SP_E_NODEV;
        r = notifier_new(&b->notifiers[0]);
        if (r < 0)
                return r;
        b->notifier_count = 1;
        /* Nobody waits for it: a server's process for sessions opens this before there is one. */
        for (unsigned i = 0; i < b->domain_count && !b->in_process; i++)
                completion_flags_begin(b, &b->domains[i]);
        *ret = steal(b);
        return 0;
}

static bool native_leaves_out(const struct backend *b)
{
        return b->left_out;
}

static unsigned native_device_count(struct backend *b)
{
        return b->device_count;
}

static unsigned native_device_domain(struct backend *b, unsigned device)
{
        return b->devices[device].domain;
}

static bool native_device_label(struct backend *b, unsigned device, unsigned *ret_number,
                                char *ret_name, size_t size)
{
        char name[1024] = "";
        const struct native_device *d = &b->devices[device];
        query(d->platform, d->id, CL_DEVICE_NAME, name, sizeof(name) - 1);
        *ret_number = d->number;
        snprintf(ret_name, size, "%s", name);
        return true;
}

static unsigned native_domain_count(struct backend *b)
{
        return b->domain_count;
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Tell the native side only how kernels may use the buffer. The client's memory is elsewhere, and
 * migrations read and write on the host's behalf. */
static cl_mem_flags kernel_access(cl_mem_flags flags)
{
        return flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
}

cl_int native_wrap_buffer(struct native_domain *domain, cl_mem mem, size_t size, cl_int err,
                          struct backend_buffer **ret)
{
        if (!mem)
                return err ? err : CL_OUT_OF_RESOURCES;
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m) {
                domain->api->clReleaseMemObject(mem);
                return CL_OUT_OF_HOST_MEMORY;
        }
        *m = (struct backend_buffer){ .domain = domain, .mem = mem, .size = size };
        *ret = m;
        return CL_SUCCESS;
}

static void native_buffer_release(struct backend_buffer *m)
{
        if (!m)
                return;
        op_enter();
        m->domain->api->clReleaseMemObject(m->mem);
        op_leave();
        if (m->owns_bytes)
                m->domain->taken -= m->size;
        mem_free(m);
}

cl_int native_ready(struct backend *b, struct backend_buffer *m, struct backend_buffer **ret)
{
        cl_int r = native_commit(m);
        if (r == CL_SUCCESS)
                r = native_clear(b, m);
        if (r < 0)
                native_buffer_release(m);
        else
                *ret = m;
        return r;
}

/* Nothing uses it any more: on any thread, maybe after its buffer was released. */
static void CL_CALLBACK free_bytes(cl_mem mem, void *block)
{
        (void)mem;
        mem_free(block);
}

/* Over memory of ours, which native commands and the engine then reach alike. */
static cl_int create_over_bytes(struct backend *b, struct native_domain *d, cl_mem_flags flags,
                                size_t size, struct backend_buffer **ret)
{
        enum {
                ALIGNMENT = 128, /* of the largest type of OpenCL C */
                SLACK = 512, /* behind the end, as where a GPU's driver hands out memory: programs
                                  * whose kernels write a little too far run there, too */
        };
        cl_int err = CL_SUCCESS;
        if (size > d->memory - d->taken)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        uint8_t *block = mem_alloc_bulk(ALIGNMENT + size + SLACK);
        if (!block)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        uint8_t *at = block + ALIGNMENT - (uintptr_t)block % ALIGNMENT;
        if (b->clear == BACKEND_CLEAR_ALL)
                memset(at, 0, size);
        op_enter();
        cl_mem mem =
                d->api->clCreateBuffer(d->context, flags | CL_MEM_USE_HOST_PTR, size, at, &err);
        if (mem) {
                err = d->api->clSetMemObjectDestructorCallback(mem, free_bytes, block);
                if (err != CL_SUCCESS)
                        d->api->clReleaseMemObject(steal(mem));
        }
        if (!mem)
                mem_free(block);
        cl_int r = native_wrap_buffer(d, mem, size, err, ret);
        op_leave();
        if (r != CL_SUCCESS)
                return r;
        (*ret)->bytes_at = at;
        (*ret)->owns_bytes = true;
        d->taken += size;
        return r;
}

static bool works_on_host_memory(const struct native_domain *d)
{
        return !d->apart && d->memory &&
               (d->svm == INFO_SVM_FOLLOWS || d->svm == INFO_SVM_SHARES) &&
               d->api->clSetMemObjectDestructorCallback;
}

static void *native_buffer_bytes(struct backend_buffer *m)
{
        return m->bytes_at;
}

static cl_int native_buffer_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                                   size_t size, struct backend_buffer **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *d = &b->domains[domain];
        struct backend_buffer *made;
        cl_int err = CL_SUCCESS;
        if (size && works_on_host_memory(d))
                return create_over_bytes(b, d, kernel_access(flags), size, ret);
        op_enter();
        cl_mem mem = d->api->clCreateBuffer(d->context, kernel_access(flags), size, NULL, &err);
        cl_int r = native_wrap_buffer(d, mem, size, err, &made);
        op_leave();
        return r == CL_SUCCESS ? native_ready(b, made, ret) : r;
}

static cl_int native_sub_buffer_create(struct backend *b, struct backend_buffer *parent,
                                       cl_mem_flags flags, size_t origin, size_t size,
                                       struct backend_buffer **ret)
{
        const cl_icd_dispatch *api = parent->domain->api;
        if (!api->clCreateSubBuffer)
                return CL_INVALID_OPERATION;
        if (parent->image.type)
                return CL_INVALID_MEM_OBJECT;
        if (!size)
                return CL_INVALID_BUFFER_SIZE;
        if (!bounds_range(parent->size, origin, size))
                return CL_INVALID_VALUE;
        cl_buffer_region region = { origin, size };
        cl_int err = CL_SUCCESS;
        op_enter();
        cl_mem mem = api->clCreateSubBuffer(parent->mem, kernel_access(flags),
                                            CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
        cl_int r = native_wrap_buffer(parent->domain, mem, size, err, ret);
        op_leave();
        if (r == CL_SUCCESS && parent->bytes_at)
                (*ret)->bytes_at = parent->bytes_at + origin;
        return r;
}

static cl_int native_pipe_create(struct backend *b, unsigned domain, cl_uint packet_size,
                                 cl_uint packets, struct backend_buffer **ret)
{
        struct native_domain *d = &b->domains[domain];
        if (!d->api->clCreatePipe)
                return CL_INVALID_OPERATION;
        cl_int err = CL_SUCCESS;
        op_enter();
        cl_mem mem = d->api->clCreatePipe(d->context, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS,
                                          packet_size, packets, NULL, &err);
        cl_int r = native_wrap_buffer(d, mem, 0, err, ret);
        op_leave();
        if (r == CL_SUCCESS)
                (*ret)->pipe = true;
        return r;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static cl_int native_kernel_create(struct backend_program *p, const char *name,
                                   struct backend_kernel **ret)
{
        struct backend_kernel *k = mem_zalloc(sizeof(*k));
        if (!k)
                return CL_OUT_OF_HOST_MEMORY;
        cl_int err = CL_SUCCESS;
        op_enter();
        cl_kernel kernel = p->domain->api->clCreateKernel(p->program, name, &err);
        op_leave();
        if (!kernel) {
                mem_free(k);
                return err ? err : CL_OUT_OF_RESOURCES;
        }
        *k = (struct backend_kernel){ .backend = p->backend,
                                      .domain = p->domain,
                                      .kernel = kernel };
        *ret = k;
        return CL_SUCCESS;
}

static cl_int native_kernel_set_arg(struct backend_kernel *k, const struct arg *a,
                                    struct backend_buffer *buffer, struct backend_sampler *sampler)
{
        size_t size = (size_t)a->size;
        const void *value = a->value;
        cl_mem mem = buffer ? buffer->mem : NULL;
        switch (a->kind) {
        /* PoCL 3.1 aborts at a size of 0. */
        case ARG_VALUE:
                if (!size)
                        return CL_INVALID_ARG_SIZE;
                break;
        case ARG_LOCAL: /* some take a size of 0 */
                value = NULL;
                break;
        case ARG_BUFFER:
        case ARG_IMAGE:
                if (!buffer && a->kind == ARG_IMAGE)
                        return CL_INVALID_MEM_OBJECT;
                if (buffer &&
                    (buffer->domain != k->domain || !buffer->image.type != (a->kind == ARG_BUFFER)))
                        return CL_INVALID_MEM_OBJECT;
                size = sizeof(mem);
                value = &mem;
                break;
        case ARG_PIPE:
                if (!buffer || !buffer->pipe || buffer->domain != k->domain)
                        return CL_INVALID_MEM_OBJECT;
                size = sizeof(mem);
                value = &mem;
                break;
        case ARG_SAMPLER:
                if (!sampler || sampler->domain != k->domain)
                        return CL_INVALID_SAMPLER;
                size = sizeof(sampler->sampler);
                value = &sampler->sampler;
                break;
        case ARG_SVM:
                return native_svm_set_arg(k, a->index, a->object);
        default:
                return CL_INVALID_ARG_VALUE;
        }
        op_enter();
        cl_int r = k->domain->api->clSetKernelArg(k->kernel, a->index, size, value);
        op_leave();
        return r;
}

static void native_kernel_release(struct backend_kernel *k)
{
        if (!k)
                return;
        op_enter();
        k->domain->api->clReleaseKernel(k->kernel);
        op_leave();
        mem_free(k);
}

const struct backend_ops backend_native = {
        .name = "native",
        .preload = icd_preload,
        .open = native_open,
        .close = native_close,
        .domain_count = native_domain_count,
        .leaves_out = native_leaves_out,
        .device = {
                .count = native_device_count,
                .domain = native_device_domain,
                .label = native_device_label,
                .info = native_device_info,
                .partition = native_device_partition,
                .release = native_device_release,
        },
        .buffer = {
                .create = native_buffer_create,
                .create_sub = native_sub_buffer_create,
                .create_image = native_image_create,
                .create_pipe = native_pipe_create,
                .release = native_buffer_release,
                .bytes = native_buffer_bytes,
        },
        .shared = {
                .device = native_shared_device,
                .create = native_shared_create,
                .import = native_shared_import,
        },
        .host_memory = native_host_memory,
        .svm = {
                .create = native_svm_create,
                .create_buffer = native_svm_buffer_create,
                .release = native_svm_release,
        },
        .sampler = {
                .create = native_sampler_create,
                .release = native_sampler_release,
        },
        .queue = {
                .create = native_queue_create,
                .release = native_queue_release,
                .flush = native_queue_flush,
                .failure_stays = native_failure_stays,
                .marker_max = native_marker_max,
        },
        .device_queue = {
                .create = native_device_queue_create,
                .set_default = native_device_queue_set_default,
        },
        .program = {
                .create = native_program_create,
                .build = native_program_build,
                .compile = native_program_compile,
                .link = native_program_link,
                .constant = native_program_constant,
                .binary_is_dear = native_binary_is_dear,
                .type = native_program_type,
                .binary = native_program_binary,
                .release = native_program_release,
        },
        .kernel = {
                .create = native_kernel_create,
                .set_arg = native_kernel_set_arg,
                .set_queue = native_kernel_set_queue,
                .query = native_kernel_query,
                .release = native_kernel_release,
        },
        .submit = native_submit,
        .poll = notify_poll,
        .event = {
                .release = native_event_release,
                .report = native_event_report,
                .status = native_event_status,
        },
};
