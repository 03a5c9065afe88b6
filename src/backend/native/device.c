/* Contexts and their devices: those of a platform, and sub-devices. */
#include "backend/native/device.h"

#include "backend/native/clear.h"
#include "backend/native/context.h"
#include "backend/native/svm.h"
#include "base/log.h"

static void CL_CALLBACK context_error(const char *text, const void *info, size_t size, void *user)
{
        log_info("native", "%s", text);
}

cl_context native_context(const struct icd_platform *p, const cl_device_id *ids, cl_uint n)
{
        cl_context_properties props[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)p->id, 0 };
        cl_int err = CL_SUCCESS;
        cl_context context = p->api.clCreateContext(props, n, ids, context_error, NULL, &err);
        if (!context)
                log_info("native", "%s: no context for %u device(s): %d", p->name, n, err);
        return context;
}

static bool context_has(const struct native_domain *domain, cl_device_id id)
{
        size_t size = 0;
        bool found = false;
        __typeof__(clGetContextInfo) *ask = domain->api->clGetContextInfo;
        if (!ask || ask(domain->context, CL_CONTEXT_DEVICES, 0, NULL, &size) != CL_SUCCESS)
                return true;
        cl_device_id *ids = mem_alloc(size);
        if (ids && ask(domain->context, CL_CONTEXT_DEVICES, size, ids, NULL) == CL_SUCCESS)
                for (size_t i = 0; i < size / sizeof(cl_device_id) && !found; i++)
                        found = ids[i] == id;
        mem_free(ids);
        return found;
}

static cl_device_id context_id(const struct native_domain *domain, const struct native_device *d)
{
        for (const struct native_device *known = d; known; known = known->parent)
                if (context_has(domain, known->id))
                        return known->id;
        return d->id;
}

void native_add_domain(struct backend *b, const struct icd_platform *p, cl_context context,
                       const struct native_device *parent, const cl_device_id *ids, unsigned count)
{
        __typeof__(clGetDeviceInfo) *ask = p->api.clGetDeviceInfo;
        struct native_domain *domain = &b->domains[b->domain_count];
        *domain = (struct native_domain){ .platform = p,
                                          .api = &p->api,
                                          .quirks = quirks_find(p->name, p->version_text),
                                          .context = context,
                                          .device_count = count };
        list_init(&domain->svms);
        native_svm_init(b, domain, ids, count);
        for (unsigned i = 0; i < count; i++) {
                struct native_device *d = &b->devices[b->device_count + i];
                *d = (struct native_device){ .id = ids[i],
                                             .parent = parent,
                                             .number = parent ? parent->number : 0,
                                             .domain = b->domain_count,
                                             .platform = p };
                d->context_id = parent ? context_id(domain, d) : d->id;
                atomic_init(&d->clock_offset, INT64_MAX);
                lock_init(&d->clock_lock);
                ask(d->id, CL_DEVICE_TYPE, sizeof(d->type), &d->type, NULL);
                domain->apart |= !(d->type & CL_DEVICE_TYPE_CPU);
                cl_ulong memory = 0;
                ask(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory, NULL);
                if (!i || memory < domain->memory)
                        domain->memory = memory;
                ask(d->id, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof(d->queue_props),
                    &d->queue_props, NULL);
        }
        native_probe_begin(domain, ids, count);
        b->device_count += count;
        b->domain_count++;
}

static void release_ids(const struct icd_platform *p, const cl_device_id *ids, cl_uint count)
{
        for (cl_uint i = 0; i < count; i++)
                p->api.clReleaseDevice(ids[i]);
}

static cl_int divide(struct backend *b, const struct native_device *d,
                     const cl_device_partition_property *properties, cl_device_id *ids,
                     cl_uint count)
{
        const struct icd_platform *p = d->platform;
        cl_int r = p->api.clCreateSubDevices(d->id, properties, count, ids, NULL);
        if (r != CL_SUCCESS)
                return r;
        cl_context context = native_context(p, ids, count);
        if (!context) {
                release_ids(p, ids, count);
                return CL_OUT_OF_RESOURCES;
        }
        native_add_domain(b, p, context, d, ids, count);
        return CL_SUCCESS;
}

cl_int native_device_partition(struct backend *b, unsigned device,
                               const cl_device_partition_property *properties, unsigned *ret_first,
                               unsigned *ret_count)
{
        if (device >= b->device_count)
                return CL_INVALID_DEVICE;
        const struct native_device *d = &b->devices[device];
        const cl_icd_dispatch *api = &d->platform->api;
        if (!api->clCreateSubDevices || !api->clReleaseDevice)
                return CL_INVALID_VALUE;
        cl_uint count = 0;
        unsigned first = b->device_count;
        op_enter();
        cl_int r = api->clCreateSubDevices(d->id, properties, 0, NULL, &count);
        if (r == CL_SUCCESS && (!count || count > b->device_room - first))
                r = count ? CL_OUT_OF_RESOURCES : CL_DEVICE_PARTITION_FAILED;
        if (r == CL_SUCCESS) {
                cl_device_id *ids = mem_zalloc(count * sizeof(*ids));
                r = ids ? divide(b, d, properties, ids, count) : CL_OUT_OF_HOST_MEMORY;
                mem_free(ids);
        }
        op_leave();
        if (r != CL_SUCCESS)
                return r;
        *ret_first = first;
        *ret_count = count;
        return CL_SUCCESS;
}

void native_device_release(struct backend *b, unsigned device)
{
        struct native_device *d = &b->devices[device];
        struct native_domain *domain = &b->domains[d->domain];
        op_enter();
        if (domain->quirks->sub_devices == SUB_DEVICES_GO)
                d->platform->api.clReleaseDevice(d->id);
        if (!--domain->device_count && list_empty(&domain->svms)) {
                native_clear_end(domain);
                native_probe_end(domain);
                domain->api->clReleaseContext(domain->context);
                domain->context = NULL;
        }
        op_leave();
}
