#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/khr_command_buffer.h"

/* What the platform offers beyond its devices. */
static const cl_name_version extensions[] = {
        { CL_MAKE_VERSION(2, 0, 0), "cl_khr_icd" },
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_extended_versioning" },
        { COMMAND_BUFFER_VERSION, "cl_khr_command_buffer" },
        { COMMAND_BUFFER_MULTI_DEVICE_VERSION, "cl_khr_command_buffer_multi_device" },
        { MUTABLE_DISPATCH_VERSION, "cl_khr_command_buffer_mutable_dispatch" },
};
#define EXTENSIONS                                                     \
        "cl_khr_icd cl_khr_extended_versioning cl_khr_command_buffer " \
        "cl_khr_command_buffer_multi_device "                          \
        "cl_khr_command_buffer_mutable_dispatch"

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms,
                                                 cl_uint *num_platforms)
{
        return clIcdGetPlatformIDsKHR(num_entries, platforms, num_platforms);
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                  cl_platform_info param_name,
                                                  size_t param_value_size, void *param_value,
                                                  size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };

        /* CL_INVALID_PLATFORM if platform is not valid. NULL is left to the implementation: this
         * library has one platform, so NULL means that one. */
        if (platform && !handle_is(platform, HANDLE_PLATFORM))
                return CL_INVALID_PLATFORM;

        switch (param_name) {
        case CL_PLATFORM_PROFILE:
                return reply_string(reply, "FULL_PROFILE");
        case CL_PLATFORM_VERSION:
                return reply_string(reply, "OpenCL 3.0 SpanCL " SPANCL_VERSION);
        case CL_PLATFORM_NUMERIC_VERSION:
                return reply_value(reply, cl_version, CL_MAKE_VERSION(3, 0, 0));
        case CL_PLATFORM_NAME:
        case CL_PLATFORM_VENDOR:
                return reply_string(reply, "SpanCL");
        case CL_PLATFORM_EXTENSIONS:
                return reply_string(reply, EXTENSIONS);
        case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
                return reply_bytes(reply, extensions, sizeof(extensions));
        /* In ns; that of CLOCK_MONOTONIC. */
        case CL_PLATFORM_HOST_TIMER_RESOLUTION:
                return reply_value(reply, cl_ulong, 1);
        /* Command buffers span the devices of one domain, and can't be remapped. */
        case CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR:
                return reply_value(reply, cl_bitfield, 0);
        case CL_PLATFORM_ICD_SUFFIX_KHR:
                return reply_string(reply, "SPANCL");
        default:
                return CL_INVALID_VALUE;
        }
}
