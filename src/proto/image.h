/* The layout of images: sizes of pixels, the coordinates of each image type, and the bytes of a
 * region without gaps. Clients, engines and backends use the same rules, because only such packed
 * regions travel. OpenCL 3.0, 5.3.1. No state. */
#ifndef SPANCL_PROTO_IMAGE_H
#define SPANCL_PROTO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in cl_image_format and cl_image_desc; sizes that the type does not have are 0. */
struct image_desc {
        uint32_t type, order, data_type;
        size_t width, height, depth, array_size;
        size_t row_pitch; /* of a 2D image in a buffer; else 0 */
};

/* A 2D image may have the pixels of another image, which may have those of a third one: no more of them in a row. */
enum { IMAGE_PARENTS_MAX = 16 };

struct sampler_desc {
        bool normalized;
        uint32_t addressing, filter; /* cl_addressing_mode, cl_filter_mode */
};

/* Bytes of a pixel; 0: no such combination of order and data type. */
size_t image_pixel_size(uint32_t order, uint32_t data_type);

/* Is it an image type, with the sizes that it needs and no others? */
bool image_is_valid(const struct image_desc *d);

/* The image's size as a region of clEnqueueReadImage: layers of a 1D array are in [1], of a 2D array in
 * [2]; what the type does not have is 1. */
void image_region(const struct image_desc *d, size_t ret_region[3]);

/* Does the region lie in the image, and is it not empty? */
bool image_has(const struct image_desc *d, const size_t origin[3], const size_t region[3]);

/* Bytes of a region without gaps; 0: too many to count. */
size_t image_bytes(const struct image_desc *d, const size_t region[3]);

/* Bytes of the buffer that an image in it covers; 0: too many to count. */
size_t image_span(const struct image_desc *d);

#endif
