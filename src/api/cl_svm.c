/* Shared virtual memory, coarse-grained. */
#include <CL/cl.h>

#include "api/check.h"
#include "api/enqueue.h"
#include "api/mem_flags.h"
#include "core/command/enqueue.h"
#include "core/device.h"
#include "core/memory/mapping.h"
#include "core/memory/svm.h"
#include "core/memory/usm.h"
#include "core/program/kernel.h"
#include "core/status.h"

enum { SVM_PAGE = 4096, LARGEST_TYPE = 16 * sizeof(cl_long) };

/* ---- memory --------------------------------------------------------------------------------- */

static bool size_fits(const struct _cl_context *x, size_t size)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (size > x->devices[i]->max_mem_alloc_size)
                        return false;
        return size != 0;
}

CL_API_ENTRY void *CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                          cl_uint alignment)
{
        /* "context is not a valid context, or no devices in context support SVM." */
        if (!handle_is(context, HANDLE_CONTEXT) || !svm_any(context))
                return NULL;
        /* "The values specified in flags are not valid", "do not follow rules"; "CL_MEM_SVM_FINE_GRAIN_
         * BUFFER or CL_MEM_SVM_ATOMICS is specified in flags and these are not supported by at least one
         * device in context": by none. */
        if (flags & ~(cl_svm_mem_flags)MEM_ACCESS || !mem_flags_are_valid(flags))
                return NULL;
        /* "size is 0 or > CL_DEVICE_MAX_MEM_ALLOC_SIZE value for any device in context." */
        if (!size_fits(context, size))
                return NULL;
        /* "alignment is not a power of two or the OpenCL implementation cannot support the specified
         * alignment for at least one device": "up to the largest data type supported", long16. */
        size_t most = context_accepts(context, DEVICE_ACCEPTS_SVM_PAGES) ? SVM_PAGE : LARGEST_TYPE;
        if (alignment & (alignment - 1) || alignment > most)
                return NULL;
        if (!(flags & MEM_ACCESS))
                flags |= CL_MEM_READ_WRITE;
        cl_mem m;
        client_lock(context->client);
        int r = svm_alloc(context, flags, size, alignment > LARGEST_TYPE ? alignment : 0, NULL, &m);
        void *at = r < 0 ? NULL : m->host_ptr;
        client_unlock(context->client);
        return at;
}

CL_API_ENTRY void CL_API_CALL clSVMFree(cl_context context, void *svm_pointer)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return;
        /* "If a NULL pointer is passed in svm_pointer, no action occurs." */
        client_lock(context->client);
        if (svm_pointer)
                (void)svm_free(context, svm_pointer, false);
        client_unlock(context->client);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* "CL_INVALID_OPERATION if the device associated with command_queue does not support SVM." */
static cl_int check_svm(const struct enqueue *q)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS && !q->queue->device->svm)
                e = CL_INVALID_OPERATION;
        return e;
}

/* A place in memory: an allocation of the queue's context and the offset in it. `mem` is NULL for
 * other memory of the application. */
struct place {
        cl_mem mem;
        size_t offset;
};

static struct place place_of(cl_command_queue q, const void *at)
{
        client_lock(q->context->client);
        cl_mem mem = svm_find(q->context, at);
        client_unlock(q->context->client);
        return (struct place){ mem, mem ? svm_at(mem, at) : 0 };
}

/* Check that the bytes lie within the allocation. The specification names no error for that; return
 * the same as for buffers. */
static cl_int check_place(struct place p, size_t size)
{
        return p.mem ? check_region(p.mem, p.offset, size) : CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL
clEnqueueSVMFree(cl_command_queue command_queue, cl_uint num_svm_pointers, void *svm_pointers[],
                 void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void *[], void *),
                 void *user_data, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
                 cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_SVM_FREE, num_events_in_wait_list, event_wait_list, event,
                false
        };
        cl_int e = check_svm(&q);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if num_svm_pointers is 0 and svm_pointers is non-NULL, or if svm_pointers is
         * NULL and num_svm_pointers is not 0." */
        if (!num_svm_pointers != !svm_pointers)
                return CL_INVALID_VALUE;
        return enqueue_svm_free(&q, num_svm_pointers, svm_pointers, pfn_free_func, user_data);
}

