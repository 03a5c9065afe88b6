/* cl_spancl_servers: an application adds and removes servers while it runs.
 *
 * The devices of an added server appear in clGetDeviceIDs when the server has answered. A cl_device_id never
 * changes: contexts keep their devices, and other devices stay what they are. Devices of a removed server
 * leave clGetDeviceIDs, unless a context has them; when the server is added again, they are the same
 * cl_device_ids.
 *
 * The functions have no slot in an ICD loader's table: ask for them by name.
 *
 *     spancl_servers_fn add = (spancl_servers_fn)
 *             clGetExtensionFunctionAddressForPlatform(platform, "clAddServersSPANCL");
 *
 * The platform's CL_PLATFORM_EXTENSIONS has CL_SPANCL_SERVERS_EXTENSION_NAME. All functions are thread-safe.
 * The first call of one of them connects to the configured servers, as clGetDeviceIDs does. */
#ifndef SPANCL_SERVERS_H
#define SPANCL_SERVERS_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CL_SPANCL_SERVERS_EXTENSION_NAME "cl_spancl_servers"

/* Add servers. `servers` is a text with the grammar of SPANCL_SERVERS (docs/CONFIG.md), without `in-process`.
 * Does not wait: SpanCL connects in the background, again and again while it has no success. A server that
 * the client has already stays one.
 *
 * CL_INVALID_PLATFORM   platform is not SpanCL's; NULL is the only one.
 * CL_INVALID_VALUE      servers is NULL, or not such a text; nothing was added.
 * CL_OUT_OF_RESOURCES   the client has 256 servers already; those before were added.
 * CL_OUT_OF_HOST_MEMORY */
CL_API_ENTRY cl_int CL_API_CALL clAddServersSPANCL(cl_platform_id platform, const char *servers);

/* Remove servers that clAddServersSPANCL has added, by the same names. Sessions that no context uses end; the
 * others go on until their contexts are released or the server is lost.
 *
 * CL_INVALID_PLATFORM
 * CL_INVALID_VALUE      servers is NULL, not such a text, or names a server that was not added; nothing was
 *                       removed.
 * CL_OUT_OF_HOST_MEMORY */
CL_API_ENTRY cl_int CL_API_CALL clRemoveServersSPANCL(cl_platform_id platform, const char *servers);

/* Get the servers: configured ones, found ones and added ones. The value is a text with one line for each,
 * "NAME\tSTATE\tDEVICES\n", and a NUL. STATE is connecting, connected, disconnected, idle (no context uses it:
 * SPANCL_IDLE), lost or gone (removed, but used by a context); DEVICES is a number. Other fields may follow in
 * later versions. Size and value are as in clGetPlatformInfo.
 *
 * CL_INVALID_PLATFORM
 * CL_INVALID_VALUE      param_value is not NULL and param_value_size is too small.
 * CL_OUT_OF_HOST_MEMORY */
CL_API_ENTRY cl_int CL_API_CALL clGetServersSPANCL(cl_platform_id platform, size_t param_value_size,
                                                   void *param_value, size_t *param_value_size_ret);

/* Queries of clGetDeviceInfo about the server of a device. Devices in this process have none of them:
 * CL_INVALID_VALUE. After a loss the answers are the last known ones.
 *
 * CL_DEVICE_SERVER_NAME_SPANCL         char[]    its name, as clGetServersSPANCL has it
 * CL_DEVICE_SERVER_KEY_SPANCL          char[]    the fingerprint of its key, 64 hexadecimal digits; "": it has no key.
 *                                                Proven by an encrypted connection only.
 * CL_DEVICE_SERVER_ROUND_TRIP_SPANCL   cl_ulong  nanoseconds from a question to its answer: the least of late
 *
 * Devices of servers also answer the queries of PoCL's remote devices:
 *
 * CL_DEVICE_REMOTE_SERVER_IP_POCL      char[]    the server's address in numbers; not for servers that are not
 *                                                reached by IP: CL_INVALID_VALUE
 * CL_DEVICE_REMOTE_SERVER_PORT_POCL    cl_uint   its port, the same
 * CL_DEVICE_REMOTE_TRAFFIC_STATS_POCL  cl_ulong[6]  the time since 1970 in seconds, and the nanoseconds beside them;
 *                                                then bytes of this session: requested and received (both the same
 *                                                here), submitted and sent */
#define CL_DEVICE_SERVER_NAME_SPANCL       0x53500
#define CL_DEVICE_SERVER_KEY_SPANCL        0x53501
#define CL_DEVICE_SERVER_ROUND_TRIP_SPANCL 0x53502

typedef cl_int(CL_API_CALL *spancl_servers_fn)(cl_platform_id platform, const char *servers);
typedef cl_int(CL_API_CALL *spancl_get_servers_fn)(cl_platform_id platform, size_t param_value_size,
                                                   void *param_value, size_t *param_value_size_ret);

#ifdef __cplusplus
}
#endif

#endif
