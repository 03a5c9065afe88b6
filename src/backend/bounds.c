#include "backend/bounds.h"

enum { PATTERN_MAX = 128 };

static bool pattern_fits(const struct backend_command *c)
{
        size_t n = c->pattern_size;
        return c->pattern && n && n <= PATTERN_MAX && !(n & (n - 1)) && c->size % n == 0 &&
               c->offset_bytes % n == 0;
}

/* Has it the host memory that it needs? */
static bool has_host(const struct backend_command *c)
{
        switch (c->op) {
        case BACKEND_WRITE:
        case BACKEND_READ:
        case BACKEND_WRITE_RECT:
        case BACKEND_READ_RECT:
        case BACKEND_WRITE_IMAGE:
        case BACKEND_READ_IMAGE:
                return c->host;
        default:
                return true;
        }
}

bool bounds_fit(const struct backend_command *c, size_t size, size_t source_size)
{
        switch (c->op) {
        case BACKEND_WRITE:
        case BACKEND_READ:
                return bounds_range(size, c->offset_bytes, c->size);
        case BACKEND_FILL:
                return pattern_fits(c) && bounds_range(size, c->offset_bytes, c->size);
        case BACKEND_COPY:
                return bounds_range(size, c->offset_bytes, c->size) &&
                       bounds_range(source_size, c->source_offset, c->size);
        case BACKEND_WRITE_RECT:
        case BACKEND_READ_RECT:
                return bounds_box(size, &c->box, c->region);
        case BACKEND_COPY_RECT:
                return bounds_box(size, &c->box, c->region) &&
                       bounds_box(source_size, &c->source_box, c->region);
        default:
                return false;
        }
}

cl_int bounds_check(const struct backend_command *c, size_t size, size_t source_size)
{
        return has_host(c) && bounds_fit(c, size, source_size) ? CL_SUCCESS : CL_INVALID_VALUE;
}

bool bounds_fit_image(const struct backend_command *c, const struct image_desc *image,
                      const struct image_desc *source, size_t buffer_size)
{
        size_t bytes = source ? image_bytes(source, c->region) : image_bytes(image, c->region);
        switch (c->op) {
        case BACKEND_WRITE_IMAGE:
        case BACKEND_READ_IMAGE:
                return image_has(image, c->box.origin, c->region);
        case BACKEND_FILL_IMAGE:
                return c->pattern && c->pattern_size == 16 &&
                       image_has(image, c->box.origin, c->region);
        case BACKEND_COPY_IMAGE:
                return image_has(image, c->box.origin, c->region) &&
                       image_has(source, c->source_box.origin, c->region);
        case BACKEND_IMAGE_TO_BUFFER:
                return image_has(source, c->source_box.origin, c->region) &&
                       bounds_range(buffer_size, c->offset_bytes, bytes);
        case BACKEND_BUFFER_TO_IMAGE:
                return image_has(image, c->box.origin, c->region) &&
                       bounds_range(buffer_size, c->source_offset, bytes);
        default:
                return false;
        }
}

cl_int bounds_check_image(const struct backend_command *c, const struct image_desc *image,
                          const struct image_desc *source, size_t buffer_size)
{
        return has_host(c) && bounds_fit_image(c, image, source, buffer_size) ? CL_SUCCESS
                                                                              : CL_INVALID_VALUE;
}
