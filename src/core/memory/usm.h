/* cl_intel_unified_shared_memory 1.2.0: device allocations. They are shared virtual memory that
 * nothing maps (core/memory/svm.h), on every device that has some. Host and shared allocations are
 * not offered, because the application reads and writes them at any time without notice, on the
 * other side of a network. Threading: any thread. */
#ifndef SPANCL_CORE_USM_H
#define SPANCL_CORE_USM_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#define USM_NAME    "cl_intel_unified_shared_memory"
#define USM_VERSION CL_MAKE_VERSION(1, 2, 0)

#endif
