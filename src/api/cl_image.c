/* Images: making and asking. */
#include <CL/cl.h>

#include "api/mem_flags.h"
#include "api/reply.h"
#include "core/device.h"
#include "core/memory/image.h"

/* ---- what a context can do ------------------------------------------------------------------ */

static bool any_has_images(const struct _cl_context *x)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (device_has_images(x->devices[i]))
                        return true;
        return false;
}

static bool device_has_2d_in_buffer(cl_device_id d)
{
        static const char name[] = "cl_khr_image2d_from_buffer";
        return device_list_has(device_text(d, CL_DEVICE_EXTENSIONS), ' ', name, sizeof(name) - 1);
}

static bool any_has_2d_in_buffer(const struct _cl_context *x)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (device_has_2d_in_buffer(x->devices[i]))
                        return true;
        return false;
}

/* In pixels: the largest of the devices that have images, of the pitch or of the base address. */
static size_t image_alignment(const struct _cl_context *x, cl_device_info name)
{
        cl_uint most = 1;
        for (cl_uint i = 0; i < x->device_count; i++) {
                struct bytes v;
                cl_uint value = 0;
                if (device_info(x->devices[i], name, &v) && v.size == 4)
                        value = bytes_get_u32(v.data);
                if (value > most)
                        most = value;
        }
        return most;
}

/* "CL_INVALID_IMAGE_SIZE if image dimensions specified in image_desc exceed the maximum image
 * dimensions described in the Device Queries table for all devices in context".
 * "CL_IMAGE_FORMAT_NOT_SUPPORTED if there are no devices in context that support image_format". */
