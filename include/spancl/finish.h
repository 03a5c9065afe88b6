/* cl_spancl_finish: a program chooses for a context whether waits may return before the server has answered
 * (docs/FINISH.md). Without it SPANCL_FINISH decides.
 *
 *     const cl_context_properties properties[] = {
 *             CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
 *             CL_CONTEXT_FINISH_SPANCL, CL_FINISH_OPTIMISTIC_SPANCL, 0
 *     };
 *
 * The platform's CL_PLATFORM_EXTENSIONS has CL_SPANCL_FINISH_EXTENSION_NAME. Another value than those below, or the
 * property twice, is CL_INVALID_PROPERTY. */
#ifndef SPANCL_FINISH_H
#define SPANCL_FINISH_H

#include <CL/cl.h>

#define CL_SPANCL_FINISH_EXTENSION_NAME "cl_spancl_finish"

/* A property of clCreateContext and clCreateContextFromType, which clGetContextInfo returns among the others. */
#define CL_CONTEXT_FINISH_SPANCL 0x53510

#define CL_FINISH_WAIT_SPANCL       0 /* each wait is a real one */
#define CL_FINISH_OPTIMISTIC_SPANCL 1 /* clFinish and clWaitForEvents may return early */

#endif
