/* Telling the application that devices go and come (include/spancl/availability.h). */
#ifndef SPANCL_CORE_AVAILABILITY_H
#define SPANCL_CORE_AVAILABILITY_H

#include "core/object.h"

/* Called when the availability of a device that is shown may have changed. */
void device_changed(cl_device_id d) REQUIRES(client_held);

#endif
