/* Queries about the server of a device, which the client answers itself: those of PoCL's remote devices and those
 * of cl_spancl_servers. */
#ifndef SPANCL_CORE_REMOTE_INFO_H
#define SPANCL_CORE_REMOTE_INFO_H

#include "core/link/server.h"

/* PoCL's names (its cl_ext_pocl.h). */
enum {
        REMOTE_TRAFFIC_STATS_POCL = 0x4501, /* cl_ulong[6] */
        REMOTE_SERVER_IP_POCL = 0x4503,     /* char[] */
        REMOTE_SERVER_PORT_POCL = 0x4504,   /* cl_uint */
};

/* Is it one of these queries? No lock needed. */
bool remote_info_has(cl_device_info name);

/* Append the answer to `out`. `wall_ns`: the time since 1970. SP_E_NOENT: the device's server has none, or is in
 * this process; SP_E_NOMEM. */
SP_NODISCARD int remote_info_put(cl_device_id d, cl_device_info name, uint64_t wall_ns,
                                 struct buf *out) REQUIRES(client_held);

#endif
