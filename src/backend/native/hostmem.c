/* Host memory that the device can read and write directly: a mapped buffer in the host's memory.
 * For other memory the driver makes an intermediate copy. Given memory, a file's that other
 * processes have mapped, can become such a buffer if the driver pins it (quirks.h). */
#include "backend/native/hostmem.h"

#include "backend/native/command.h"
#include "base/log.h"

struct host_memory {
        struct list link;
        const cl_icd_dispatch *api;
        cl_command_queue queue;
        cl_mem mem;
        void *at;
};

static void host_memory_free(struct host_memory *m)
{
        if (m->at &&
            m->api->clEnqueueUnmapMemObject(m->queue, m->mem, m->at, 0, NULL, NULL) == CL_SUCCESS)
                m->api->clFinish(m->queue);
        if (m->mem)
                m->api->clReleaseMemObject(m->mem);
        if (m->queue)
                m->api->clReleaseCommandQueue(m->queue);
        mem_free(m);
}

static cl_int map(struct native_domain *domain, cl_device_id device, size_t size, void *given,
                  struct host_memory *m)
{
        cl_int err = CL_SUCCESS;
        m->queue = native_create_queue(domain, device, 0, &err);
        if (!m->queue)
                return err ? err : CL_OUT_OF_RESOURCES;
        cl_mem_flags flags = given ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR;
        m->mem = m->api->clCreateBuffer(domain->context, CL_MEM_READ_WRITE | flags, size, given,
                                        &err);
        if (!m->mem)
                return err ? err : CL_OUT_OF_RESOURCES;
        m->at = m->api->clEnqueueMapBuffer(m->queue, m->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                           size, 0, NULL, NULL, &err);
        if (!m->at)
                return err ? err : CL_OUT_OF_RESOURCES;
        return given && m->at != given ? CL_INVALID_OPERATION : CL_SUCCESS;
}

cl_int native_host_memory(struct backend *b, unsigned domain, size_t size, void *given, void **ret)
{
        struct native_domain *d = &b->domains[domain];
        unsigned device = 0;
        while (device < b->device_count && b->devices[device].domain != domain)
                device++;
        if (!d->apart || !d->context || device == b->device_count || !d->api->clEnqueueMapBuffer ||
            !d->api->clEnqueueUnmapMemObject ||
            (given && d->quirks->given_memory != GIVEN_MEMORY_PINNED))
                return CL_INVALID_OPERATION;
        struct host_memory *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        list_init(&m->link);
        m->api = d->api;
        op_enter();
        cl_int r = map(d, b->devices[device].id, size, given, m);
        if (r == CL_SUCCESS) {
                list_append(&b->host_memories, &m->link);
                *ret = m->at;
        } else {
                log_info("native", "no memory for transfers from %s: %d", d->platform->name, r);
                host_memory_free(m);
        }
        op_leave();
        return r;
}

void native_host_memory_free_all(struct backend *b)
{
        while (!list_empty(&b->host_memories)) {
                struct host_memory *m = list_entry(b->host_memories.next, struct host_memory, link);
                list_remove(&m->link);
                host_memory_free(m);
        }
}
