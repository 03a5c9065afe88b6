/* cl_intel_unified_shared_memory (core/memory/usm.h). Its functions are found by name only, since
 * the dispatch table has no slots for them. Quotes are from the extension. */
#include "core/memory/usm.h"

#include <string.h>

#include "api/check.h"
#include "api/dispatch.h"
#include "api/enqueue.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/context.h"
#include "core/memory/mem.h"
#include "core/memory/svm.h"
#include "core/program/kernel.h"
#include "os/vm.h"

/* As far as other implementations go, and no host has larger pages. */
enum { ALIGNMENT_MAX = 65536, LARGEST_TYPE = 16 * sizeof(cl_long) };

/* ---- memory --------------------------------------------------------------------------------- */

/* CL_INVALID_PROPERTY: "a memory property name in properties is not a supported property name";
 * "the value specified for a supported property name is not valid"; or "the same property name is
 * specified more than once". Also if CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL and
 * CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL are both set, or one of them for an allocation that is
 * not shared. */
static cl_int take_properties(const cl_mem_properties_intel *properties, cl_uint type,
                              cl_bitfield *ret_flags)
{
        const cl_bitfield placements = CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL |
                                       CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
        cl_bitfield known = CL_MEM_ALLOC_WRITE_COMBINED_INTEL;
        bool seen = false;
        if (type == CL_MEM_TYPE_SHARED_INTEL)
                known |= placements;
        *ret_flags = 0;
        for (; properties && *properties; properties += 2) {
                if (properties[0] != CL_MEM_ALLOC_FLAGS_INTEL || seen || properties[1] & ~known ||
                    (properties[1] & placements) == placements)
                        return CL_INVALID_PROPERTY;
                *ret_flags = properties[1];
                seen = true;
        }
        return CL_SUCCESS;
}

/* Can the context have allocations of that type on the device (NULL: on any)? */
static bool offers(cl_context x, cl_device_id device, cl_uint type)
{
        if (!vm_can_map_twice())
                return false;
        client_lock(x->client);
        bool can = device ? context_device(x, device)->svm != INFO_SVM_NONE : svm_any(x);
        if (can && type != CL_MEM_TYPE_DEVICE_INTEL)
                can = svm_reaches_host(x);
        client_unlock(x->client);
        return can;
}

/* "CL_INVALID_BUFFER_SIZE if size is zero or greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE for device";
 * without one, "for any device in context that supports" such allocations. */
static bool size_fits(const struct _cl_context *x, const struct _cl_device_id *device, size_t size)
{
        if (device)
                return size && size <= device->max_mem_alloc_size;
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->svm && size > x->devices[i]->max_mem_alloc_size)
                        return false;
        return size != 0;
}

static cl_int check_alloc(cl_context context, cl_device_id device, cl_uint type, size_t size,
                          cl_uint alignment)
{
        /* "CL_INVALID_CONTEXT if context is not a valid context." */
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        /* "CL_INVALID_DEVICE if device is not a valid device or is not associated with context." Shared
         * allocations may have none. */
        bool none = !device && type != CL_MEM_TYPE_DEVICE_INTEL;
        if (!none && (!handle_is(device, HANDLE_DEVICE) || !context_has_device(context, device)))
                return CL_INVALID_DEVICE;
        /* "CL_INVALID_OPERATION if [...] device does not support [such] Unified Shared Memory
         * allocations", or, without a device, "no devices in context support" them. */
        if (!offers(context, device, type))
                return CL_INVALID_OPERATION;
        /* "CL_INVALID_VALUE if alignment is not zero or a power of two", or if it is "greater than the
         * size of the largest data type supported": other implementations take pages. */
        if (alignment & (alignment - 1) || alignment > ALIGNMENT_MAX)
                return CL_INVALID_VALUE;
        return size_fits(context, device, size) ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
}

static void *alloc(cl_context context, cl_device_id device, cl_uint type,
                   const cl_mem_properties_intel *properties, size_t size, cl_uint alignment,
                   cl_int *errcode_ret)
{
        struct usm_kind kind = { .type = type };
        void *at = NULL;
        cl_mem m;
        cl_int e = check_alloc(context, device, type, size, alignment);
        if (e == CL_SUCCESS)
                e = take_properties(properties, type, &kind.flags);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        kind.device = device ? device->shown : NULL;
        client_lock(context->client);
        int r = svm_alloc(context, CL_MEM_READ_WRITE, size,
                          alignment > LARGEST_TYPE ? alignment : 0, &kind, &m);
        if (r == 0)
                at = m->host_ptr;
        client_unlock(context->client);
        if (r == SP_E_BUSY || r == SP_E_LIMIT)
                r = CL_OUT_OF_RESOURCES;
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return at;
}