static bool overlaps(const void *a, const void *b, size_t size)
{
        uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
        return (x > y ? x - y : y - x) < size;
}

cl_int do_svm_memcpy(const struct enqueue *q, void *dst_ptr, const void *src_ptr, size_t size,
                     bool host)
{
        cl_int e = check_svm(q);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if dst_ptr is NULL, if src_ptr is NULL." */
        if (!dst_ptr || !src_ptr)
                return CL_INVALID_VALUE;
        /* "CL_MEM_COPY_OVERLAP if the values specified for dst_ptr, src_ptr and size result in an
         * overlapping copy." */
        if (overlaps(dst_ptr, src_ptr, size))
                return CL_MEM_COPY_OVERLAP;
        struct place to = place_of(q->queue, dst_ptr);
        struct place from = place_of(q->queue, src_ptr);
        e = check_place(to, size);
        if (e == CL_SUCCESS)
                e = check_place(from, size);
        /* The client can't copy into and from another context's unified shared memory. */
        if (e == CL_SUCCESS && ((!to.mem && svm_may_fault(dst_ptr, size)) ||
                                (!from.mem && svm_may_fault(src_ptr, size))))
                e = CL_INVALID_VALUE;
        /* "[...] a host (if the device supports system SVM) or SVM memory allocation": none does. */
        if (e == CL_SUCCESS && !host && (!to.mem || !from.mem))
                e = CL_INVALID_VALUE;
        if (e != CL_SUCCESS)
                return e;
        if (!size)
                return enqueue_nothing(q);
        if (to.mem && from.mem)
                return enqueue_copy(q, from.mem, to.mem, from.offset, to.offset, size);
        if (to.mem)
                return enqueue_write(q, to.mem, to.offset, size, src_ptr);
        if (from.mem)
                return enqueue_read(q, from.mem, from.offset, size, dst_ptr);
        return enqueue_host_copy(q, dst_ptr, src_ptr, size);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue command_queue,
                                                   cl_bool blocking_copy, void *dst_ptr,
                                                   const void *src_ptr, size_t size,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_SVM_MEMCPY,    num_events_in_wait_list, event_wait_list,
                event,         blocking_copy != CL_FALSE
        };
        return do_svm_memcpy(&q, dst_ptr, src_ptr, size, true);
}

cl_int do_svm_mem_fill(const struct enqueue *q, void *svm_ptr, const void *pattern,
                       size_t pattern_size, size_t size)
{
        cl_int e = check_svm(q);
        if (e != CL_SUCCESS)
                return e;
        /* CL_INVALID_VALUE: svm_ptr "is NULL" or "is not aligned to pattern_size bytes"; "pattern
         * is NULL"; pattern_size "is zero, is not a power of two, is greater than 128"; or "size is
         * not a multiple of pattern_size". */
        if (!svm_ptr || !pattern || !pattern_size || pattern_size & (pattern_size - 1) ||
            pattern_size > FILL_PATTERN_MAX || (uintptr_t)svm_ptr % pattern_size ||
            size % pattern_size)
                return CL_INVALID_VALUE;
        /* "svm_ptr is a pointer to a memory region that will be filled". It must lie in an
         * allocation, because a coarse-grained device can't reach other memory of the application.
         */
        struct place at = place_of(q->queue, svm_ptr);
        if (!at.mem || check_place(at, size) != CL_SUCCESS)
                return CL_INVALID_VALUE;
        if (!size)
                return enqueue_nothing(q);
        return enqueue_fill(q, at.mem, bytes_of(pattern, pattern_size), at.offset, size);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr,
                                                    const void *pattern, size_t pattern_size,
                                                    size_t size, cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list,
                                                    cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_SVM_MEMFILL,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_svm_mem_fill(&q, svm_ptr, pattern, pattern_size, size);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue command_queue,
                                                cl_bool blocking_map, cl_map_flags flags,
                                                void *svm_ptr, size_t size,
                                                cl_uint num_events_in_wait_list,
                                                const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_SVM_MAP,      num_events_in_wait_list, event_wait_list,
                event,         blocking_map != CL_FALSE
        };
        cl_int e = check_svm(&q);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if svm_ptr is NULL, if size is zero". */
        if (!svm_ptr || !size)
                return CL_INVALID_VALUE;
        struct place at = place_of(command_queue, svm_ptr);
        if (!at.mem || at.mem->usm.type || check_place(at, size) != CL_SUCCESS)
                return CL_INVALID_VALUE;
        void *pointer;
        return enqueue_map(&q, at.mem, map_flags_of(flags), at.offset, size, &pointer);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                                                  cl_uint num_events_in_wait_list,
                                                  const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_SVM_UNMAP,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        cl_int e = check_svm(&q);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if svm_ptr is NULL." "svm_ptr is a pointer that was specified in a previous
         * call to clEnqueueSVMMap": core knows. */
        struct place at = place_of(command_queue, svm_ptr);
        return at.mem ? enqueue_unmap(&q, at.mem, svm_ptr) : CL_INVALID_VALUE;
}

