/* Shared virtual memory of native devices. */
#ifndef SPANCL_BACKEND_NATIVE_SVM_H
#define SPANCL_BACKEND_NATIVE_SVM_H

#include "backend/native/native.h"

/* Find out how the devices of a new domain get shared virtual memory. */
void native_svm_init(struct backend *b, struct native_domain *domain, const cl_device_id *ids,
                     unsigned count);
enum info_svm native_device_svm(const struct backend *b, const struct native_device *d);
cl_int native_svm_create(struct backend *b, unsigned device, uint64_t address, size_t size,
                         bool mapped, struct backend_svm **ret, uint64_t *ret_address);
cl_int native_svm_buffer_create(struct backend *b, unsigned domain, struct backend_svm *svm,
                                cl_mem_flags flags, size_t offset, size_t size,
                                struct backend_buffer **ret);
void native_svm_release(struct backend_svm *svm);
cl_int native_svm_set_arg(struct backend_kernel *k, cl_uint index, uint64_t address);
/* Before a launch: allow the kernel to use all SVM allocations. */
cl_int native_svm_announce(struct backend_kernel *k);
/* Free released allocations; nothing is in flight any more. */
void native_svm_reap(struct backend *b);

#endif
