#include "proto/image.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>

static size_t channels(uint32_t order)
{
        switch (order) {
        case CL_R:
        case CL_A:
        case CL_INTENSITY:
        case CL_LUMINANCE:
        case CL_DEPTH:
        /* "CL_Rx, CL_RGx and CL_RGBx [...] are similar to CL_R, CL_RG and CL_RGB except that" their
         * border has an alpha of 0. */
        case CL_Rx:
                return 1;
        case CL_RG:
        case CL_RA:
        case CL_RGx:
                return 2;
        case CL_RGB:
        case CL_RGBx:
        case CL_sRGB:
                return 3;
        case CL_RGBA:
        case CL_BGRA:
        case CL_ARGB:
        case CL_ABGR:
        case CL_sRGBA:
        case CL_sBGRA:
        case CL_sRGBx:
                return 4;
        default:
                return 0;
        }
}

size_t image_pixel_size(uint32_t order, uint32_t data_type)
{
        size_t n = channels(order);
        bool rgb = order == CL_RGB || order == CL_RGBx;
        switch (data_type) {
        case CL_SNORM_INT8:
        case CL_UNORM_INT8:
        case CL_SIGNED_INT8:
        case CL_UNSIGNED_INT8:
                return n;
        case CL_SNORM_INT16:
        case CL_UNORM_INT16:
        case CL_SIGNED_INT16:
        case CL_UNSIGNED_INT16:
        case CL_HALF_FLOAT:
                return n * 2;
        case CL_SIGNED_INT32:
        case CL_UNSIGNED_INT32:
        case CL_FLOAT:
                return n * 4;
        /* "CL_UNORM_SHORT_565, CL_UNORM_SHORT_555, CL_UNORM_INT_101010: [...] can only be used with
         * channel order = CL_RGB or CL_RGBx"; the whole pixel is one value. */
        case CL_UNORM_SHORT_565:
        case CL_UNORM_SHORT_555:
                return rgb ? 2 : 0;
        case CL_UNORM_INT_101010:
                return rgb ? 4 : 0;
        case CL_UNORM_INT_101010_2:
                return order == CL_RGBA ? 4 : 0;
        default:
                return 0;
        }
}

bool image_is_valid(const struct image_desc *d)
{
        bool height = false, depth = false, layers = false;
        switch (d->type) {
        case CL_MEM_OBJECT_IMAGE1D:
        case CL_MEM_OBJECT_IMAGE1D_BUFFER:
                break;
        case CL_MEM_OBJECT_IMAGE1D_ARRAY:
                layers = true;
                break;
        case CL_MEM_OBJECT_IMAGE2D:
                height = true;
                break;
        case CL_MEM_OBJECT_IMAGE2D_ARRAY:
                height = layers = true;
                break;
        case CL_MEM_OBJECT_IMAGE3D:
                height = depth = true;
                break;
        default:
                return false;
        }
        return d->width && !d->height == !height && !d->depth == !depth &&
               !d->array_size == !layers && image_pixel_size(d->order, d->data_type);
}

void image_region(const struct image_desc *d, size_t ret_region[3])
{
        bool array1d = d->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        ret_region[0] = d->width;
        ret_region[1] = array1d ? d->array_size : d->height ? d->height : 1;
        ret_region[2] = d->depth ? d->depth : d->array_size && !array1d ? d->array_size : 1;
}

bool image_has(const struct image_desc *d, const size_t origin[3], const size_t region[3])
{
        size_t all[3];
        image_region(d, all);
        for (int i = 0; i < 3; i++)
                if (!region[i] || origin[i] > all[i] || region[i] > all[i] - origin[i])
                        return false;
        return true;
}

size_t image_bytes(const struct image_desc *d, const size_t region[3])
{
        size_t size = image_pixel_size(d->order, d->data_type);
        for (int i = 0; i < 3; i++)
                if (__builtin_mul_overflow(size, region[i], &size))
                        return 0;
        return size;
}

size_t image_span(const struct image_desc *d)
{
        size_t row, rows;
        if (__builtin_mul_overflow(image_pixel_size(d->order, d->data_type), d->width, &row))
                return 0;
        if (!d->row_pitch)
                return row;
        if (__builtin_mul_overflow(d->height - 1, d->row_pitch, &rows) ||
            __builtin_add_overflow(rows, row, &row))
                return 0;
        return row;
}
