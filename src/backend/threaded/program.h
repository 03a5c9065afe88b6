/* Programs and kernels of the threaded backend. The operations are those of backend_ops. */
#ifndef SPANCL_BACKEND_THREADED_PROGRAM_H
#define SPANCL_BACKEND_THREADED_PROGRAM_H

#include "backend/backend.h"

cl_int threaded_program_create(struct backend *b, unsigned domain, unsigned kind,
                               const unsigned *devices, size_t device_count, struct bytes parts,
                               struct backend_program **ret);
cl_int threaded_program_build(struct backend_program *p, const unsigned *devices,
                              size_t device_count, const char *options, struct buf *info);
cl_int threaded_program_compile(struct backend_program *p, const unsigned *devices,
                                size_t device_count, const char *options, struct buf *info);
cl_int threaded_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                             size_t device_count, struct backend_program *const *inputs,
                             size_t input_count, const char *options, struct buf *info,
                             struct backend_program **ret);
cl_int threaded_program_constant(struct backend_program *p, cl_uint id, struct bytes value);
bool threaded_binary_is_dear(struct backend *b, unsigned domain);
cl_program_binary_type threaded_program_type(struct backend_program *p, unsigned device);
cl_int threaded_program_binary(struct backend_program *p, unsigned device, struct buf *out);
cl_int threaded_kernel_create(struct backend_program *p, const char *name,
                              struct backend_kernel **ret);
cl_int threaded_kernel_set_arg(struct backend_kernel *kernel, const struct arg *a,
                               struct backend_buffer *buffer, struct backend_sampler *sampler);
cl_int threaded_kernel_set_queue(struct backend_kernel *k, unsigned index, struct backend_queue *q);
cl_int threaded_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                             const size_t *input, size_t input_count, size_t size, void *ret);

#endif
