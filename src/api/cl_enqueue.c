/* Kernels, markers, barriers, migration. The commands that move bytes are in cl_transfer.c. */
#include <CL/cl.h>
#include <stdlib.h>

#include "api/check.h"
#include "api/check_image.h"
#include "api/enqueue.h"
#include "base/mem.h"
#include "core/command/command_buffer.h"
#include "core/command/event.h"
#include "core/command/launch.h"
#include "core/context.h"
#include "core/device.h"
#include "core/program/build.h"
#include "core/program/kernel.h"
#include "core/program/program.h"
#include "proto/info.h"

/* ---- kernels -------------------------------------------------------------------------------- */

/* Version of the device as major * 10 + minor: "OpenCL 3.0 ...". */
static int device_version(cl_device_id d)
{
        const char *text = device_text(d, CL_DEVICE_VERSION);
        if (strncmp(text, "OpenCL ", 7) != 0)
                return 12;
        char *end;
        long major = strtol(text + 7, &end, 10);
        long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
        return (int)(major * 10 + minor);
}

/* The kernel as it is on the device. */
static struct kernel_device *kernel_on(cl_kernel k, cl_device_id d)
{
        static struct kernel_device none; /* never written to */
        for (cl_uint i = 0; i < k->program->device_count; i++)
                if (k->program->devices[i] == d)
                        return &k->info->devices[i];
        return &none;
}

/* May the last work-groups be smaller? "The device associated with command_queue must support non-uniform
 * work-groups" (all of OpenCL 2 do) and the program, too. */
static bool allows_non_uniform(cl_kernel k, cl_device_id d)
{
        int version = device_version(d), i = program_device(k->program, d);
        struct bytes v;
        if (version < 20)
                return false;
        if (version >= 30 && (!device_info(d, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, &v) ||
                              v.size != 4 || !bytes_get_u32(v.data)))
                return false;
        return i >= 0 && !k->build->devices[i].uniform;
}

static cl_int check_local_size(cl_kernel k, cl_device_id d, cl_uint dims, const size_t *global,
                               const size_t *local)
{
        const size_t *required = kernel_on(k, d)->required_size;
        size_t total = 1;
        bool is_required = required[0];
        for (cl_uint i = 0; i < dims; i++) {
                /* "CL_INVALID_WORK_GROUP_SIZE if local_work_size is specified and does not match the
                 * required work-group size for kernel in the program source." */
                if (!local[i] || (is_required && local[i] != required[i]))
                        return CL_INVALID_WORK_GROUP_SIZE;
                /* "CL_INVALID_WORK_ITEM_SIZE if the number of work-items specified in any of
                 * local_work_size[0], ... is greater than the corresponding values specified by
                 * CL_DEVICE_MAX_WORK_ITEM_SIZES[0], ..." */
                if (local[i] > d->max_work_item_sizes[i])
                        return CL_INVALID_WORK_ITEM_SIZE;
                if (__builtin_mul_overflow(total, local[i], &total))
                        return CL_INVALID_WORK_GROUP_SIZE;
        }
        for (cl_uint i = dims; i < 3; i++)
                if (is_required && required[i] > 1)
                        return CL_INVALID_WORK_GROUP_SIZE;
        /* "CL_INVALID_WORK_GROUP_SIZE if local_work_size is specified and the total number of
         * work-items in the work-group computed as local_work_size[0] x ... is greater than the value
         * specified by CL_KERNEL_WORK_GROUP_SIZE." Implementations accept more: NVIDIA's driver 580 gives that value as
         * 256 and accepts what the kernel's registers allow. No device accepts more than
         * CL_DEVICE_MAX_WORK_GROUP_SIZE; in between, the implementation judges (is_in_doubt). */
        if (total > d->max_work_group_size)
                return CL_INVALID_WORK_GROUP_SIZE;
        /* "CL_INVALID_WORK_GROUP_SIZE if [...] the number of work-items specified by global_work_size is
         * not evenly divisible by size of work-group given by local_work_size", unless non-uniform
         * work-groups are allowed. */
        for (cl_uint i = 0; i < dims; i++)
                if (global[i] % local[i])
                        return allows_non_uniform(k, d) ? CL_SUCCESS : CL_INVALID_WORK_GROUP_SIZE;
        return CL_SUCCESS;
}

