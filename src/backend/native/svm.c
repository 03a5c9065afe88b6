/* Shared virtual memory. Natively it lies where clSVMAlloc says. Devices that work on the host's memory
 * itself take any that this process has at the wanted address: buffers are made of it with
 * CL_MEM_USE_HOST_PTR, and pointers into it are as good as those of clSVMAlloc. */
#include "backend/native/svm.h"

#include "backend/native/clear.h"
#include "base/log.h"
#include "os/vm.h"

struct backend_svm {
        struct backend *backend;
        struct native_domain *domain; /* clSVMAlloc's; NULL: memory of the process */
        bool mapped;                  /* by us */
        void *allocated;              /* the pointer for clSVMFree */
        uint64_t address;
        size_t size;
        struct list link; /* domain's svms or backend's dead_svms */
};

/* ---- how devices come by it ----------------------------------------------------------------- */

static cl_device_svm_capabilities capabilities(const struct icd_platform *p, cl_device_id id)
{
        cl_device_svm_capabilities caps = 0;
        if (p->api.clGetDeviceInfo(id, CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps, NULL) !=
            CL_SUCCESS)
                return 0;
        return caps;
}

static bool has_svm(const struct icd_platform *p, cl_device_id id)
{
        return p->api.clSVMAlloc && p->api.clSVMFree && p->api.clSetKernelArgSVMPointer &&
               p->api.clSetKernelExecInfo && p->api.clCreateCommandQueueWithProperties &&
               capabilities(p, id) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

/* Fill the second quarter of the page, copy the first into the third: are both to be seen here without a
 * map, and did the device see what was written here? */
static bool works_on(const struct native_domain *domain, cl_command_queue queue, cl_mem mem,
                     uint32_t *page)
{
        const cl_icd_dispatch *api = domain->api;
        enum { QUARTER = VM_GRANULE / 4, STEP = QUARTER / sizeof(*page) };
        const uint32_t seen = 0x5A17C0DE, filled = 0x0DDBA115;
        page[0] = seen;
        page[STEP - 1] = ~seen;
        return api->clEnqueueFillBuffer(queue, mem, &filled, sizeof(filled), QUARTER, QUARTER, 0,
                                        NULL, NULL) == CL_SUCCESS &&
               api->clEnqueueCopyBuffer(queue, mem, mem, 0, 2 * (size_t)QUARTER, QUARTER, 0, NULL,
                                        NULL) == CL_SUCCESS &&
               api->clFinish(queue) == CL_SUCCESS && page[STEP] == filled &&
               page[2 * STEP - 1] == filled && page[2 * STEP] == seen &&
               page[3 * STEP - 1] == ~seen && page[3 * STEP] == 0;
}

static bool works_on_host_memory(const struct native_domain *domain, cl_device_id id)
{
        const cl_icd_dispatch *api = domain->api;
        uint64_t at;
        cl_int err;
        if (!api->clEnqueueFillBuffer || vm_map(0, VM_GRANULE, &at) < 0)
                return false;
        void *page = (void *)(uintptr_t)at;
        cl_mem mem = api->clCreateBuffer(domain->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                         VM_GRANULE, page, &err);
        cl_command_queue queue =
                mem ? api->clCreateCommandQueueWithProperties(domain->context, id, NULL, &err)
                    : NULL;
        bool yes = queue && works_on(domain, queue, mem, page);
        if (queue)
                api->clReleaseCommandQueue(queue);
        if (mem)
                api->clReleaseMemObject(mem);
        vm_unmap(at, VM_GRANULE);
        return yes;
}

void native_svm_init(struct backend *b, struct native_domain *domain, const cl_device_id *ids,
                     unsigned count)
{
        const struct icd_platform *p = domain->platform;
        bool any = false, host = true;
        for (unsigned i = 0; i < count; i++) {
                cl_device_type type = 0;
                if (!has_svm(p, ids[i]))
                        continue;
                any = true;
                (void)p->api.clGetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL);
                host = host && type & CL_DEVICE_TYPE_CPU && works_on_host_memory(domain, ids[i]);
        }
        domain->svm = INFO_SVM_NONE;
        if (any && host)
                domain->svm = b->in_process ? INFO_SVM_SHARES : INFO_SVM_FOLLOWS;
        else if (any && !b->in_process) /* there, the application's view would need native maps */
                domain->svm = INFO_SVM_OWN_ADDRESSES;
}

