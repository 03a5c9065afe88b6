/* Memory of NVIDIA's GPUs that two processes share. OpenCL imports it (cl_khr_external_memory_opaque_fd), but can't
 * make it, so the allocator does (allocation.h). Seen with driver 580.159 on an H200
 * (docs/internals/device-staging.md). */
#include "backend/native/shared.h"

#include <string.h>

#include "backend/native/allocation.h"
#include "backend/native/clear.h"
#include "base/log.h"
#include "os/file.h"

/* cl_khr_external_memory and cl_khr_device_uuid, which older headers lack. */
enum {
        DEVICE_IMPORT_HANDLE_TYPES = 0x204F,
        HANDLE_OPAQUE_FD = 0x2060,
        DEVICE_UUID = 0x106A,
};

/* The only device of the domain, if OpenCL can import its memory; else NULL. */
static const struct native_device *find_device(const struct backend *b, unsigned domain)
{
        cl_uint types[16] = { 0 };
        const struct native_domain *d = domain < b->domain_count ? &b->domains[domain] : NULL;
        if (!d || b->in_process || d->quirks->shared_memory != SHARED_MEMORY_CUDA || !d->context ||
            d->device_count != 1 || !d->api->clCreateBufferWithProperties)
                return NULL;
        for (unsigned i = 0; i < b->device_count; i++) {
                if (b->devices[i].domain != domain)
                        continue;
                if (d->api->clGetDeviceInfo(b->devices[i].id, DEVICE_IMPORT_HANDLE_TYPES,
                                            sizeof(types), types, NULL) != CL_SUCCESS)
                        return NULL;
                for (size_t k = 0; k < array_size(types); k++)
                        if (types[k] == HANDLE_OPAQUE_FD)
                                return &b->devices[i];
                return NULL;
        }
        return NULL;
}

cl_int native_shared_device(struct backend *b, unsigned domain, uint8_t ret[BACKEND_DEVICE_NAME])
{
        uint8_t uuid[BACKEND_DEVICE_NAME];
        op_enter();
        const struct native_device *d = find_device(b, domain);
        bool known = d && d->platform->api.clGetDeviceInfo(d->id, DEVICE_UUID, sizeof(uuid), uuid,
                                                           NULL) == CL_SUCCESS;
        op_leave();
        if (!known)
                return CL_INVALID_OPERATION;
        memcpy(ret, uuid, sizeof(uuid));
        return CL_SUCCESS;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Get new memory. */
static cl_int allocate(const uint8_t uuid[BACKEND_DEVICE_NAME], size_t size, int *ret_fd)
{
        int r = allocation_get(uuid, size, ret_fd);
        if (r < 0)
                log_info("native", "no device memory is shared: %s", status_text(r));
        return r < 0 ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

/* ---- buffers -------------------------------------------------------------------------------- */

cl_int native_shared_import(struct backend *b, unsigned domain, int fd, size_t size,
                            struct backend_buffer **ret)
{
        cl_int err = CL_SUCCESS;
        op_enter();
        const struct native_device *device = find_device(b, domain);
        int own = device ? file_duplicate(fd) : -1;
        cl_int r = device ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
        if (own >= 0) {
                struct native_domain *d = &b->domains[domain];
                const cl_mem_properties from[] = { HANDLE_OPAQUE_FD, (cl_mem_properties)own, 0 };
                cl_mem mem = d->api->clCreateBufferWithProperties(
                        d->context, from, CL_MEM_READ_WRITE, size, NULL, &err);
                /* Driver 580 refuses more memory than there is with 1, and other descriptors with 999. */
                if (mem && err != CL_SUCCESS)
                        d->api->clReleaseMemObject(steal(mem));
                /* From now on the descriptor is the driver's. */
                if (!mem)
                        (void)file_close(own);
                r = native_wrap_buffer(d, mem, size, err < 0 ? err : CL_OUT_OF_RESOURCES, ret);
        }
        op_leave();
        return r;
}

/* Wait until the memory is cleared, because the other process does not. An error: it was not cleared. */
static cl_int wait_clear(struct native_domain *d)
{
        op_enter();
        cl_event clearing = native_clearing(d);
        cl_int r = clearing ? d->api->clWaitForEvents(1, &clearing) : CL_SUCCESS;
        op_leave();
        return r;
}

cl_int native_shared_create(struct backend *b, unsigned domain, size_t size,
                            struct backend_buffer **ret, int *ret_fd)
{
        uint8_t uuid[BACKEND_DEVICE_NAME];
        struct backend_buffer *made;
        cl_int r = native_shared_device(b, domain, uuid);
        if (r < 0)
                return r;
        int fd = -1;
        r = allocate(uuid, size, &fd);
        if (r != CL_SUCCESS)
                return r;
        r = native_shared_import(b, domain, fd, size, &made);
        if (r == CL_SUCCESS)
                r = native_ready(b, made, &made);
        if (r == CL_SUCCESS && (r = wait_clear(&b->domains[domain])) < 0)
                backend_native.buffer.release(made);
        if (r < 0) {
                (void)file_close(fd);
                return r;
        }
        *ret = made;
        *ret_fd = fd;
        return CL_SUCCESS;
}