/* Check the arguments of k for a launch on d. Arguments that passed the last check (kernel_right),
 * and the objects that they name, are not checked again. `some`: arguments may be missing. */
static cl_int check_args(cl_device_id d, cl_kernel k, bool some) REQUIRES(client_held)
{
        uint64_t right = kernel_right(k, d);
        if (right == k->version)
                return CL_SUCCESS;
        for (cl_uint i = 0; i < k->info->arg_count; i++) {
                const struct kernel_arg *a = &k->args[i];
                if (right && a->version <= right)
                        continue;
                /* "CL_INVALID_KERNEL_ARGS if any kernel arguments for kernel have not been set." */
                bool there = a->version && kernel_arg_is_alive(k, i);
                if (!there && some)
                        continue;
                if (!there || !kernel_queue_fits(k, i, d))
                        return CL_INVALID_KERNEL_ARGS;
                /* CL_MISALIGNED_SUB_BUFFER_OFFSET: an argument is a sub-buffer, and its offset "is
                 * not aligned to CL_DEVICE_MEM_BASE_ADDR_ALIGN value for device associated with
                 * queue". */
                cl_mem m = a->mem;
                if (m && mem_parent(m) && m->origin % d->sub_buffer_align)
                        return CL_MISALIGNED_SUB_BUFFER_OFFSET;
                cl_int e = m && mem_is_image(m) ? check_image_device(d, m) : CL_SUCCESS;
                if (e != CL_SUCCESS)
                        return e;
                /* "CL_INVALID_OPERATION if SVM pointers are passed as arguments to a kernel and the device
                 * does not support SVM." */
                if (a->arg.kind == ARG_SVM && !d->svm)
                        return CL_INVALID_OPERATION;
        }
        for (size_t i = 0; i < array_size(k->reached); i++)
                if (k->reached[i].count && !d->svm)
                        return CL_INVALID_OPERATION;
        if (!some)
                kernel_is_right(k, d);
        return CL_SUCCESS;
}

cl_int check_launch_args(cl_device_id d, cl_kernel k, bool some)
{
        client_lock(d->client);
        cl_int e = check_args(d, k, some);
        client_unlock(d->client);
        return e;
}

static cl_int check_launch(const struct enqueue *x, cl_kernel k)
{
        cl_command_queue q = x->queue;
        if (!queue_is_host(q))
                return CL_INVALID_COMMAND_QUEUE;
        if (!handle_is(k, HANDLE_KERNEL))
                return CL_INVALID_KERNEL;
        /* "CL_INVALID_CONTEXT if context associated with command_queue and kernel are not the same or if
         * the context associated with command_queue and events in event_wait_list are not the same." */
        if (k->program->context != q->context)
                return CL_INVALID_CONTEXT;
        cl_int e = check_wait_list(q->context, x->wait_count, x->waits);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built program executable available
         * for device associated with command_queue." */
        if (!kernel_on(k, q->device)->info.size)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        return check_launch_args(q->device, k, x->record && x->record->may_be_incomplete);
}

static bool any_zero(const size_t *v, cl_uint n)
{
        for (cl_uint i = 0; i < n; i++)
                if (!v[i])
                        return true;
        return false;
}

/* "The work-group size to be used for kernel can also be specified in the program source." */
const size_t *launch_local_size(cl_kernel kernel, cl_device_id d, const size_t *local_work_size)
{
        const size_t *required = kernel_on(kernel, d)->required_size;
        return local_work_size || !required[0] ? local_work_size : required;
}

cl_int check_launch_sizes(cl_kernel kernel, cl_device_id d, cl_uint work_dim,
                          const size_t *global_work_offset, const size_t *global_work_size,
                          const size_t *local_work_size)
{
        /* "CL_INVALID_GLOBAL_OFFSET if the value specified in global_work_size + the corresponding values
         * in global_work_offset for any dimensions is greater than the maximum value representable by
         * size t on the device"; "CL_INVALID_GLOBAL_WORK_SIZE if any of the values [...] exceed" it. */
        uint64_t max = d->size_max;
        for (cl_uint i = 0; i < work_dim; i++) {
                if (global_work_size[i] > max)
                        return CL_INVALID_GLOBAL_WORK_SIZE;
                if (global_work_offset && global_work_offset[i] > max - global_work_size[i])
                        return CL_INVALID_GLOBAL_OFFSET;
        }
        return local_work_size
                       ? check_local_size(kernel, d, work_dim, global_work_size, local_work_size)
                       : CL_SUCCESS;
}

