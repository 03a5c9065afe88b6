/* Servers that nothing uses. After a while the client ends their sessions, which costs neither side
 * anything then, and begins new ones (new_session.c) when the application uses their devices. */
#ifndef SPANCL_CORE_IDLE_H
#define SPANCL_CORE_IDLE_H

#include "core/link/server.h"

/* End the sessions that nothing has used for client_params.idle_ns. Called now and then, at the
 * returned time at the latest (UINT64_MAX: none). */
uint64_t servers_end_unused(struct client *c) REQUIRES(client_held);

/* A server may be unused from now on: have the progress thread watch the time. */
void servers_unused(struct client *c) REQUIRES(client_held);

/* The application asks whether the device is available: its session, if it has one, stays a while longer. So a
 * program that polls learns of a loss. */
void device_polled(cl_device_id d) REQUIRES(client_held);

/* Before the application uses the devices: begin the sessions that they lack, and wait for all of them.
 * Devices that can't be reached are not available afterwards. The caller then uses the devices that
 * are present (device_present). Releases the lock while it waits. */
void devices_begin_use(struct client *c, const cl_device_id *devices, cl_uint count)
        REQUIRES(client_held);

/* The receiver's part for an idle server: close its link when the goodbye has come through. True:
 * something came. */
bool server_closing(struct server *s) REQUIRES(client_held);

#endif
