/* Compiled programs: as the operations of backend.h; launches as in launch.h. */
#ifndef SPANCL_BACKEND_ALMAIF_PROGRAM_H
#define SPANCL_BACKEND_ALMAIF_PROGRAM_H

#include "backend/almaif/state.h"

/* Is a program of this kind compiled here? */
bool code_program_is(const struct domain *d, unsigned kind);
cl_int code_program_init(struct backend_program *p, unsigned kind, struct bytes parts);
void code_program_fini(struct backend_program *p);
cl_int code_program_build(struct backend_program *p, const unsigned *devices, size_t device_count,
                          const char *options, struct buf *info);
cl_int code_program_compile(struct backend_program *p, const unsigned *devices, size_t device_count,
                            const char *options, struct buf *info);
cl_int code_program_link(struct domain *d, const unsigned *devices, size_t device_count,
                         struct backend_program *const *inputs, size_t input_count,
                         const char *options, struct buf *info, struct backend_program *ret);
cl_int code_program_binary(struct backend_program *p, struct buf *out);
cl_int code_kernel_new(struct backend_program *p, const char *name, struct code_kernel **ret);
void code_kernel_release(struct code_kernel *k);
cl_int code_kernel_set_arg(struct code_kernel *k, const struct domain *d, const struct arg *a,
                           struct backend_buffer *buffer);
cl_int code_launch_check(const struct unit *u, const struct code_kernel *k,
                         const struct backend_command *c);
cl_int code_launch_prepare(struct command *k, const struct code_kernel *kernel);

#endif
