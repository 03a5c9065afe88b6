/* The C functions of the registry's kernels that are not in registry.c, and their common helpers.
 * Each one computes the result that registry.def describes; see registry_kernel.run. */
#ifndef SPANCL_BACKEND_BUILTIN_KERNELS_H
#define SPANCL_BACKEND_BUILTIN_KERNELS_H

#include "backend/builtin/registry.h"

/* Does buffer `arg` contain the elements `first` to `first + count - 1`, of `element` bytes
 * each? */
static inline bool kernel_covers(const struct registry_launch *l, unsigned arg, size_t element,
                                 size_t first, size_t count)
{
        const struct registry_value *v = &l->args[arg];
        size_t have = v->data ? v->size / element : 0;
        return first <= have && count <= have - first;
}

static inline size_t kernel_items(const struct registry_launch *l)
{
        return l->global[0] * l->global[1] * l->global[2];
}

/* kernels_image.c */
cl_int kernel_scale_nn_u8(const struct registry_launch *l);
cl_int kernel_scale_bl_u8(const struct registry_launch *l);
cl_int kernel_convert_u8_f32(const struct registry_launch *l);
cl_int kernel_minmaxloc_u8(const struct registry_launch *l);
cl_int kernel_sobel3x3_u8(const struct registry_launch *l);
cl_int kernel_phase_u8(const struct registry_launch *l);
cl_int kernel_magnitude_u16(const struct registry_launch *l);
cl_int kernel_nonmax_u16(const struct registry_launch *l);
cl_int kernel_canny_u8(const struct registry_launch *l);

/* kernels_array.c */
cl_int kernel_ledblink(const struct registry_launch *l);
cl_int kernel_streamout_i32(const struct registry_launch *l);
cl_int kernel_streamin_i32(const struct registry_launch *l);
cl_int kernel_sgemm_f16_scale(const struct registry_launch *l);
cl_int kernel_sgemm_f16(const struct registry_launch *l);
cl_int kernel_maxpool_i8(const struct registry_launch *l);
cl_int kernel_vote_u32(const struct registry_launch *l);
cl_int kernel_vote_u8(const struct registry_launch *l);
cl_int kernel_conv2d_f32(const struct registry_launch *l);

#endif