static cl_int check_devices(const struct _cl_context *x, const struct image_params *p)
{
        cl_image_format format = { p->desc.order, p->desc.data_type };
        bool size_fits = false, format_fits = false, memory_fits = false;
        size_t all[3];
        image_region(&p->desc, all);
        size_t bytes = image_bytes(&p->desc, all);
        for (cl_uint i = 0; i < x->device_count; i++) {
                cl_device_id d = x->devices[i];
                size_fits |= device_takes_image_size(d, &p->desc);
                format_fits |= device_takes_image_format(d, p->desc.type, p->flags, &format);
                memory_fits |= bytes && bytes <= d->max_mem_alloc_size;
        }
        if (!size_fits)
                return CL_INVALID_IMAGE_SIZE;
        if (!format_fits)
                return CL_IMAGE_FORMAT_NOT_SUPPORTED;
        return memory_fits ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

/* ---- descriptors ---------------------------------------------------------------------------- */

/* Take the sizes that the descriptor's type has, and ignore the others. */
static cl_int take_sizes(const cl_image_desc *desc, struct image_desc *ret)
{
        ret->type = desc->image_type;
        ret->width = desc->image_width;
        switch (desc->image_type) {
        case CL_MEM_OBJECT_IMAGE1D:
        case CL_MEM_OBJECT_IMAGE1D_BUFFER:
                break;
        case CL_MEM_OBJECT_IMAGE1D_ARRAY:
                ret->array_size = desc->image_array_size;
                break;
        case CL_MEM_OBJECT_IMAGE2D:
                ret->height = desc->image_height;
                break;
        case CL_MEM_OBJECT_IMAGE2D_ARRAY:
                ret->height = desc->image_height;
                ret->array_size = desc->image_array_size;
                break;
        case CL_MEM_OBJECT_IMAGE3D:
                ret->height = desc->image_height;
                ret->depth = desc->image_depth;
                break;
        default:
                return CL_INVALID_IMAGE_DESCRIPTOR;
        }
        /* "CL_INVALID_IMAGE_DESCRIPTOR if values specified in image_desc are not valid." */
        if (!image_is_valid(ret))
                return CL_INVALID_IMAGE_DESCRIPTOR;
        /* More than any device has, and what is computed with them does not overflow. */
        bool fits = ret->width <= UINT32_MAX && ret->height <= UINT32_MAX &&
                    ret->depth <= UINT32_MAX && ret->array_size <= UINT32_MAX;
        return fits ? CL_SUCCESS : CL_INVALID_IMAGE_SIZE;
}

/* The pitches of host memory.
 * "image_row_pitch [...] must be 0 if host_ptr is NULL. Can be either 0 or >= image_width x size of
 * element in bytes if host_ptr is not NULL. [...] If image_row_pitch is not 0, it must be a
 * multiple of the image element size in bytes".
 * "image_slice_pitch [...] must be 0 if host_ptr is NULL". Otherwise it "can be either 0 or >=
 * image_row_pitch x image_height for a 2D image array or 3D image". For a 1D image array it "can be
 * either 0 or >= image_row_pitch". "If image_slice_pitch is not 0, it must be a multiple of the
 * image_row_pitch". */
static cl_int take_pitches(const struct _cl_context *x, const cl_image_desc *desc, bool pitched,
                           struct image_params *p)
{
        size_t pixel = image_pixel_size(p->desc.order, p->desc.data_type);
        size_t row = p->desc.width * pixel, slice;
        bool slices = p->desc.depth || p->desc.array_size;
        size_t wanted = desc->image_row_pitch;
        if (wanted && !pitched && context_accepts(x, DEVICE_ACCEPTS_IMAGE_PITCH_UNUSED))
                wanted = 0;
        if ((wanted || (desc->image_slice_pitch && slices)) && !pitched)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        /* Native implementations ignore the pitch of a single row, and of slices that the type does not
         * have. */
        bool one_row = !p->desc.height && !slices;
        bool fits = wanted >= row &&
                    (!(wanted % pixel) || context_accepts(x, DEVICE_ACCEPTS_IMAGE_ROW_ODD));
        if (wanted && !fits && !one_row)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        p->row_pitch = fits ? wanted : row;
        if (!slices)
                return CL_SUCCESS;
        if (__builtin_mul_overflow(p->row_pitch, p->desc.height ? p->desc.height : 1, &slice))
                return CL_INVALID_IMAGE_SIZE;
        if (desc->image_slice_pitch && desc->image_slice_pitch < slice)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        if (desc->image_slice_pitch % p->row_pitch &&
            !context_accepts(x, DEVICE_ACCEPTS_IMAGE_SLICE_ODD))
                return CL_INVALID_IMAGE_DESCRIPTOR;
        p->slice_pitch = desc->image_slice_pitch ? desc->image_slice_pitch : slice;
        return CL_SUCCESS;
}

/* An image in a buffer. */
static cl_int take_buffer(const struct _cl_context *x, const cl_image_desc *desc,
                          struct image_params *p)
{
        bool is_2d = p->desc.type == CL_MEM_OBJECT_IMAGE2D;
        /* "CL_INVALID_OPERATION" if no device in context supports 2D images created from buffers. */
        if (is_2d && !any_has_2d_in_buffer(x))
                return CL_INVALID_OPERATION;
        /* The letter wants no pitch for a 1D image buffer; drivers take one, and the conformance tests give
         * one. It has a single row, so that the pitch means nothing. */
        cl_int e = take_pitches(x, desc, true, p);
        if (e != CL_SUCCESS)
                return e;
        size_t pixel = image_pixel_size(p->desc.order, p->desc.data_type);
        p->desc.row_pitch = is_2d ? p->row_pitch : 0;
        /* CL_INVALID_IMAGE_FORMAT_DESCRIPTOR: for a 2D image from a buffer, "the row pitch and base
         * address alignment does not follow the rules". The rule for the address: "the host_ptr
         * specified to clCreateBuffer [...] must be aligned to the maximum of the
         * CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT value". */
        size_t row = image_alignment(x, CL_DEVICE_IMAGE_PITCH_ALIGNMENT) * pixel;
        size_t base = image_alignment(x, CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT) * pixel;
        if (is_2d && (p->row_pitch % row || (uintptr_t)p->parent->host_ptr % base))
                return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
        /* "For a 1D image buffer created from a buffer object, the image_width times size of element in
         * bytes must be <= size of the buffer object"; "for a 2D image created from a buffer object, the
         * image_row_pitch times image_height". */
        size_t bytes = image_span(&p->desc);
        if (is_2d && __builtin_mul_overflow(p->row_pitch, p->desc.height, &bytes))
                bytes = 0;
        return bytes && bytes <= p->parent->size ? CL_SUCCESS : CL_INVALID_IMAGE_DESCRIPTOR;
}

/* "[...] the image_channel_order may be changed": CL_sRGB for CL_RGB and the like. */
static bool orders_fit(cl_channel_order a, cl_channel_order b)
{
        static const cl_channel_order pairs[][2] = {
                { CL_sBGRA, CL_BGRA }, { CL_sRGBA, CL_RGBA }, { CL_sRGB, CL_RGB },
                { CL_sRGBx, CL_RGBx }, { CL_DEPTH, CL_R },
        };
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
                if ((a == pairs[i][0] && b == pairs[i][1]) ||
                    (a == pairs[i][1] && b == pairs[i][0]))
                        return true;
        return a == b;
}

/* A 2D image with the pixels of another one. */
static cl_int take_image(const struct _cl_context *x, const cl_image_desc *desc,
                         struct image_params *p)
{
        const struct _cl_mem *of = p->parent;
        if (!any_has_2d_in_buffer(x))
                return CL_INVALID_OPERATION;
        if (p->desc.type != CL_MEM_OBJECT_IMAGE2D || of->image.type != CL_MEM_OBJECT_IMAGE2D ||
            of->image.width != p->desc.width || of->image.height != p->desc.height ||
            desc->image_slice_pitch ||
            (desc->image_row_pitch && desc->image_row_pitch != of->row_pitch))
                return CL_INVALID_IMAGE_DESCRIPTOR;
        /* "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if a 2D image is created from a 2D image object and the
         * rules described above are not followed." */
        if (of->image.data_type != p->desc.data_type || !orders_fit(of->image.order, p->desc.order))
                return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
        unsigned parents = 0;
        for (const struct _cl_mem *m = of; m && mem_is_image(m); m = m->parent)
                parents++;
        if (parents > IMAGE_PARENTS_MAX)
                return CL_OUT_OF_RESOURCES;
        p->row_pitch = of->row_pitch;
        return CL_SUCCESS;
}

static cl_int take_parent(cl_context x, const cl_image_desc *desc, struct image_params *p)
{
        cl_mem of = desc->mem_object;
        bool may = p->desc.type == CL_MEM_OBJECT_IMAGE1D_BUFFER ||
                   p->desc.type == CL_MEM_OBJECT_IMAGE2D;
        if (!may || !handle_is(of, HANDLE_MEM) || of->context != x)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        /* "CL_INVALID_VALUE if an image is created from a buffer or image [...]" and the flags are in
         * conflict, as for clCreateSubBuffer. */
        if (!mem_flags_inherit(of->flags, p->flags, &p->flags)) {
                if (!context_accepts(x, DEVICE_ACCEPTS_IMAGE_PARENT_FLAGS))
                        return CL_INVALID_VALUE;
                /* Its own flags, but the host's memory is the parent's. */
                p->flags = (p->flags & ~(cl_mem_flags)MEM_HOST_PTR) | (of->flags & MEM_HOST_PTR);
                if (!(p->flags & MEM_ACCESS))
                        p->flags |= of->flags & MEM_ACCESS;
        }
        p->host_ptr = NULL; /* native implementations ignore it here */
        p->parent = of;
        return mem_is_image(of) ? take_image(x, desc, p) : take_buffer(x, desc, p);
}

static cl_int take_own(const struct _cl_context *x, const cl_image_desc *desc,
                       struct image_params *p)
{
        if (p->desc.type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        /* "CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR are
         * set in flags or if host_ptr is not NULL but" they are not. */
        bool needs = p->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
        if (!needs && context_accepts(x, DEVICE_ACCEPTS_IMAGE_HOST_UNUSED))
                p->host_ptr = NULL;
        if (needs != (p->host_ptr != NULL))
                return CL_INVALID_HOST_PTR;
        if (!(p->flags & MEM_ACCESS))
                p->flags |= CL_MEM_READ_WRITE;
        return take_pitches(x, desc, needs, p);
}

static cl_int take_desc(cl_context x, const cl_image_format *format, const cl_image_desc *desc,
                        struct image_params *p)
{
        if (!mem_flags_are_valid(p->flags))
                return CL_INVALID_VALUE;
        /* "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if values specified in image_format are not valid or if
         * image_format is NULL." */
        if (!format ||
            !image_pixel_size(format->image_channel_order, format->image_channel_data_type))
                return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
        /* "CL_INVALID_IMAGE_DESCRIPTOR if values specified in image_desc are not valid or if image_desc
         * is NULL"; "num_mip_levels and num_samples must be 0." */
        if (!desc || desc->num_mip_levels || desc->num_samples)
                return CL_INVALID_IMAGE_DESCRIPTOR;
        p->desc.order = format->image_channel_order;
        p->desc.data_type = format->image_channel_data_type;
        cl_int e = take_sizes(desc, &p->desc);
        if (e == CL_SUCCESS)
                e = desc->mem_object ? take_parent(x, desc, p) : take_own(x, desc, p);
        return e == CL_SUCCESS ? check_devices(x, p) : e;
}

static cl_mem create(cl_context context, const cl_image_format *format, const cl_image_desc *desc,
                     struct image_params params, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* "CL_INVALID_OPERATION if there are no devices in context that support images." */
        if (!any_has_images(context))
                return reply_error(errcode_ret, CL_INVALID_OPERATION);
        cl_int e = take_desc(context, format, desc, &params);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        cl_mem m = NULL;
        client_lock(context->client);
        int r = mem_new_image(context, &params, &m);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return m;
}

/* ---- entry points --------------------------------------------------------------------------- */

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags,
                                              const cl_image_format *image_format,
                                              const cl_image_desc *image_desc, void *host_ptr,
                                              cl_int *errcode_ret)
{
        return create(context, image_format, image_desc,
                      (struct image_params){ .flags = flags, .host_ptr = host_ptr }, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context,
                                                            const cl_mem_properties *properties,
                                                            cl_mem_flags flags,
                                                            const cl_image_format *image_format,
                                                            const cl_image_desc *image_desc,
                                                            void *host_ptr, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* "CL_INVALID_PROPERTY if a property name in properties is not a supported property name": none
         * is defined. */
        if (properties && properties[0])
                return reply_error(errcode_ret, CL_INVALID_PROPERTY);
        return create(context, image_format, image_desc,
                      (struct image_params){ .flags = flags,
                                             .host_ptr = host_ptr,
                                             .properties = properties,
                                             .property_count = properties ? 1 : 0 },
                      errcode_ret);
}

/* A fault of the descriptor was one of the image's size then: "CL_INVALID_IMAGE_SIZE if image_width or
 * image_height are 0 [...] or if values specified in image_row_pitch do not follow rules". */
static cl_mem create_legacy(cl_context context, const cl_image_format *format,
                            const cl_image_desc *desc, struct image_params params,
                            cl_int *errcode_ret)
{
        cl_int error = CL_SUCCESS;
        cl_mem m = create(context, format, desc, params, &error);
        if (error == CL_INVALID_IMAGE_DESCRIPTOR)
                error = CL_INVALID_IMAGE_SIZE;
        if (errcode_ret)
                *errcode_ret = error;
        return m;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format,
                                                size_t image_width, size_t image_height,
                                                size_t image_row_pitch, void *host_ptr,
                                                cl_int *errcode_ret)
{
        const cl_image_desc desc = {
                .image_type = CL_MEM_OBJECT_IMAGE2D,
                .image_width = image_width,
                .image_height = image_height,
                .image_row_pitch = image_row_pitch,
        };
        return create_legacy(context, image_format, &desc,
                             (struct image_params){ .flags = flags, .host_ptr = host_ptr },
                             errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format,
                                                size_t image_width, size_t image_height,
                                                size_t image_depth, size_t image_row_pitch,
                                                size_t image_slice_pitch, void *host_ptr,
                                                cl_int *errcode_ret)
{
        const cl_image_desc desc = {
                .image_type = CL_MEM_OBJECT_IMAGE3D,
                .image_width = image_width,
                .image_height = image_height,
                .image_depth = image_depth,
                .image_row_pitch = image_row_pitch,
                .image_slice_pitch = image_slice_pitch,
        };
        return create_legacy(context, image_format, &desc,
                             (struct image_params){ .flags = flags, .host_ptr = host_ptr },
                             errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
                                                           cl_mem_object_type image_type,
                                                           cl_uint num_entries,
                                                           cl_image_format *image_formats,
                                                           cl_uint *num_image_formats)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return CL_INVALID_CONTEXT;
        /* "CL_INVALID_VALUE if flags or image_type are not valid, or if num_entries is 0 and
         * image_formats is not NULL." Native implementations do not look at the host's pointers. */
        const cl_mem_flags other = CL_MEM_KERNEL_READ_AND_WRITE | MEM_HOST_PTR;
        if (image_type < CL_MEM_OBJECT_IMAGE2D || image_type > CL_MEM_OBJECT_IMAGE1D_BUFFER ||
            !mem_flags_are_valid(flags & ~other) || (!num_entries && image_formats))
                return CL_INVALID_VALUE;
        /* "clGetSupportedImageFormats returns a union of image formats supported by all devices in the
         * context." */
        struct buf list = { 0 };
        int r = context_image_formats(context, image_type, flags, &list);
        size_t count = list.size / sizeof(cl_image_format);
        size_t copied = count < num_entries ? count : num_entries;
        if (r == 0 && image_formats && copied)
                memcpy(image_formats, list.data, copied * sizeof(cl_image_format));
        if (r == 0 && num_image_formats)
                *num_image_formats = (cl_uint)count;
        buf_fini(&list);
        return status_to_cl(r);
}

CL_API_ENTRY cl_int CL_API_CALL clGetImageInfo(cl_mem image, cl_image_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        /* "CL_INVALID_MEM_OBJECT if image is not a valid image object." */
        if (!handle_is(image, HANDLE_MEM) || !mem_is_image(image))
                return CL_INVALID_MEM_OBJECT;
        const struct image_desc *d = &image->image;
        switch (param_name) {
        case CL_IMAGE_FORMAT: {
                cl_image_format format = { d->order, d->data_type };
                return reply_bytes(reply, &format, sizeof(format));
        }
        case CL_IMAGE_ELEMENT_SIZE:
                return reply_value(reply, size_t, image_pixel_size(d->order, d->data_type));
        case CL_IMAGE_ROW_PITCH:
                return reply_value(reply, size_t, image->row_pitch);
        /* "For a 1D image, 1D image buffer and 2D image object return 0." */
        case CL_IMAGE_SLICE_PITCH:
                return reply_value(reply, size_t, image->slice_pitch);
        case CL_IMAGE_WIDTH:
                return reply_value(reply, size_t, d->width);
        case CL_IMAGE_HEIGHT:
                return reply_value(reply, size_t, d->height);
        case CL_IMAGE_DEPTH:
                return reply_value(reply, size_t, d->depth);
        case CL_IMAGE_ARRAY_SIZE:
                return reply_value(reply, size_t, d->array_size);
        case CL_IMAGE_BUFFER: {
                cl_mem of = image->parent && !mem_is_image(image->parent) ? image->parent : NULL;
                return reply_value(reply, cl_mem, of);
        }
        case CL_IMAGE_NUM_MIP_LEVELS:
        case CL_IMAGE_NUM_SAMPLES:
                return reply_value(reply, cl_uint, 0);
        default:
                return CL_INVALID_VALUE;
        }
}