static cl_int migrate(const struct enqueue *q, cl_uint count, const void **pointers,
                      const size_t *sizes, cl_mem_migration_flags flags)
{
        cl_mem *mems = mem_alloc(count * sizeof(cl_mem));
        struct range *ranges = mem_alloc(count * sizeof(*ranges));
        cl_int e = mems && ranges ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
        for (cl_uint i = 0; i < count && e == CL_SUCCESS; i++) {
                struct place at = place_of(q->queue, pointers[i]);
                size_t size = sizes ? sizes[i] : 0;
                /* "[...] if sizes[i] is non-zero and the memory range described by svm_pointers[i] and
                 * sizes[i] is not contained within an SVM allocation returned by clSVMAlloc";
                 * "each pointer in this array must be within an allocation". */
                if (!at.mem || check_place(at, size) != CL_SUCCESS) {
                        e = CL_INVALID_VALUE;
                        break;
                }
                mems[i] = at.mem;
                /* "if sizes[i] is zero, then the entire allocation [...] is migrated." */
                ranges[i] = size ? mem_range(at.mem, at.offset, size) : mem_all(at.mem);
        }
        if (e == CL_SUCCESS)
                e = enqueue_migrate(q, count, mems, ranges, flags);
        mem_free(mems);
        mem_free(ranges);
        return e;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMigrateMem(
        cl_command_queue command_queue, cl_uint num_svm_pointers, const void **svm_pointers,
        const size_t *sizes, cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_SVM_MIGRATE_MEM,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        cl_int e = check_svm(&q);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if num_svm_pointers is zero, if svm_pointers is NULL, if flags is not zero
         * and is not a valid combination of the values". */
        if (!num_svm_pointers || !svm_pointers ||
            flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
                                              CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
                return CL_INVALID_VALUE;
        return migrate(&q, num_svm_pointers, svm_pointers, sizes, flags);
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* "The SVM pointer value specified as the argument value can be the pointer returned by clSVMAlloc or can
 * be a pointer offset into the SVM region"; also right behind it, where an array ends. */
static bool is_svm_value(cl_context x, const void *value) REQUIRES(client_held)
{
        return svm_find(x, value) || svm_find(x, (const uint8_t *)value - 1);
}

static int set_svm_arg(cl_kernel kernel, cl_uint arg_index, const void *arg_value)
        REQUIRES(client_held)
{
        cl_context x = kernel->program->context;
        /* "CL_INVALID_OPERATION if no devices in the context associated with kernel support SVM." */
        if (!svm_any(x))
                return CL_INVALID_OPERATION;
        if (arg_index < kernel->info->arg_count && arg_value && !is_svm_value(x, arg_value))
                return CL_INVALID_ARG_VALUE;
        return kernel_set_svm(kernel, arg_index, arg_value);
}

int do_set_svm_arg(cl_kernel kernel, cl_uint arg_index, const void *arg_value)
{
        struct client *c = kernel->program->context->client;
        client_lock(c);
        int r = set_svm_arg(kernel, arg_index, arg_value);
        client_unlock(c);
        return r;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                                         const void *arg_value)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        return status_to_cl(do_set_svm_arg(kernel, arg_index, arg_value));
}

static int set_exec_info(cl_kernel kernel, cl_kernel_exec_info param_name, size_t param_value_size,
                         const void *param_value) REQUIRES(client_held)
{
        cl_context x = kernel->program->context;
        /* "CL_INVALID_VALUE if param_name is not valid, if param_value is NULL and param_value_size is
         * greater than zero, or if the size specified by param_value_size is not valid." */
        if (param_value_size && !param_value)
                return CL_INVALID_VALUE;
        switch (param_name) {
        case CL_KERNEL_EXEC_INFO_SVM_PTRS:
        case CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL:
                /* "To specify that no SVM allocations will be accessed by a kernel other than those set
                 * as kernel arguments, specify an empty set". */
                if (param_value_size % sizeof(void *) || (param_value && !param_value_size))
                        return CL_INVALID_VALUE;
                /* "CL_INVALID_OPERATION if param_name is CL_KERNEL_EXEC_INFO_SVM_PTRS and no devices in
                 * the context associated with kernel support SVM"; the same of unified shared memory. */
                if (!svm_any(x))
                        return CL_INVALID_OPERATION;
                return kernel_set_reach(kernel,
                                        param_name == CL_KERNEL_EXEC_INFO_SVM_PTRS
                                                ? KERNEL_REACH_SVM
                                                : KERNEL_REACH_USM,
                                        param_value_size / sizeof(void *), param_value);
        case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM: {
                cl_bool value;
                if (param_value_size != sizeof(value))
                        return CL_INVALID_VALUE;
                /* "CL_INVALID_OPERATION if [...] param_value is CL_TRUE and no devices in the context
                 * associated with kernel support fine-grain system SVM allocations": none does, and
                 * then CL_FALSE says nothing new. */
                memcpy(&value, param_value, sizeof(value));
                return value ? CL_INVALID_OPERATION : CL_SUCCESS;
        }
        /* CL_INVALID_OPERATION: "no devices in the context associated with kernel support [such]
         * Unified Shared Memory allocations". SYCL's runtime sets all three flags for every kernel,
         * and gives up when one is refused. So they are accepted, too, in contexts that can have
         * device allocations only. */
        case CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL:
        case CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL:
        case CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL: {
                cl_bool value;
                if (param_value_size != sizeof(value))
                        return CL_INVALID_VALUE;
                if (!svm_any(x))
                        return CL_INVALID_OPERATION;
                memcpy(&value, param_value, sizeof(value));
                unsigned char bit =
                        usm_bit(param_name == CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL
                                        ? CL_MEM_TYPE_HOST_INTEL
                                : param_name == CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL
                                        ? CL_MEM_TYPE_DEVICE_INTEL
                                        : CL_MEM_TYPE_SHARED_INTEL);
                if (value)
                        kernel->reaches |= bit;
                else
                        kernel->reaches &= (unsigned char)~bit;
                return CL_SUCCESS;
        }
        default:
                return CL_INVALID_VALUE;
        }
}

int do_set_exec_info(cl_kernel kernel, cl_kernel_exec_info param_name, size_t param_value_size,
                     const void *param_value)
{
        struct client *c = kernel->program->context->client;
        struct svm_borrowed value;
        int r = svm_borrow(&value, param_value, param_value_size);
        if (r == 0) {
                client_lock(c);
                r = set_exec_info(kernel, param_name, param_value_size, value.at);
                client_unlock(c);
        }
        svm_give_back(&value);
        return r;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelExecInfo(cl_kernel kernel,
                                                    cl_kernel_exec_info param_name,
                                                    size_t param_value_size,
                                                    const void *param_value)
{
        if (!handle_is(kernel, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        return status_to_cl(do_set_exec_info(kernel, param_name, param_value_size, param_value));
}