static void *CL_API_CALL device_mem_alloc(cl_context context, cl_device_id device,
                                          const cl_mem_properties_intel *properties, size_t size,
                                          cl_uint alignment, cl_int *errcode_ret)
{
        return alloc(context, device, CL_MEM_TYPE_DEVICE_INTEL, properties, size, alignment,
                     errcode_ret);
}

static void *CL_API_CALL host_mem_alloc(cl_context context,
                                        const cl_mem_properties_intel *properties, size_t size,
                                        cl_uint alignment, cl_int *errcode_ret)
{
        return alloc(context, NULL, CL_MEM_TYPE_HOST_INTEL, properties, size, alignment,
                     errcode_ret);
}

static void *CL_API_CALL shared_mem_alloc(cl_context context, cl_device_id device,
                                          const cl_mem_properties_intel *properties, size_t size,
                                          cl_uint alignment, cl_int *errcode_ret)
{
        return alloc(context, device, CL_MEM_TYPE_SHARED_INTEL, properties, size, alignment,
                     errcode_ret);
}

/* Free one allocation. `blocking`: enqueued commands may use it, so wait for them. A kernel may
 * reach it through any pointer, so the wait is for everything enqueued in the context. */
static cl_int free_one(cl_context context, void *ptr, bool blocking)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        /* "If ptr is NULL then no action occurs." */
        if (!ptr)
                return CL_SUCCESS;
        client_lock(context->client);
        cl_mem m = svm_find(context, ptr);
        /* "CL_INVALID_VALUE if ptr is not a value returned by clHostMemAllocINTEL, clDeviceMemAllocINTEL,
         * clSharedMemAllocINTEL, or a NULL pointer." */
        int r = m && m->usm.type && m->host_ptr == ptr ? 0 : CL_INVALID_VALUE;
        if (r == 0 && blocking)
                r = queues_wait(context);
        if (r == 0 && !svm_free(context, ptr, true))
                r = CL_INVALID_VALUE;
        client_unlock(context->client);
        return status_to_cl(r);
}

static cl_int CL_API_CALL mem_free_now(cl_context context, void *ptr)
{
        return free_one(context, ptr, false);
}

static cl_int CL_API_CALL mem_blocking_free(cl_context context, void *ptr)
{
        return free_one(context, ptr, true);
}

static cl_int CL_API_CALL get_mem_alloc_info(cl_context context, const void *ptr,
                                             cl_mem_info_intel param_name, size_t param_value_size,
                                             void *param_value, size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        struct usm_kind kind = { 0 };
        void *base = NULL;
        size_t size = 0;
        client_lock(context->client);
        cl_mem m = svm_find(context, ptr);
        if (m && m->usm.type) {
                kind = m->usm;
                base = m->host_ptr;
                size = m->size;
        }
        client_unlock(context->client);
        switch (param_name) {
        case CL_MEM_ALLOC_TYPE_INTEL:
                return reply_value(reply, cl_unified_shared_memory_type_intel,
                                   kind.type ? kind.type : CL_MEM_TYPE_UNKNOWN_INTEL);
        case CL_MEM_ALLOC_BASE_PTR_INTEL:
                return reply_value(reply, void *, base);
        case CL_MEM_ALLOC_SIZE_INTEL:
                return reply_value(reply, size_t, size);
        case CL_MEM_ALLOC_DEVICE_INTEL:
                return reply_value(reply, cl_device_id, kind.device);
        case CL_MEM_ALLOC_FLAGS_INTEL:
                return reply_value(reply, cl_mem_alloc_flags_intel, kind.flags);
        default:
                return CL_INVALID_VALUE;
        }
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* "For all devices, any pointer value is valid and may be set as an argument to a kernel." */
static cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint arg_index, const void *arg_value)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        struct client *c = kernel->program->context->client;
        client_lock(c);
        int r = svm_any(kernel->program->context) ? kernel_set_svm(kernel, arg_index, arg_value)
                                                  : CL_INVALID_OPERATION;
        client_unlock(c);
        return status_to_cl(r);
}

/* ---- commands ------------------------------------------------------------------------------- */