enum info_svm native_device_svm(const struct backend *b, const struct native_device *d)
{
        return has_svm(d->platform, d->id) ? b->domains[d->domain].svm : INFO_SVM_NONE;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The client asks for a multiple of VM_GRANULE, which may be a little more than the device's largest size. The session
 * has no allocation in the bytes behind that size. */
static size_t allowed_size(const struct native_device *d, size_t size)
{
        cl_ulong most = 0;
        cl_int r = d->platform->api.clGetDeviceInfo(d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                                                    sizeof(most), &most, NULL);
        return r == CL_SUCCESS && size > most && size - most < VM_GRANULE ? (size_t)most : size;
}

static cl_int svm_alloc(struct backend_svm *s, struct native_domain *domain,
                        const struct native_device *d, uint64_t address)
{
        if (address)
                return CL_INVALID_HOST_PTR;
        const cl_icd_dispatch *api = domain->api;
        op_enter();
        s->size = allowed_size(d, s->size);
        void *p = api->clSVMAlloc(domain->context, CL_MEM_READ_WRITE, s->size, 0);
        if (p && (uintptr_t)p % VM_GRANULE) {
                /* The client can't map that; with room to spare there is a place that it can. */
                api->clSVMFree(domain->context, p);
                p = api->clSVMAlloc(domain->context, CL_MEM_READ_WRITE, s->size + VM_GRANULE, 0);
        }
        op_leave();
        if (!p)
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        s->domain = domain;
        s->allocated = p;
        s->address = ((uint64_t)(uintptr_t)p + VM_GRANULE - 1) / VM_GRANULE * VM_GRANULE;
        list_append(&domain->svms, &s->link);
        domain->svm_version++;
        return CL_SUCCESS;
}

static cl_int svm_map(struct backend_svm *s, uint64_t address)
{
        int r = vm_map(address, s->size, &s->address);
        if (r < 0)
                return r == SP_E_NOMEM ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_HOST_PTR;
        s->mapped = true;
        return CL_SUCCESS;
}

static void svm_free(struct backend_svm *s)
{
        list_remove(&s->link);
        if (s->domain)
                s->domain->api->clSVMFree(s->domain->context, s->allocated);
        else if (s->mapped)
                vm_unmap(s->address, s->size);
        mem_free(s);
}

void native_svm_reap(struct backend *b)
{
        list_each(s, &b->dead_svms, struct backend_svm, link)
        {
                svm_free(s);
        }
}

static bool is_idle(struct backend *b)
{
        lock_take(&b->lock);
        bool idle = !b->in_flight;
        lock_release(&b->lock);
        return idle;
}

cl_int native_svm_create(struct backend *b, unsigned device, uint64_t address, size_t size,
                         bool mapped, struct backend_svm **ret, uint64_t *ret_address)
{
        if (device >= b->device_count)
                return CL_INVALID_DEVICE;
        struct native_device *d = &b->devices[device];
        enum info_svm how = native_device_svm(b, d);
        if (how == INFO_SVM_NONE || (how == INFO_SVM_SHARES && !address) ||
            (mapped && how == INFO_SVM_OWN_ADDRESSES))
                return CL_INVALID_OPERATION;
        struct backend_svm *s = mem_zalloc(sizeof(*s));
        if (!s)
                return CL_OUT_OF_HOST_MEMORY;
        *s = (struct backend_svm){ .backend = b, .address = address, .size = size };
        list_init(&s->link);
        cl_int status = CL_SUCCESS;
        if (is_idle(b))
                native_svm_reap(b);
        if (how == INFO_SVM_OWN_ADDRESSES)
                status = svm_alloc(s, &b->domains[d->domain], d, address);
        else if (how == INFO_SVM_FOLLOWS && !mapped)
                status = svm_map(s, address);
        s->mapped |= mapped;
        if (status < 0) {
                mem_free(s);
                return status;
        }
        if (how == INFO_SVM_OWN_ADDRESSES) {
                status = native_clear_svm(b, s->domain, s->address, s->size);
                if (status < 0) {
                        svm_free(s);
                        return status;
                }
        }
        *ret = s;
        *ret_address = s->address;
        return CL_SUCCESS;
}

void native_svm_release(struct backend_svm *s)
{
        struct backend *b = s->backend;
        if (s->domain)
                s->domain->svm_version++;
        list_remove(&s->link);
        list_append(&b->dead_svms, &s->link);
        op_enter();
        if (is_idle(b))
                native_svm_reap(b);
        op_leave();
}

cl_int native_svm_buffer_create(struct backend *b, unsigned domain, struct backend_svm *svm,
                                cl_mem_flags flags, size_t offset, size_t size,
                                struct backend_buffer **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *d = &b->domains[domain];
        bool has = svm->domain ? svm->domain == d
                               : d->svm == INFO_SVM_FOLLOWS || d->svm == INFO_SVM_SHARES;
        void *host = has ? (void *)(uintptr_t)(svm->address + offset) : NULL;
        struct backend_buffer *made;
        cl_int err = CL_SUCCESS;
        flags &= CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
        op_enter();
        cl_mem mem = d->api->clCreateBuffer(d->context, flags | (has ? CL_MEM_USE_HOST_PTR : 0),
                                            size, host, &err);
        cl_int r = native_wrap_buffer(d, mem, size, err, &made);
        op_leave();
        if (r == CL_SUCCESS && !has)
                return native_ready(b, made, ret);
        if (r == CL_SUCCESS)
                *ret = made;
        return r;
}

/* ---- kernels -------------------------------------------------------------------------------- */

cl_int native_svm_set_arg(struct backend_kernel *k, cl_uint index, uint64_t address)
{
        if (!k->domain->api->clSetKernelArgSVMPointer)
                return CL_INVALID_OPERATION;
        op_enter();
        cl_int r = k->domain->api->clSetKernelArgSVMPointer(k->kernel, index,
                                                            (void *)(uintptr_t)address);
        op_leave();
        return r;
}

/* "It is sufficient to specify one pointer for each SVM allocation." The client knows which allocations the kernel
 * uses. This sets all of them, because each pointer of the client lies in one. */
cl_int native_svm_announce(struct backend_kernel *k)
{
        struct native_domain *d = k->domain;
        if (k->svm_version == d->svm_version)
                return CL_SUCCESS;
        size_t count = 0;
        list_each(s, &d->svms, struct backend_svm, link)
        {
                count++;
        }
        void **all = mem_alloc((count + 1) * sizeof(*all));
        if (!all)
                return CL_OUT_OF_HOST_MEMORY;
        count = 0;
        list_each(s, &d->svms, struct backend_svm, link)
        {
                all[count++] = (void *)(uintptr_t)s->address;
        }
        cl_int r = d->api->clSetKernelExecInfo(k->kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                               count * sizeof(*all), count ? all : NULL);
        mem_free(all);
        if (!count) /* older implementations do not know the empty set */
                r = CL_SUCCESS;
        if (r == CL_SUCCESS)
                k->svm_version = d->svm_version;
        return r;
}
