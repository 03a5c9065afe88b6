/* Native programs: their builds and binaries. */
#ifndef SPANCL_BACKEND_NATIVE_PROGRAM_H
#define SPANCL_BACKEND_NATIVE_PROGRAM_H

#include "backend/native/native.h"

cl_int native_program_create(struct backend *b, unsigned domain, unsigned kind,
                             const unsigned *devices, size_t device_count, struct bytes parts,
                             struct backend_program **ret);
cl_int native_program_build(struct backend_program *p, const unsigned *devices, size_t device_count,
                            const char *options, struct buf *info);
cl_int native_program_compile(struct backend_program *p, const unsigned *devices,
                              size_t device_count, const char *options, struct buf *info);
cl_int native_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                           size_t device_count, struct backend_program *const *inputs,
                           size_t input_count, const char *options, struct buf *info,
                           struct backend_program **ret);
cl_int native_program_constant(struct backend_program *p, cl_uint id, struct bytes value);
bool native_binary_is_dear(struct backend *b, unsigned domain);
cl_program_binary_type native_program_type(struct backend_program *p, unsigned device);
cl_int native_program_binary(struct backend_program *p, unsigned device, struct buf *out);
void native_program_release(struct backend_program *p);

#endif
