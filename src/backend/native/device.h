/* The devices of the native backend: contexts for them, and sub-devices. */
#ifndef SPANCL_BACKEND_NATIVE_DEVICE_H
#define SPANCL_BACKEND_NATIVE_DEVICE_H

#include "backend/native/native.h"

cl_context native_context(const struct icd_platform *p, const cl_device_id *ids, cl_uint n);
/* Add a context and its devices, which are taken over, behind the others; there is room. */
void native_add_domain(struct backend *b, const struct icd_platform *p, cl_context context,
                       const struct native_device *parent, const cl_device_id *ids, unsigned count);
cl_int native_device_partition(struct backend *b, unsigned device,
                               const cl_device_partition_property *properties, unsigned *ret_first,
                               unsigned *ret_count);
void native_device_release(struct backend *b, unsigned device);

#endif
