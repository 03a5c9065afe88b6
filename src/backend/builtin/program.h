/* Programs of built-in kernels, for backends that have no other programs. They implement the part
 * of backend.h that does not depend on the device. One owner. */
#ifndef SPANCL_BACKEND_BUILTIN_PROGRAM_H
#define SPANCL_BACKEND_BUILTIN_PROGRAM_H

#include "backend/backend.h"
#include "backend/builtin/registry.h"

struct builtin_program {
        bool built_in; /* else of source, which fails to build */
        const struct registry_kernel **kernels;
        size_t kernel_count;
};

/* As program_create: kind and parts. `have`: the kernels to choose from. On error there is nothing to
 * release. */
cl_int builtin_program_init(struct builtin_program *p, unsigned kind, struct bytes parts,
                            const struct registry_kernel *const *have, size_t have_count);
void builtin_program_fini(struct builtin_program *p);

/* As program_build. */
cl_int builtin_program_build(const struct builtin_program *p, const unsigned *devices,
                             size_t device_count, struct buf *info);

/* As kernel_create. */
cl_int builtin_program_find(const struct builtin_program *p, const char *name,
                            const struct registry_kernel **ret);

/* May this be an argument of the kernel? */
cl_int builtin_check_arg(const struct registry_kernel *k, const struct arg *a);

/* Sizes of a launch. */
cl_int builtin_check_launch(const struct backend_command *c);

/* Operations of these names for devices without compiler and images. */
cl_int builtin_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                            const struct image_desc *d, struct backend_buffer *parent,
                            struct backend_buffer **ret);
cl_int builtin_sampler_create(struct backend *b, unsigned domain, const struct sampler_desc *d,
                              struct backend_sampler **ret);
void builtin_sampler_release(struct backend_sampler *s);
cl_int builtin_program_compile(struct backend_program *p, const unsigned *devices,
                               size_t device_count, const char *options, struct buf *info);
cl_int builtin_program_link(struct backend *b, unsigned domain, const unsigned *devices,
                            size_t device_count, struct backend_program *const *inputs,
                            size_t input_count, const char *options, struct buf *info,
                            struct backend_program **ret);
cl_int builtin_program_constant(struct backend_program *p, cl_uint id, struct bytes value);
cl_int builtin_program_binary(struct backend_program *p, unsigned device, struct buf *out);
cl_int builtin_kernel_query(struct backend_kernel *k, unsigned device, uint32_t name,
                            const size_t *input, size_t input_count, size_t size, void *ret);

#endif
