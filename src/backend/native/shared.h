/* Device memory of NVIDIA's GPUs that two processes share: backend_ops.shared (backend/backend.h), which documents
 * arguments, owners, threads and errors. The allocator makes the memory (backend/native/allocation.h), and OpenCL
 * imports it (cl_khr_external_memory_opaque_fd). */
#ifndef SPANCL_BACKEND_NATIVE_SHARED_H
#define SPANCL_BACKEND_NATIVE_SHARED_H

#include "backend/native/native.h"

cl_int native_shared_device(struct backend *b, unsigned domain, uint8_t ret[BACKEND_DEVICE_NAME]);
cl_int native_shared_create(struct backend *b, unsigned domain, size_t size,
                            struct backend_buffer **ret, int *ret_fd);
cl_int native_shared_import(struct backend *b, unsigned domain, int fd, size_t size,
                            struct backend_buffer **ret);

#endif
