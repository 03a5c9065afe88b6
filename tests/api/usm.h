/* The functions of cl_intel_unified_shared_memory, for the programs that test it. */
#ifndef SPANCL_TEST_USM_H
#define SPANCL_TEST_USM_H

#include "api.h"

#define USM_FUNCTIONS(X)                              \
        X(clHostMemAllocINTEL, host_alloc)            \
        X(clSharedMemAllocINTEL, shared_alloc)        \
        X(clDeviceMemAllocINTEL, device_alloc)        \
        X(clMemFreeINTEL, free_now)                   \
        X(clMemBlockingFreeINTEL, free_blocking)      \
        X(clGetMemAllocInfoINTEL, alloc_info)         \
        X(clSetKernelArgMemPointerINTEL, set_pointer) \
        X(clEnqueueMemFillINTEL, mem_fill)            \
        X(clEnqueueMemcpyINTEL, mem_copy)             \
        X(clEnqueueMigrateMemINTEL, migrate)          \
        X(clEnqueueMemAdviseINTEL, advise)

#define USM_POINTER(function, name) static function##_fn name __attribute__((unused));
USM_FUNCTIONS(USM_POINTER)

/* Find all functions; the platform must have the extension. */
static inline void usm_find(const struct api *a)
{
#define USM_FIND(function, name)                                                                \
        name = (function##_fn)clGetExtensionFunctionAddressForPlatform(a->platform, #function); \
        CHECK(name);
        USM_FUNCTIONS(USM_FIND)
}

static inline void run(cl_command_queue q, cl_kernel k, size_t count)
{
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &count, NULL, 0, NULL, NULL));
}

static inline void set_uint(cl_kernel k, cl_uint index, cl_uint value)
{
        OK(clSetKernelArg(k, index, sizeof(value), &value));
}

#endif
