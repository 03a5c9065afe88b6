/* SP_E_* (base/status.h) as OpenCL's errors. Any thread. */
#ifndef SPANCL_CORE_STATUS_H
#define SPANCL_CORE_STATUS_H

#include <CL/cl.h>

#include "base/status.h"

/* The one place where SP_E_* becomes a cl_int; a lost server is CL_DEVICE_NOT_AVAILABLE. */
cl_int status_to_cl(int status);

#endif
