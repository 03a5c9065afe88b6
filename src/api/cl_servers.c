#include <CL/cl.h>
#include <spancl/servers.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "core/client.h"
#include "core/handle.h"
#include "core/link/found_program.h"

static cl_int find_client(cl_platform_id platform, struct client **ret)
{
        if (platform && !handle_is(platform, HANDLE_PLATFORM))
                return CL_INVALID_PLATFORM;
        *ret = platform ? icd_client(platform) : client_get();
        return *ret ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

/* Connect to the configured servers, if that was not done. */
static void connect_configured(struct client *c) REQUIRES(client_held)
{
        const cl_device_id *devices;
        cl_uint count;
        client_devices(c, &devices, &count);
}

static cl_int result(int r)
{
        switch (r) {
        case 0:
                return CL_SUCCESS;
        case SP_E_NOMEM:
                return CL_OUT_OF_HOST_MEMORY;
        case SP_E_LIMIT:
                return CL_OUT_OF_RESOURCES;
        default:
                return CL_INVALID_VALUE;
        }
}

/* Add or remove servers, as `change` does. */
static cl_int change_servers(cl_platform_id platform, const char *servers,
                             int (*change)(struct client *c, const char *servers))
{
        struct client *c;
        cl_int e = servers ? find_client(platform, &c) : CL_INVALID_VALUE;
        if (e != CL_SUCCESS)
                return e;
        client_lock(c);
        connect_configured(c);
        int r = change(c, servers);
        client_unlock(c);
        return result(r);
}

CL_API_ENTRY cl_int CL_API_CALL clAddServersSPANCL(cl_platform_id platform, const char *servers)
{
        return change_servers(platform, servers, found_add);
}

CL_API_ENTRY cl_int CL_API_CALL clRemoveServersSPANCL(cl_platform_id platform, const char *servers)
{
        return change_servers(platform, servers, found_remove);
}

CL_API_ENTRY cl_int CL_API_CALL clGetServersSPANCL(cl_platform_id platform, size_t param_value_size,
                                                   void *param_value, size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        struct buf text = { 0 };
        struct client *c;
        cl_int e = find_client(platform, &c);
        if (e != CL_SUCCESS)
                return e;
        client_lock(c);
        connect_configured(c);
        int r = found_list(c, &text);
        client_unlock(c);
        if (r == 0)
                r = buf_put(&text, "", 1);
        e = r < 0 ? CL_OUT_OF_HOST_MEMORY : reply_bytes(reply, text.data, text.size);
        buf_fini(&text);
        return e;
}