static size_t group_size(cl_uint dims, const size_t *local)
{
        size_t total = 1;
        for (cl_uint i = 0; i < dims; i++)
                total *= local[i];
        return total;
}

/* Is the work-group larger than CL_KERNEL_WORK_GROUP_SIZE, and did the device take none of that size before? */
static bool is_in_doubt(const struct kernel_device *on, size_t size)
{
        size_t told = on->max_work_group_size; /* 0: not known */
        return told && size > told && size > atomic_load(&on->accepted_group_size);
}

/* A launch that the implementation judges: the client waits for that once for each kernel and size. */
static cl_int launch_in_doubt(const struct enqueue *q, cl_kernel kernel, cl_uint dims,
                              const size_t *offset, const size_t *global, const size_t *local)
{
        struct kernel_device *on = kernel_on(kernel, q->queue->device);
        size_t size = group_size(dims, local);
        bool judged;
        cl_int e = enqueue_kernel_judged(q, kernel, dims, offset, global, local, &judged);
        if (e == CL_SUCCESS && judged && size > atomic_load(&on->accepted_group_size))
                atomic_store(&on->accepted_group_size, size);
        return e;
}

/* Describe a recorded launch, which the application may change. */
static void describe(struct launch *l, cl_uint dims, const size_t *offset, const size_t *global,
                     const size_t *local)
{
        *l = (struct launch){ .dims = dims, .has_local = local != NULL };
        if (offset)
                memcpy(l->offset, offset, dims * sizeof(*offset));
        memcpy(l->global, global, dims * sizeof(*global));
        if (local)
                memcpy(l->local, local, dims * sizeof(*local));
}

cl_int do_launch(const struct enqueue *q, cl_kernel kernel, cl_uint work_dim,
                 const size_t *global_work_offset, const size_t *global_work_size,
                 const size_t *local_work_size)
{
        static const size_t none[3] = { 0 };
        cl_int e = check_launch(q, kernel);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_WORK_DIMENSION if work_dim is not a valid value (i.e. a value between 1 and
         * CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)." */
        cl_device_id d = q->queue->device;
        if (!work_dim || work_dim > 3 || work_dim > d->max_work_item_dimensions)
                return CL_INVALID_WORK_DIMENSION;
        /* "If global_work_size is NULL, or the value in any passed dimension is 0 then the kernel command
         * will trivially succeed after its event dependencies are satisfied"; before 2.1
         * "CL_INVALID_GLOBAL_WORK_SIZE". */
        bool nothing = !global_work_size || any_zero(global_work_size, work_dim);
        if (nothing && device_version(d) < 21)
                return CL_INVALID_GLOBAL_WORK_SIZE;
        if (nothing && !q->record)
                return enqueue_nothing(q);
        const size_t *local = launch_local_size(kernel, d, local_work_size);
        if (!nothing)
                e = check_launch_sizes(kernel, d, work_dim, global_work_offset, global_work_size,
                                       local);
        if (e != CL_SUCCESS)
                return e;
        const size_t *global = global_work_size ? global_work_size : none;
        if (local && !q->record && is_in_doubt(kernel_on(kernel, d), group_size(work_dim, local)))
                return launch_in_doubt(q, kernel, work_dim, global_work_offset, global, local);
        struct launch launch;
        if (q->record) {
                describe(&launch, work_dim, global_work_offset, global, local_work_size);
                q->record->launch = &launch;
                q->record->kernel = kernel;
        }
        return enqueue_kernel(q, kernel, work_dim, global_work_offset, global, local);
}

