#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <spancl/availability.h>
#include <spancl/finish.h>
#include <spancl/servers.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/command/khr_command_buffer.h"
#include "core/device.h"
#include "core/platform.h"

/* Extensions that the platform has beside those of its devices. */
static const cl_name_version extensions[] = {
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_icd" },
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_extended_versioning" },
        { COMMAND_BUFFER_VERSION, "cl_khr_command_buffer" },
        { COMMAND_BUFFER_MULTI_DEVICE_VERSION, "cl_khr_command_buffer_multi_device" },
        { MUTABLE_DISPATCH_VERSION, "cl_khr_command_buffer_mutable_dispatch" },
        { CL_MAKE_VERSION(1, 0, 0), CL_SPANCL_DEVICE_AVAILABILITY_EXTENSION_NAME },
        { CL_MAKE_VERSION(1, 0, 0), CL_SPANCL_SERVERS_EXTENSION_NAME },
        { CL_MAKE_VERSION(1, 0, 0), CL_SPANCL_FINISH_EXTENSION_NAME },
};

static int put(struct buf *versions, const char *name, size_t size, cl_version version)
{
        cl_name_version e = { version, "" };
        const cl_name_version *have = (const void *)versions->data;
        for (size_t i = 0; i < versions->size / sizeof(e); i++)
                if (strlen(have[i].name) == size && !memcmp(have[i].name, name, size))
                        return 0;
        if (size >= sizeof(e.name))
                return 0;
        memcpy(e.name, name, size);
        return buf_put(versions, &e, sizeof(e));
}

static cl_version version_of(cl_device_id d, const char *name, size_t size)
{
        struct bytes v = { 0 };
        (void)device_info(d, CL_DEVICE_EXTENSIONS_WITH_VERSION, &v);
        const cl_name_version *e = v.data;
        for (size_t i = 0; i < v.size / sizeof(*e); i++)
                if (strlen(e[i].name) == size && !memcmp(e[i].name, name, size))
                        return e[i].version;
        return CL_MAKE_VERSION(1, 0, 0);
}

/* "Each extension that is supported by all devices associated with this platform must be reported here." */
static int put_common(struct buf *versions, struct client *c) REQUIRES(client_held)
{
        const cl_device_id *all;
        cl_uint count, have;
        client_devices(c, &all, &count);
        const char *name = count ? device_text(all[0], CL_DEVICE_EXTENSIONS) : "";
        int r = 0;
        for (size_t n; *name && !r; name += n + (name[n] == ' ')) {
                n = strcspn(name, " ");
                for (have = 1; have < count; have++)
                        if (!device_list_has(device_text(all[have], CL_DEVICE_EXTENSIONS), ' ',
                                             name, n))
                                break;
                if (n && have >= count)
                        r = put(versions, name, n, version_of(all[0], name, n));
        }
        return r;
}

static cl_int reply_extensions(cl_platform_id platform, bool with_version, struct reply reply)
{
        struct client *c = platform ? icd_client(platform) : client_get();
        struct buf versions = { 0 }, names = { 0 };
        int r = c ? buf_put(&versions, extensions, sizeof(extensions)) : SP_E_NOMEM;
        if (!r) {
                client_lock(c);
                r = put_common(&versions, c);
                client_unlock(c);
        }
        const cl_name_version *e = (const void *)versions.data;
        for (size_t i = 0; i < versions.size / sizeof(*e) && !r; i++) {
                r = i ? buf_put(&names, " ", 1) : 0;
                if (!r)
                        r = buf_put(&names, e[i].name, strlen(e[i].name));
        }
        if (!r)
                r = buf_put(&names, "", 1);
        cl_int status = CL_OUT_OF_HOST_MEMORY;
        if (!r)
                status = with_version ? reply_bytes(reply, versions.data, versions.size)
                                      : reply_bytes(reply, names.data, names.size);
        buf_fini(&versions);
        buf_fini(&names);
        return status;
}

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
                return reply_string(reply, platform_name());
        case CL_PLATFORM_VENDOR:
                return reply_string(reply, platform_vendor());
        case CL_PLATFORM_EXTENSIONS:
                return reply_extensions(platform, false, reply);
        case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
                return reply_extensions(platform, true, reply);
        /* In ns; that of CLOCK_MONOTONIC. */
        case CL_PLATFORM_HOST_TIMER_RESOLUTION:
                return reply_value(reply, cl_ulong, 1);
        /* Command buffers span the devices of one server, and can't be remapped. */
        case CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR:
                return reply_value(reply, cl_bitfield, 0);
        case CL_PLATFORM_ICD_SUFFIX_KHR:
                return reply_string(reply, "SPANCL");
        default:
                return CL_INVALID_VALUE;
        }
}
