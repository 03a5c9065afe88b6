/* Host memory of this backend that native devices use in place. */
#ifndef SPANCL_BACKEND_NATIVE_HOSTMEM_H
#define SPANCL_BACKEND_NATIVE_HOSTMEM_H

#include "backend/native/native.h"

cl_int native_host_memory(struct backend *b, unsigned domain, size_t size, void *given, void **ret);
void native_host_memory_free_all(struct backend *b);

#endif