CL_API_ENTRY cl_int CL_API_CALL
clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
                       const size_t *global_work_offset, const size_t *global_work_size,
                       const size_t *local_work_size, cl_uint num_events_in_wait_list,
                       const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_NDRANGE_KERNEL,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_launch(&q, kernel, work_dim, global_work_offset, global_work_size,
                         local_work_size);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                              cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
        static const size_t one = 1;
        struct enqueue q = { command_queue,   CL_COMMAND_TASK, num_events_in_wait_list,
                             event_wait_list, event,           false };
        cl_int e = check_launch(&q, kernel);
        if (e == CL_SUCCESS)
                e = check_local_size(kernel, command_queue->device, 1, &one, &one);
        if (e != CL_SUCCESS)
                return e;
        return enqueue_kernel(&q, kernel, 1, NULL, &one, &one);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNativeKernel(
        cl_command_queue command_queue, void(CL_CALLBACK *user_func)(void *), void *args,
        size_t cb_args, cl_uint num_mem_objects, const cl_mem *mem_list, const void **args_mem_loc,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if user_func is NULL", and the rules of args. */
        if (!user_func || (!args && (cb_args || num_mem_objects)) || (args && !cb_args) ||
            (num_mem_objects && (!mem_list || !args_mem_loc)) ||
            (!num_mem_objects && (mem_list || args_mem_loc)))
                return CL_INVALID_VALUE;
        /* "CL_INVALID_OPERATION if the device associated with command_queue cannot execute the native
         * kernel": a function of this process can't run on a server. */
        return CL_INVALID_OPERATION;
}

/* ---- markers and barriers ------------------------------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                                            cl_uint num_events_in_wait_list,
                                                            const cl_event *event_wait_list,
                                                            cl_event *event)
{
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        struct enqueue q = {
                command_queue, CL_COMMAND_MARKER, num_events_in_wait_list, event_wait_list, event,
                false
        };
        return enqueue_marker(&q, false);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                                             cl_uint num_events_in_wait_list,
                                                             const cl_event *event_wait_list,
                                                             cl_event *event)
{
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        struct enqueue q = {
                command_queue, CL_COMMAND_BARRIER, num_events_in_wait_list, event_wait_list, event,
                false
        };
        return enqueue_marker(&q, true);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarker(cl_command_queue command_queue, cl_event *event)
{
        if (!queue_is_host(command_queue))
                return CL_INVALID_COMMAND_QUEUE;
        /* "CL_INVALID_VALUE if event is a NULL value." */
        if (!event && !device_accepts(command_queue->device, DEVICE_ACCEPTS_MARKER_NO_EVENT))
                return CL_INVALID_VALUE;
        return clEnqueueMarkerWithWaitList(command_queue, 0, NULL, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue command_queue)
{
        return clEnqueueBarrierWithWaitList(command_queue, 0, NULL, NULL);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue command_queue,
                                                       cl_uint num_events,
                                                       const cl_event *event_list)
{
        if (!queue_is_host(command_queue))
                return CL_INVALID_COMMAND_QUEUE;
        /* "CL_INVALID_VALUE if num_events is zero or event_list is NULL." */
        if (!num_events || !event_list)
                return CL_INVALID_VALUE;
        cl_int e = check_wait_list(command_queue->context, num_events, event_list);
        /* "CL_INVALID_EVENT if event objects specified in event_list are not valid events." */
        if (e != CL_SUCCESS)
                return e == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : e;
        struct enqueue q = {
                command_queue, CL_COMMAND_BARRIER, num_events, event_list, NULL, false
        };
        return enqueue_marker(&q, true);
}

/* ---- migration ------------------------------------------------------------------------------ */

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMigrateMemObjects(
        cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
        cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event)
{
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if num_mem_objects is zero or if mem_objects is NULL"; "[...] if flags is not
         * 0 or is not any of the values described in the table above." */
        if (!num_mem_objects || !mem_objects ||
            flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
                                              CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < num_mem_objects; i++) {
                /* "CL_INVALID_MEM_OBJECT if any of the memory objects in mem_objects is not a valid
                 * memory object"; "CL_INVALID_CONTEXT". */
                if (!handle_is(mem_objects[i], HANDLE_MEM))
                        return CL_INVALID_MEM_OBJECT;
                if (mem_objects[i]->context != command_queue->context)
                        return CL_INVALID_CONTEXT;
        }
        struct enqueue q = { command_queue,
                             CL_COMMAND_MIGRATE_MEM_OBJECTS,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return enqueue_migrate(&q, num_mem_objects, mem_objects, NULL, flags);
}
