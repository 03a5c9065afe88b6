/* The answers about a native kernel. */
#ifndef SPANCL_BACKEND_NATIVE_KERNELQUERY_H
#define SPANCL_BACKEND_NATIVE_KERNELQUERY_H

#include "backend/native/native.h"

/* The platform's clGetKernelSubGroupInfo, also of the extension; NULL: none. */
typedef clGetKernelSubGroupInfoKHR_fn native_sub_group_info_fn;
native_sub_group_info_fn native_sub_group_info(const struct native_domain *d);
cl_int native_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                           const size_t *input, size_t input_count, size_t size, void *ret);

#endif
