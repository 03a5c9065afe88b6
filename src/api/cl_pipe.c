#include <CL/cl.h>

#include "api/mem_flags.h"
#include "api/reply.h"
#include "core/context.h"
#include "core/device.h"
#include "core/memory/mem.h"

/* "CL_INVALID_OPERATION if no devices in context support pipes." "CL_INVALID_PIPE_SIZE if pipe_packet_size
 * is 0 or the pipe_packet_size exceeds CL_DEVICE_PIPE_MAX_PACKET_SIZE value [...] for all devices in
 * context or if pipe_max_packets is 0." */
static cl_int check_size(cl_context x, cl_uint packet_size, cl_uint packets)
{
        bool any = false, fits = false;
        for (cl_uint i = 0; i < x->device_count; i++) {
                cl_device_id d = x->devices[i];
                if (!device_number(d, CL_DEVICE_MAX_PIPE_ARGS))
                        continue;
                any = true;
                fits |= packet_size <= device_number(d, CL_DEVICE_PIPE_MAX_PACKET_SIZE);
        }
        if (!any)
                return CL_INVALID_OPERATION;
        return packet_size && packets && fits ? CL_SUCCESS : CL_INVALID_PIPE_SIZE;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags,
                                             cl_uint pipe_packet_size, cl_uint pipe_max_packets,
                                             const cl_pipe_properties *properties,
                                             cl_int *errcode_ret)
{
        const cl_mem_flags usual = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
        cl_mem m = NULL;
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        cl_int e = check_size(context, pipe_packet_size, pipe_max_packets);
        /* "CL_INVALID_VALUE if values specified in flags are not as defined above": only those of `usual`,
         * but native implementations also take one way of access. There are no properties. */
        if (e != CL_INVALID_OPERATION &&
            (flags & ~(cl_mem_flags)(MEM_ACCESS | CL_MEM_HOST_NO_ACCESS) ||
             !mem_flags_are_valid(flags) || properties))
                e = CL_INVALID_VALUE;
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        client_lock(context->client);
        /* "If the value specified for flags is 0, the default is used which is CL_MEM_READ_WRITE |
         * CL_MEM_HOST_NO_ACCESS." */
        int r = mem_new_pipe(context, flags ? flags : usual, pipe_packet_size, pipe_max_packets,
                             &m);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return m;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe, cl_pipe_info param_name,
                                              size_t param_value_size, void *param_value,
                                              size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        /* "CL_INVALID_MEM_OBJECT if pipe is not a valid pipe object." */
        if (!handle_is(pipe, HANDLE_MEM) || !mem_is_pipe(pipe))
                return CL_INVALID_MEM_OBJECT;
        switch (param_name) {
        case CL_PIPE_PACKET_SIZE:
                return reply_value(reply, cl_uint, pipe->pipe.packet_size);
        case CL_PIPE_MAX_PACKETS:
                return reply_value(reply, cl_uint, pipe->pipe.packets);
        /* As given to clCreatePipe, which takes none. */
        case CL_PIPE_PROPERTIES:
                return reply_bytes(reply, NULL, 0);
        default:
                return CL_INVALID_VALUE;
        }
}
