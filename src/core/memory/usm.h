/* cl_intel_unified_shared_memory 1.2.0: host, shared and device allocations. They are shared
 * virtual memory (core/memory/svm.h), on every device that has some. The application's side is a
 * view (core/memory/view.h), also of device allocations: libraries that take a CPU device's memory
 * for their own see the right bytes. Threading: any thread. */
#ifndef SPANCL_CORE_USM_H
#define SPANCL_CORE_USM_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#define USM_NAME    "cl_intel_unified_shared_memory"
#define USM_VERSION CL_MAKE_VERSION(1, 2, 0)

/* The bit of an allocation's type in kernel.reaches. */
static inline unsigned char usm_bit(cl_unified_shared_memory_type_intel type)
{
        return type ? (unsigned char)(1u << (type - CL_MEM_TYPE_HOST_INTEL)) : 0;
}

#endif
