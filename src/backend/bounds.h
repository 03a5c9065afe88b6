/* Bounds of transfers. The engine and both backends check them here. A client's transfer must not
 * reach beyond a buffer, and not every driver checks that: NVIDIA's 580 makes sub-buffers larger
 * than their buffer. */
#ifndef SPANCL_BACKEND_BOUNDS_H
#define SPANCL_BACKEND_BOUNDS_H

#include "backend/backend.h"

/* Do `n` bytes at `offset` lie in a buffer of `size` bytes? False if `n` is 0. */
static inline bool bounds_range(size_t size, size_t offset, size_t n)
{
        return n && offset <= size && n <= size - offset;
}

/* The same for a box; pitches as clEnqueueReadBufferRect wants them, zero not allowed. */
static inline bool bounds_box(size_t size, const struct backend_box *x, const size_t region[3])
{
        if (!region[0] || !region[1] || !region[2] || x->row_pitch < region[0])
                return false;
        size_t slice, last, row, end;
        if (__builtin_mul_overflow(x->row_pitch, region[1], &slice) || x->slice_pitch < slice)
                return false;
        return !__builtin_add_overflow(x->origin[2], region[2] - 1, &last) &&
               !__builtin_mul_overflow(last, x->slice_pitch, &last) &&
               !__builtin_add_overflow(x->origin[1], region[1] - 1, &row) &&
               !__builtin_mul_overflow(row, x->row_pitch, &row) &&
               !__builtin_add_overflow(last, row, &end) &&
               !__builtin_add_overflow(end, x->origin[0], &end) &&
               !__builtin_add_overflow(end, region[0], &end) && end <= size;
}

/* Does transfer `c` stay in its buffers, whose sizes are given, and does it have the pattern that
 * it needs? Not for kernels, markers and barriers. */
bool bounds_fit(const struct backend_command *c, size_t size, size_t source_size);

/* CL_INVALID_VALUE unless bounds_fit is true and `c` has the host memory that it needs. */
cl_int bounds_check(const struct backend_command *c, size_t size, size_t source_size);

/* The same two for a transfer `c` of images. `image` is its c->buffer, `source` its c->source; NULL
 * where that is no image. `buffer_size` is the size of the buffer that is one of the two. */
bool bounds_fit_image(const struct backend_command *c, const struct image_desc *image,
                      const struct image_desc *source, size_t buffer_size);
cl_int bounds_check_image(const struct backend_command *c, const struct image_desc *image,
                          const struct image_desc *source, size_t buffer_size);

static inline bool bounds_is_image_op(enum backend_op op)
{
        return op >= BACKEND_WRITE_IMAGE && op <= BACKEND_FILL_IMAGE;
}

#endif
