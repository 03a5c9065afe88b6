/* Queries of a kernel whose answer depends on an input. */
#include "backend/native/kernelquery.h"

#include "base/mem.h"

static void *extension_find(const struct native_domain *d, const char *name)
{
        __typeof__(clGetExtensionFunctionAddressForPlatform) *find =
                d->api->clGetExtensionFunctionAddressForPlatform;
        return find ? find(d->platform->id, name) : NULL;
}

native_sub_group_info_fn native_sub_group_info(const struct native_domain *d)
{
        if (d->api->clGetKernelSubGroupInfo)
                return d->api->clGetKernelSubGroupInfo;
        /* cl_khr_subgroups, with OpenCL 2.0 */
        if (d->api->clGetKernelSubGroupInfoKHR)
                return d->api->clGetKernelSubGroupInfoKHR;
        void *found = extension_find(d, "clGetKernelSubGroupInfoKHR");
        native_sub_group_info_fn fn;
        memcpy(&fn, &found, sizeof(fn));
        return fn;
}

/* The function wants a queue for the device. */
static cl_int suggest(struct backend_kernel *k, cl_device_id id, const size_t *input, size_t count,
                      size_t size, void *ret)
{
        void *found = extension_find(k->domain, "clGetKernelSuggestedLocalWorkSizeKHR");
        clGetKernelSuggestedLocalWorkSizeKHR_fn ask;
        memcpy(&ask, &found, sizeof(ask));
        cl_uint dims = (cl_uint)(count / 2);
        if (!ask)
                return CL_INVALID_OPERATION;
        if (count % 2 || !dims || dims > 3 || size != dims * sizeof(size_t))
                return CL_INVALID_VALUE;
        cl_int r = CL_SUCCESS;
        cl_command_queue q = k->domain->api->clCreateCommandQueue(k->domain->context, id, 0, &r);
        if (!q)
                return r ? r : CL_OUT_OF_RESOURCES;
        r = ask(q, k->kernel, dims, input, input + dims, ret);
        k->domain->api->clReleaseCommandQueue(q);
        return r;
}

cl_int native_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                           const size_t *input, size_t input_count, size_t size, void *ret)
{
        if (device >= k->backend->device_count ||
            &k->backend->domains[k->backend->devices[device].domain] != k->domain)
                return CL_INVALID_DEVICE;
        cl_device_id id = k->backend->devices[device].context_id;
        cl_int r = CL_INVALID_OPERATION;
        op_enter();
        if (name == INFO_LOCAL_SIZE) {
                r = suggest(k, id, input, input_count, size, ret);
        } else {
                native_sub_group_info_fn ask = native_sub_group_info(k->domain);
                if (ask)
                        r = ask(k->kernel, id, name, input_count * sizeof(*input), input, size, ret,
                                NULL);
        }
        op_leave();
        return r;
}