static cl_int CL_API_CALL enqueue_mem_fill(cl_command_queue command_queue, void *dst_ptr,
                                           const void *pattern, size_t pattern_size, size_t size,
                                           cl_uint num_events_in_wait_list,
                                           const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_MEMFILL_INTEL,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_svm_mem_fill(&q, dst_ptr, pattern, pattern_size, size);
}

/* "If [it] is a pointer into a Unified Shared Memory allocation it must be valid for the context associated with
 * command_queue." */
static bool is_foreign(cl_context x, const void *at)
{
        client_lock(x->client);
        bool is = !svm_find(x, at) && svm_is_foreign(x, at);
        client_unlock(x->client);
        return is;
}

static cl_int CL_API_CALL enqueue_memcpy(cl_command_queue command_queue, cl_bool blocking,
                                         void *dst_ptr, const void *src_ptr, size_t size,
                                         cl_uint num_events_in_wait_list,
                                         const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_MEMCPY_INTEL, num_events_in_wait_list, event_wait_list,
                event,         blocking != CL_FALSE
        };
        if (queue_is_host(command_queue) && (is_foreign(command_queue->context, dst_ptr) ||
                                             is_foreign(command_queue->context, src_ptr)))
                return CL_INVALID_VALUE;
        return do_svm_memcpy(&q, dst_ptr, src_ptr, size, true);
}

static cl_int CL_API_CALL enqueue_migrate_mem(cl_command_queue command_queue, const void *ptr,
                                              size_t size, cl_mem_migration_flags flags,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_MIGRATEMEM_INTEL,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        /* "CL_INVALID_VALUE if flags is not a supported combination of memory migration flags." */
        const cl_mem_migration_flags known =
                CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
        cl_int e = check_enqueue(q.queue, q.wait_count, q.waits);
        if (e == CL_SUCCESS && flags & ~known)
                e = CL_INVALID_VALUE;
        if (e != CL_SUCCESS)
                return e;
        /* "The migration hint may be ignored": towards the host, where each access brings its bytes,
         * and outside of allocations. */
        cl_mem m = !flags && command_queue->device->svm ? svm_find_usm(command_queue->context, ptr)
                                                        : NULL;
        if (!m || !size || size > m->size - svm_at(m, ptr))
                return enqueue_nothing(&q);
        const struct range r = mem_range(m, svm_at(m, ptr), size);
        return enqueue_migrate(&q, 1, &m, &r, 0);
}

static cl_int CL_API_CALL enqueue_mem_advise(cl_command_queue command_queue, const void *ptr,
                                             size_t size, cl_mem_advice_intel advice,
                                             cl_uint num_events_in_wait_list,
                                             const cl_event *event_wait_list, cl_event *event)
{
        (void)ptr, (void)size;
        struct enqueue q = { command_queue,
                             CL_COMMAND_MEMADVISE_INTEL,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        cl_int e = check_enqueue(q.queue, q.wait_count, q.waits);
        /* "CL_INVALID_VALUE if advice is not supported advice for the device": there is none but none. */
        if (e == CL_SUCCESS && advice)
                e = CL_INVALID_VALUE;
        /* "If a memory advice hint is not supported by the device it will be ignored." */
        return e == CL_SUCCESS ? enqueue_nothing(&q) : e;
}

void *usm_find(const char *name)
{
        static const struct {
                const char *name;
                void *address;
        } entries[] = {
                { "clHostMemAllocINTEL", (void *)host_mem_alloc },
                { "clDeviceMemAllocINTEL", (void *)device_mem_alloc },
                { "clSharedMemAllocINTEL", (void *)shared_mem_alloc },
                { "clMemFreeINTEL", (void *)mem_free_now },
                { "clMemBlockingFreeINTEL", (void *)mem_blocking_free },
                { "clGetMemAllocInfoINTEL", (void *)get_mem_alloc_info },
                { "clSetKernelArgMemPointerINTEL", (void *)set_kernel_arg },
                { "clEnqueueMemFillINTEL", (void *)enqueue_mem_fill },
                { "clEnqueueMemcpyINTEL", (void *)enqueue_memcpy },
                { "clEnqueueMigrateMemINTEL", (void *)enqueue_migrate_mem },
                { "clEnqueueMemAdviseINTEL", (void *)enqueue_mem_advise },
        };
        for (size_t i = 0; i < array_size(entries); i++)
                if (!strcmp(entries[i].name, name))
                        return entries[i].address;
        return NULL;
}
