/* Images. Their pixels travel without gaps. A write of a part makes the whole image current there,
 * so the other pixels are brought first. */
#ifndef SPANCL_CORE_IMAGE_H
#define SPANCL_CORE_IMAGE_H

#include "core/command/enqueue.h"
#include "core/command/transfer.h"
#include "core/memory/mem.h"

/* A region of an image in host memory of these pitches, its first pixel at `at`. */
struct host_box image_box(const struct _cl_mem *m, const size_t region[3], size_t row_pitch,
                          size_t slice_pitch, const void *at);

/* From the image's first pixel to that at `origin`, in memory with the image's own pitches. */
size_t image_offset(const struct _cl_mem *m, const size_t origin[3]);

/* From the first to behind the last byte of the image there. */
size_t image_host_size(const struct _cl_mem *m);

/* Its size in bytes with its pitches, as CL_MEM_SIZE says. */
size_t image_store_size(const struct _cl_mem *m);

/* Does the region cover all bytes of the image, so that nothing of it has to be brought? */
bool image_is_covered(const struct _cl_mem *m, const size_t region[3]);

/* ---- what devices can do -------------------------------------------------------------------- */

bool device_has_images(cl_device_id d);

/* Is the image not larger than what the device takes? */
bool device_takes_image_size(cl_device_id d, const struct image_desc *image);

/* `flags`: as in clGetSupportedImageFormats. */
bool device_takes_image_format(cl_device_id d, cl_mem_object_type type, cl_mem_flags flags,
                               const cl_image_format *format);

/* The formats that any device of the context takes, cl_image_format values. SP_E_NOMEM. */
SP_NODISCARD int context_image_formats(cl_context x, cl_mem_object_type type, cl_mem_flags flags,
                                       struct buf *ret);

/* ---- commands; as those of core/command/enqueue.h --------------------------------------------------- */

/* A region in host memory: image_box. */
cl_int enqueue_write_image(const struct enqueue *q, cl_mem m, const size_t origin[3],
                           const size_t region[3], struct host_box from);
cl_int enqueue_read_image(const struct enqueue *q, cl_mem m, const size_t origin[3],
                          const size_t region[3], struct host_box to);
cl_int enqueue_copy_image(const struct enqueue *q, cl_mem src, cl_mem dst, const size_t from[3],
                          const size_t to[3], const size_t region[3]);
cl_int enqueue_image_to_buffer(const struct enqueue *q, cl_mem src, cl_mem dst,
                               const size_t origin[3], const size_t region[3], size_t offset);
cl_int enqueue_buffer_to_image(const struct enqueue *q, cl_mem src, cl_mem dst, size_t offset,
                               const size_t origin[3], const size_t region[3]);
cl_int enqueue_fill_image(const struct enqueue *q, cl_mem m, struct bytes color,
                          const size_t origin[3], const size_t region[3]);

#endif
