/* The platform: one for each client. */
#ifndef SPANCL_CORE_PLATFORM_H
#define SPANCL_CORE_PLATFORM_H

#include "base/status.h"
#include "core/object.h"

/* The platform of a client. SP_E_NOMEM. platform_free takes NULL. */
SP_NODISCARD int platform_new(struct client *c, cl_platform_id *ret);
void platform_free(cl_platform_id p);

/* CL_PLATFORM_NAME and CL_PLATFORM_VENDOR, as SPANCL_PLATFORM_NAME and SPANCL_PLATFORM_VENDOR say. Borrowed from the
 * environment. Any thread. */
const char *platform_name(void);
const char *platform_vendor(void);

#endif
