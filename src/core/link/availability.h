/* Telling the application that devices go and come (include/spancl/availability.h). */
#ifndef SPANCL_CORE_AVAILABILITY_H
#define SPANCL_CORE_AVAILABILITY_H

#include "core/object.h"

/* Called when the availability of a device that is shown may have changed. */
void device_changed(cl_device_id d) REQUIRES(client_held);

/* Give every device that joins the platform later this callback, and tell it of the device. NULL: not any
 * more. */
void devices_watch_new(struct client *c, spancl_availability_fn fn, void *user_data)
        REQUIRES(client_held);

/* The device has joined the platform, and is shown. */
void device_joined(cl_device_id d) REQUIRES(client_held);

#endif
