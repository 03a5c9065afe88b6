/* Checks that many entry points share, with the clauses that ask for them. */
#ifndef SPANCL_API_CHECK_H
#define SPANCL_API_CHECK_H

#include "core/client.h"
#include "core/command/queue.h"
#include "core/memory/mem.h"

/* "CL_INVALID_EVENT_WAIT_LIST if event_wait_list is NULL and num_events_in_wait_list > 0, or
 * event_wait_list is not NULL and num_events_in_wait_list is 0"; also "if event objects in
 * event_wait_list are not valid events".
 * "CL_INVALID_CONTEXT if [...] the context associated with command_queue and events in
 * event_wait_list are not the same". */
static inline cl_int check_wait_list(cl_context x, cl_uint count, const cl_event *events)
{
        if (!events != !count)
                return CL_INVALID_EVENT_WAIT_LIST;
        for (cl_uint i = 0; i < count; i++)
                if (!handle_is(events[i], HANDLE_EVENT))
                        return CL_INVALID_EVENT_WAIT_LIST;
        for (cl_uint i = 0; i < count; i++)
                if (events[i]->context != x)
                        return CL_INVALID_CONTEXT;
        return CL_SUCCESS;
}

/* "CL_INVALID_COMMAND_QUEUE if command_queue is not a valid host command-queue". Checks the wait
 * list, too. */
static inline cl_int check_enqueue(cl_command_queue q, cl_uint count, const cl_event *events)
{
        if (!queue_is_host(q))
                return CL_INVALID_COMMAND_QUEUE;
        return check_wait_list(q->context, count, events);
}

/* "CL_INVALID_MEM_OBJECT if buffer is not a valid buffer object".
 * "CL_INVALID_CONTEXT if the context associated with command_queue and buffer are not the same".
 * CL_MISALIGNED_SUB_BUFFER_OFFSET: buffer is a sub-buffer, and its offset "is not aligned to
 * CL_DEVICE_MEM_BASE_ADDR_ALIGN value for device associated with queue". */
static inline cl_int check_mem(cl_command_queue q, cl_mem m)
{
        if (!handle_is(m, HANDLE_MEM) || mem_is_image(m) || mem_is_pipe(m))
                return CL_INVALID_MEM_OBJECT;
        if (m->context != q->context)
                return CL_INVALID_CONTEXT;
        if (mem_parent(m) && m->origin % q->device->sub_buffer_align)
                return CL_MISALIGNED_SUB_BUFFER_OFFSET;
        return CL_SUCCESS;
}

/* "CL_INVALID_OPERATION if clEnqueueReadBuffer is called on buffer which has been created with
 * CL_MEM_HOST_WRITE_ONLY or CL_MEM_HOST_NO_ACCESS"; for writes with CL_MEM_HOST_READ_ONLY or
 * CL_MEM_HOST_NO_ACCESS. The same for images. */
static inline cl_int check_host_access(const struct _cl_mem *m, bool reads, bool writes)
{
        cl_mem_flags against = 0;
        if (reads || writes)
                against |= CL_MEM_HOST_NO_ACCESS;
        if (reads)
                against |= CL_MEM_HOST_WRITE_ONLY;
        if (writes)
                against |= CL_MEM_HOST_READ_ONLY;
        return m->flags & against ? CL_INVALID_OPERATION : CL_SUCCESS;
}

/* The purpose of a mapping. By the specification CL_MAP_WRITE_INVALIDATE_REGION excludes the others, and unknown
 * flags are invalid; native implementations accept all that, and give memory for both ways if no flag is set. The
 * contents stay then. */
static inline cl_map_flags map_flags_of(cl_map_flags flags)
{
        flags &= CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
        if (!flags)
                return CL_MAP_READ | CL_MAP_WRITE;
        if (flags & CL_MAP_WRITE_INVALIDATE_REGION && flags != CL_MAP_WRITE_INVALIDATE_REGION)
                return (flags & CL_MAP_READ) | CL_MAP_WRITE;
        return flags;
}

/* "CL_INVALID_VALUE if the region being read or written specified by (offset, size) is out of bounds." */
static inline cl_int check_region(const struct _cl_mem *m, size_t offset, size_t size)
{
        return offset > m->size || size > m->size - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

#endif
