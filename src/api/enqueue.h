/* Commands that may be enqueued or recorded: checked as clEnqueue* asks, then handed to core. q->queue is
 * valid, or not checked yet when it is to be enqueued. */
#ifndef SPANCL_API_ENQUEUE_H
#define SPANCL_API_ENQUEUE_H

#include "core/command/enqueue.h"

cl_int do_copy_buffer(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                      size_t dst_offset, size_t size);
cl_int do_copy_buffer_rect(const struct enqueue *q, cl_mem src, cl_mem dst,
                           const size_t *src_origin, const size_t *dst_origin, const size_t *region,
                           size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                           size_t dst_slice_pitch);
cl_int do_fill_buffer(const struct enqueue *q, cl_mem buffer, const void *pattern,
                      size_t pattern_size, size_t offset, size_t size);
cl_int do_copy_image(const struct enqueue *q, cl_mem src, cl_mem dst, const size_t *src_origin,
                     const size_t *dst_origin, const size_t *region);
cl_int do_copy_image_to_buffer(const struct enqueue *q, cl_mem src, cl_mem dst,
                               const size_t *src_origin, const size_t *region, size_t dst_offset);
cl_int do_copy_buffer_to_image(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                               const size_t *dst_origin, const size_t *region);
cl_int do_fill_image(const struct enqueue *q, cl_mem image, const void *fill_color,
                     const size_t *origin, const size_t *region);
/* `host`: one of them may be memory of the application. */
cl_int do_svm_memcpy(const struct enqueue *q, void *dst, const void *src, size_t size, bool host);
cl_int do_svm_mem_fill(const struct enqueue *q, void *svm_ptr, const void *pattern,
                       size_t pattern_size, size_t size);
cl_int do_launch(const struct enqueue *q, cl_kernel kernel, cl_uint work_dim,
                 const size_t *global_work_offset, const size_t *global_work_size,
                 const size_t *local_work_size);

/* Find the allocation of unified shared memory (core/memory/usm.h) that contains the application's
 * side of a transfer. It may be a device allocation: SYCL's copies from accessors pass such
 * pointers; the extension leaves open whether that is valid. CL_SUCCESS and *ret NULL: it is memory
 * of the application. */
cl_int check_device_side(const struct enqueue *q, const void *ptr, size_t size, cl_mem *ret,
                         size_t *ret_offset);

/* clSetKernelArg, clSetKernelArgSVMPointer and clSetKernelExecInfo behind the check of their handle.
 * SP_E_* or cl_int. */
SP_NODISCARD int do_set_arg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                            const void *arg_value);
SP_NODISCARD int do_set_svm_arg(cl_kernel kernel, cl_uint arg_index, const void *arg_value);
SP_NODISCARD int do_set_exec_info(cl_kernel kernel, cl_kernel_exec_info param_name,
                                  size_t param_value_size, const void *param_value);

/* The local size of a launch: as given, or what the kernel requires, or NULL. */
const size_t *launch_local_size(cl_kernel kernel, cl_device_id device,
                                const size_t *local_work_size);

/* The part of do_launch's checks that concerns sizes, of which none is 0. local_work_size may be NULL. */
cl_int check_launch_sizes(cl_kernel kernel, cl_device_id device, cl_uint work_dim,
                          const size_t *global_work_offset, const size_t *global_work_size,
                          const size_t *local_work_size);

/* The part that concerns arguments; `some`: those that are set. */
cl_int check_launch_args(cl_device_id device, cl_kernel kernel, bool some);

#endif
