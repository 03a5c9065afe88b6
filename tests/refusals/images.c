/* Images and samplers. */
#include "refusals.h"

/* ---- making --------------------------------------------------------------------------------- */

static void image(struct world *w, const char *name, cl_mem_flags flags,
                  const cl_image_format *format, cl_image_desc desc, void *host)
{
        MAKE(name, clReleaseMemObject,
             clCreateImage(w->context, flags, format, &desc, host, &w->err));
}

#define DESC(...)       ((cl_image_desc){ .image_type = CL_MEM_OBJECT_IMAGE2D, __VA_ARGS__ })
#define TYPE(type, ...) ((cl_image_desc){ .image_type = CL_MEM_OBJECT_IMAGE##type, __VA_ARGS__ })
#define PLAIN           .image_width = W, .image_height = H

static void formats(struct world *w)
{
        static const struct {
                const char *name;
                cl_image_format format;
        } table[] = {
                { "rgba_snorm8", { CL_RGBA, CL_SNORM_INT8 } },
                { "rgba_float", { CL_RGBA, CL_FLOAT } },
                { "rgba_half", { CL_RGBA, CL_HALF_FLOAT } },
                { "r_float", { CL_R, CL_FLOAT } },
                { "rg_unorm16", { CL_RG, CL_UNORM_INT16 } },
                { "ra_unorm8", { CL_RA, CL_UNORM_INT8 } },
                { "a_unorm8", { CL_A, CL_UNORM_INT8 } },
                { "intensity_float", { CL_INTENSITY, CL_FLOAT } },
                { "luminance_unorm8", { CL_LUMINANCE, CL_UNORM_INT8 } },
                { "luminance_int", { CL_LUMINANCE, CL_SIGNED_INT32 } },
                { "rgb_unorm8", { CL_RGB, CL_UNORM_INT8 } },
                { "rgb_565", { CL_RGB, CL_UNORM_SHORT_565 } },
                { "rgb_101010", { CL_RGB, CL_UNORM_INT_101010 } },
                { "bgra_unorm8", { CL_BGRA, CL_UNORM_INT8 } },
                { "bgra_float", { CL_BGRA, CL_FLOAT } },
                { "argb_unorm8", { CL_ARGB, CL_UNORM_INT8 } },
                { "abgr_unorm8", { CL_ABGR, CL_UNORM_INT8 } },
                { "srgba_unorm8", { CL_sRGBA, CL_UNORM_INT8 } },
                { "depth_float", { CL_DEPTH, CL_FLOAT } },
                { "depth_unorm16", { CL_DEPTH, CL_UNORM_INT16 } },
                { "depth_stencil", { CL_DEPTH_STENCIL, CL_UNORM_INT24 } },
                { "unknown_order", { 0x7777, CL_UNORM_INT8 } },
                { "unknown_type", { CL_RGBA, 0x7777 } },
        };
        char name[64];
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                snprintf(name, sizeof(name), "format_%s_read_write", table[i].name);
                image(w, name, CL_MEM_READ_WRITE, &table[i].format, DESC(PLAIN), NULL);
                snprintf(name, sizeof(name), "format_%s_read_only", table[i].name);
                image(w, name, CL_MEM_READ_ONLY, &table[i].format, DESC(PLAIN), NULL);
                snprintf(name, sizeof(name), "format_%s_write_only", table[i].name);
                image(w, name, CL_MEM_WRITE_ONLY, &table[i].format, DESC(PLAIN), NULL);
        }
        image(w, "format_null", 0, NULL, DESC(PLAIN), NULL);
}

static void sizes(struct world *w)
{
        size_t width = (size_t)device_number(w, CL_DEVICE_IMAGE2D_MAX_WIDTH),
               height = (size_t)device_number(w, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
        const cl_image_format *f = &rgba8;
        image(w, "width_zero", 0, f, DESC(.image_height = H), NULL);
        image(w, "height_zero", 0, f, DESC(.image_width = W), NULL);
        image(w, "width_beyond", 0, f, DESC(.image_width = width + 1, .image_height = 1), NULL);
        image(w, "height_beyond", 0, f, DESC(.image_width = 1, .image_height = height + 1), NULL);
        image(w, "width_max", 0, f, DESC(.image_width = SIZE_MAX, .image_height = 1), NULL);
        image(w, "depth_zero", 0, f, TYPE(3D, PLAIN), NULL);
        image(w, "depth_one", 0, f, TYPE(3D, PLAIN, .image_depth = 1), NULL);
        image(w, "depth_of_2d", 0, f, DESC(PLAIN, .image_depth = 1), NULL);
        image(w, "depth_of_2d_large", 0, f, DESC(PLAIN, .image_depth = 99), NULL);
        image(w, "array_of_2d", 0, f, DESC(PLAIN, .image_array_size = 1), NULL);
        image(w, "1d", 0, f, TYPE(1D, .image_width = W), NULL);
        image(w, "1d_height", 0, f, TYPE(1D, .image_width = W, .image_height = 5), NULL);
        image(w, "1d_array", 0, f, TYPE(1D_ARRAY, .image_width = W, .image_array_size = 2), NULL);
        image(w, "1d_array_zero", 0, f, TYPE(1D_ARRAY, .image_width = W), NULL);
        image(w, "2d_array", 0, f, TYPE(2D_ARRAY, PLAIN, .image_array_size = 2), NULL);
        image(w, "2d_array_one", 0, f, TYPE(2D_ARRAY, PLAIN, .image_array_size = 1), NULL);
        image(w, "2d_array_zero", 0, f, TYPE(2D_ARRAY, PLAIN), NULL);
        image(w, "2d_array_beyond", 0, f,
              TYPE(2D_ARRAY, .image_width = 1, .image_height = 1, .image_array_size = 1u << 24),
              NULL);
        image(w, "mip_levels", 0, f, DESC(PLAIN, .num_mip_levels = 1), NULL);
        image(w, "samples", 0, f, DESC(PLAIN, .num_samples = 1), NULL);
        image(w, "type_buffer", 0, f, (cl_image_desc){ .image_type = CL_MEM_OBJECT_BUFFER, PLAIN },
              NULL);
        image(w, "type_unknown", 0, f, (cl_image_desc){ .image_type = 0x7777, PLAIN }, NULL);
        MAKE("desc_null", clReleaseMemObject, clCreateImage(w->context, 0, f, NULL, NULL, &w->err));
}

static void pitches(struct world *w)
{
        const cl_mem_flags copy = CL_MEM_COPY_HOST_PTR, use = CL_MEM_USE_HOST_PTR;
        const cl_image_format *f = &rgba8;
        void *p = w->host;
        image(w, "host", copy, f, DESC(PLAIN), p);
        image(w, "host_use", use, f, DESC(PLAIN), p);
        image(w, "host_null", copy, f, DESC(PLAIN), NULL);
        image(w, "host_without_flag", 0, f, DESC(PLAIN), p);
        image(w, "host_alloc_pointer", CL_MEM_ALLOC_HOST_PTR, f, DESC(PLAIN), p);
        image(w, "row_without_host", 0, f, DESC(PLAIN, .image_row_pitch = ROW), NULL);
        image(w, "row_alloc", CL_MEM_ALLOC_HOST_PTR, f, DESC(PLAIN, .image_row_pitch = ROW), NULL);
        image(w, "slice_without_host", 0, f, DESC(PLAIN, .image_slice_pitch = SLICE), NULL);
        image(w, "row", copy, f, DESC(PLAIN, .image_row_pitch = ROW + 16), p);
        image(w, "row_small", copy, f, DESC(PLAIN, .image_row_pitch = ROW - 4), p);
        image(w, "row_odd", copy, f, DESC(PLAIN, .image_row_pitch = ROW + 1), p);
        image(w, "row_odd_use", use, f, DESC(PLAIN, .image_row_pitch = ROW + 1), p);
        image(w, "row_1d", copy, f, TYPE(1D, .image_width = W, .image_row_pitch = ROW), p);
        image(w, "row_1d_small", copy, f, TYPE(1D, .image_width = W, .image_row_pitch = 4), p);
        image(w, "slice_2d", copy, f, DESC(PLAIN, .image_slice_pitch = SLICE), p);
        image(w, "slice_2d_small", copy, f, DESC(PLAIN, .image_slice_pitch = 4), p);
        image(w, "slice_3d", copy, f, TYPE(3D, PLAIN, .image_depth = 2, .image_slice_pitch = SLICE),
              p);
        image(w, "slice_3d_small", copy, f,
              TYPE(3D, PLAIN, .image_depth = 2, .image_slice_pitch = SLICE - ROW), p);
        image(w, "slice_3d_odd", copy, f,
              TYPE(3D, PLAIN, .image_depth = 2, .image_slice_pitch = SLICE + 4), p);
        image(w, "slice_1d_array", copy, f,
              TYPE(1D_ARRAY, .image_width = W, .image_array_size = 4, .image_slice_pitch = ROW), p);
        image(w, "row_1d_array", copy, f,
              TYPE(1D_ARRAY, .image_width = W, .image_array_size = 4, .image_row_pitch = 2 * ROW),
              p);
}

static void parents(struct world *w)
{
        const cl_image_format *f = &rgba8, srgba = { CL_sRGBA, CL_UNORM_INT8 },
                              r32 = { CL_R, CL_UNSIGNED_INT32 };
        cl_mem read = buffer_new(w, CL_MEM_READ_ONLY, SIZE, NULL);
        image(w, "buffer_1d", 0, f, TYPE(1D_BUFFER, .image_width = W, .mem_object = w->a), NULL);
        image(w, "buffer_1d_pitch", 0, f,
              TYPE(1D_BUFFER, .image_width = W, .image_row_pitch = ROW, .mem_object = w->a), NULL);
        image(w, "buffer_1d_beyond", 0, f,
              TYPE(1D_BUFFER, .image_width = SIZE / 4 + 1, .mem_object = w->a), NULL);
        image(w, "buffer_1d_none", 0, f, TYPE(1D_BUFFER, .image_width = W), NULL);
        image(w, "buffer_1d_foreign", 0, f,
              TYPE(1D_BUFFER, .image_width = W, .mem_object = w->foreign), NULL);
        image(w, "buffer_1d_flags", CL_MEM_WRITE_ONLY, f,
              TYPE(1D_BUFFER, .image_width = W, .mem_object = read), NULL);
        image(w, "buffer_1d_host", CL_MEM_COPY_HOST_PTR, f,
              TYPE(1D_BUFFER, .image_width = W, .mem_object = w->a), w->host);
        image(w, "buffer_1d_pointer", 0, f, TYPE(1D_BUFFER, .image_width = W, .mem_object = w->a),
              w->host);
        image(w, "buffer_1d_of_image", 0, f,
              TYPE(1D_BUFFER, .image_width = W, .mem_object = w->image), NULL);
        image(w, "buffer_1d_type", 0, f, TYPE(1D, .image_width = W, .mem_object = w->a), NULL);
        image(w, "buffer_2d", 0, f, DESC(PLAIN, .mem_object = w->a), NULL);
        image(w, "buffer_2d_row", 0, f,
              DESC(.image_width = 64, .image_height = 2, .image_row_pitch = 1024,
                   .mem_object = w->a),
              NULL);
        image(w, "buffer_2d_row_odd", 0, f,
              DESC(PLAIN, .image_row_pitch = ROW + 4, .mem_object = w->a), NULL);
        image(w, "buffer_2d_row_small", 0, f,
              DESC(PLAIN, .image_row_pitch = ROW - 4, .mem_object = w->a), NULL);
        image(w, "buffer_2d_beyond", 0, f,
              DESC(.image_width = 64, .image_height = 100, .image_row_pitch = 1024,
                   .mem_object = w->a),
              NULL);
        image(w, "buffer_3d", 0, f, TYPE(3D, PLAIN, .image_depth = 2, .mem_object = w->a), NULL);
        image(w, "image_2d", 0, f, DESC(PLAIN, .mem_object = w->image), NULL);
        image(w, "image_2d_srgba", 0, &srgba, DESC(PLAIN, .mem_object = w->image), NULL);
        image(w, "image_2d_format", 0, &r32, DESC(PLAIN, .mem_object = w->image), NULL);
        image(w, "image_2d_size", 0, f,
              DESC(.image_width = 4, .image_height = 4, .mem_object = w->image), NULL);
        image(w, "image_2d_of_3d", 0, f, DESC(PLAIN, .mem_object = w->image3d), NULL);
        NEED(clReleaseMemObject(read));
}

void group_images(struct world *w)
{
        if (!w->images)
                return;
        cl_context x = w->context;
        cl_image_desc plain = DESC(PLAIN);
        const cl_mem_properties unknown[] = { 0x7777, 1, 0 };
        formats(w);
        sizes(w);
        pitches(w);
        image(w, "flags_two", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, &rgba8, plain, NULL);
        image(w, "flags_unknown", 1u << 20, &rgba8, plain, NULL);
        image(w, "flags_use_alloc", CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, &rgba8, plain,
              w->host);
        image(w, "flags_kernel_read_write", CL_MEM_KERNEL_READ_AND_WRITE, &rgba8, plain, NULL);
        MAKE("properties_unknown", clReleaseMemObject,
             clCreateImageWithProperties(x, unknown, 0, &rgba8, &plain, NULL, &w->err));
        MAKE("2d", clReleaseMemObject, clCreateImage2D(x, 0, &rgba8, W, H, 0, NULL, &w->err));
        MAKE("2d_zero", clReleaseMemObject, clCreateImage2D(x, 0, &rgba8, 0, H, 0, NULL, &w->err));
        MAKE("2d_row", clReleaseMemObject, clCreateImage2D(x, 0, &rgba8, W, H, ROW, NULL, &w->err));
        MAKE("2d_row_small", clReleaseMemObject,
             clCreateImage2D(x, CL_MEM_COPY_HOST_PTR, &rgba8, W, H, 4, w->host, &w->err));
        MAKE("3d", clReleaseMemObject, clCreateImage3D(x, 0, &rgba8, W, H, 2, 0, 0, NULL, &w->err));
        MAKE("3d_depth_one", clReleaseMemObject,
             clCreateImage3D(x, 0, &rgba8, W, H, 1, 0, 0, NULL, &w->err));
        MAKE("3d_depth_zero", clReleaseMemObject,
             clCreateImage3D(x, 0, &rgba8, W, H, 0, 0, 0, NULL, &w->err));
        cl_image_format list[4];
        cl_uint count;
        const cl_mem_object_type type = CL_MEM_OBJECT_IMAGE2D;
        CALL("supported", clGetSupportedImageFormats(x, CL_MEM_READ_ONLY, type, 0, NULL, &count));
        CALL("supported_no_flags", clGetSupportedImageFormats(x, 0, type, 0, NULL, &count));
        CALL("supported_flags_two",
             clGetSupportedImageFormats(x, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, type, 0, NULL,
                                        &count));
        CALL("supported_flags_unknown",
             clGetSupportedImageFormats(x, 1u << 20, type, 0, NULL, &count));
        CALL("supported_flags_host",
             clGetSupportedImageFormats(x, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, type, 0,
                                        NULL, &count));
        CALL("supported_kernel_read_write",
             clGetSupportedImageFormats(x, CL_MEM_KERNEL_READ_AND_WRITE, type, 0, NULL, &count));
        CALL("supported_buffer",
             clGetSupportedImageFormats(x, 0, CL_MEM_OBJECT_BUFFER, 0, NULL, &count));
        CALL("supported_pipe",
             clGetSupportedImageFormats(x, 0, CL_MEM_OBJECT_PIPE, 0, NULL, &count));
        CALL("supported_no_entries", clGetSupportedImageFormats(x, 0, type, 0, list, NULL));
        CALL("supported_nothing", clGetSupportedImageFormats(x, 0, type, 0, NULL, NULL));
        CALL("supported_few", clGetSupportedImageFormats(x, 0, type, 2, list, NULL));
        parents(w);
}

/* ---- transfers ------------------------------------------------------------------------------ */

struct box {
        const char *name;
        bool is_3d;
        size_t origin[3], region[3], row, slice;
};

static const struct box boxes[] = {
        { "plain", false, { 2, 1, 0 }, { 4, 4, 1 }, 0, 0 },
        { "3d", true, { 2, 1, 1 }, { 4, 4, 2 }, 0, 0 },
        { "pitches", true, { 0 }, { 4, 4, 2 }, 64, 512 },
        { "row_small", false, { 0 }, { 4, 4, 1 }, 8, 0 },
        { "row_odd", false, { 0 }, { 4, 4, 1 }, 17, 0 },
        { "row_small_one_row", false, { 0 }, { 4, 1, 1 }, 8, 0 },
        { "slice_2d", false, { 0 }, { 4, 4, 1 }, 16, 64 },
        { "slice_2d_row_zero", false, { 0 }, { 4, 4, 1 }, 0, 64 },
        { "slice_2d_large", false, { 0 }, { 4, 4, 1 }, 0, 512 },
        { "slice_2d_small", false, { 0 }, { 4, 4, 1 }, 16, 4 },
        { "slice_small", true, { 0 }, { 4, 4, 2 }, 16, 32 },
        { "slice_small_one_slice", true, { 0 }, { 4, 4, 1 }, 16, 32 },
        { "slice_odd", true, { 0 }, { 4, 4, 2 }, 16, 70 },
        { "region_zero", false, { 0 }, { 0, 4, 1 }, 0, 0 },
        { "region_zero_rows", false, { 0 }, { 4, 0, 1 }, 0, 0 },
        { "region_zero_slices", false, { 0 }, { 4, 4, 0 }, 0, 0 },
        { "region_two_slices", false, { 0 }, { 4, 4, 2 }, 0, 0 },
        { "origin_slice", false, { 0, 0, 1 }, { 4, 4, 1 }, 0, 0 },
        { "beyond", false, { 14, 0, 0 }, { 4, 4, 1 }, 0, 0 },
        { "beyond_rows", false, { 0, 7, 0 }, { 4, 4, 1 }, 0, 0 },
        { "beyond_slices", true, { 0, 0, 3 }, { 4, 4, 2 }, 0, 0 },
        { "overflow", false, { SIZE_MAX, 0, 0 }, { 4, 4, 1 }, 0, 0 },
};
enum { BOXES = sizeof(boxes) / sizeof(boxes[0]) };

static void image_access(struct world *w, const char *name, cl_mem_flags f)
{
        const cl_image_desc desc = DESC(PLAIN);
        char text[64];
        size_t row;
        cl_mem m = clCreateImage(w->context, f, &rgba8, &desc, NULL, &w->err);
        NEED(w->err);
        snprintf(text, sizeof(text), "read_%s", name);
        CALL(text,
             clEnqueueReadImage(w->queue, m, CL_TRUE, zero3, one3, 0, 0, w->host, 0, NULL, NULL));
        snprintf(text, sizeof(text), "write_%s", name);
        CALL(text,
             clEnqueueWriteImage(w->queue, m, CL_TRUE, zero3, one3, 0, 0, w->host, 0, NULL, NULL));
        snprintf(text, sizeof(text), "map_read_%s", name);
        MAP(text, m,
            clEnqueueMapImage(w->queue, m, CL_TRUE, CL_MAP_READ, zero3, one3, &row, NULL, 0, NULL,
                              NULL, &w->err));
        snprintf(text, sizeof(text), "map_write_%s", name);
        MAP(text, m,
            clEnqueueMapImage(w->queue, m, CL_TRUE, CL_MAP_WRITE, zero3, one3, &row, NULL, 0, NULL,
                              NULL, &w->err));
        NEED(clReleaseMemObject(m));
}

static void map_image(struct world *w, const char *name, cl_mem m, cl_map_flags flags,
                      const size_t *origin, const size_t *region, bool slice)
{
        size_t row_pitch, slice_pitch;
        MAP(name, m,
            clEnqueueMapImage(w->queue, m, CL_TRUE, flags, origin, region, &row_pitch,
                              slice ? &slice_pitch : NULL, 0, NULL, NULL, &w->err));
}

static void image_maps(struct world *w)
{
        const size_t beyond[3] = { 14, 0, 0 }, region[3] = { 4, 4, 1 }, zero[3] = { 0, 4, 1 },
                     deep[3] = { 4, 4, 2 };
        const cl_map_flags write = CL_MAP_WRITE, discard = CL_MAP_WRITE_INVALIDATE_REGION;
        size_t slice;
        map_image(w, "map", w->image, write, zero3, region, true);
        map_image(w, "map_no_slice", w->image, write, zero3, region, false);
        map_image(w, "map_3d_no_slice", w->image3d, write, zero3, deep, false);
        map_image(w, "map_beyond", w->image, write, beyond, region, true);
        map_image(w, "map_region_zero", w->image, write, zero3, zero, true);
        map_image(w, "map_write_discard", w->image, write | discard, zero3, one3, true);
        map_image(w, "map_flags_unknown", w->image, write | 1u << 10, zero3, region, true);
        map_image(w, "map_foreign", w->foreign_image, write, zero3, region, true);
        map_image(w, "map_null_region", w->image, write, zero3, NULL, true);
        map_image(w, "map_null_origin", w->image, write, NULL, region, true);
        map_image(w, "map_buffer", w->a, write, zero3, region, true);
        MAP("map_null_row", w->image,
            clEnqueueMapImage(w->queue, w->image, CL_TRUE, write, zero3, region, NULL, &slice, 0,
                              NULL, NULL, &w->err));
}

void group_image_transfers(struct world *w)
{
        if (!w->images)
                return;
        cl_command_queue q = w->queue;
        char name[64];
        for (int i = 0; i < BOXES; i++) {
                const struct box *b = &boxes[i];
                cl_mem m = b->is_3d ? w->image3d : w->image;
                snprintf(name, sizeof(name), "read_%s", b->name);
                RUN(name, clEnqueueReadImage(q, m, CL_TRUE, b->origin, b->region, b->row, b->slice,
                                             w->host, 0, NULL, &w->event));
                snprintf(name, sizeof(name), "write_%s", b->name);
                RUN(name, clEnqueueWriteImage(q, m, CL_TRUE, b->origin, b->region, b->row, b->slice,
                                              w->host, 0, NULL, &w->event));
                if (b->row || b->slice)
                        continue;
                snprintf(name, sizeof(name), "fill_%s", b->name);
                RUN(name,
                    clEnqueueFillImage(q, m, w->host, b->origin, b->region, 0, NULL, &w->event));
        }
        RUN("read_null",
            clEnqueueReadImage(q, w->image, CL_TRUE, zero3, one3, 0, 0, NULL, 0, NULL, &w->event));
        RUN("read_null_origin", clEnqueueReadImage(q, w->image, CL_TRUE, NULL, one3, 0, 0, w->host,
                                                   0, NULL, &w->event));
        RUN("read_null_region", clEnqueueReadImage(q, w->image, CL_TRUE, zero3, NULL, 0, 0, w->host,
                                                   0, NULL, &w->event));
        RUN("read_buffer",
            clEnqueueReadImage(q, w->a, CL_TRUE, zero3, one3, 0, 0, w->host, 0, NULL, &w->event));
        RUN("read_foreign", clEnqueueReadImage(q, w->foreign_image, CL_TRUE, zero3, one3, 0, 0,
                                               w->host, 0, NULL, &w->event));
        RUN("fill_null_color",
            clEnqueueFillImage(q, w->image, NULL, zero3, one3, 0, NULL, &w->event));
        RUN("fill_buffer", clEnqueueFillImage(q, w->a, w->host, zero3, one3, 0, NULL, &w->event));
        image_access(w, "host_read_only", CL_MEM_HOST_READ_ONLY);
        image_access(w, "host_write_only", CL_MEM_HOST_WRITE_ONLY);
        image_access(w, "host_no_access", CL_MEM_HOST_NO_ACCESS);
        image_maps(w);
}

/* ---- copies --------------------------------------------------------------------------------- */

static void copy(struct world *w, const char *name, cl_mem from, cl_mem to, size_t x, size_t y,
                 size_t columns, size_t slices)
{
        const size_t to_origin[3] = { x, y, 0 }, region[3] = { columns, 4, slices };
        RUN(name,
            clEnqueueCopyImage(w->queue, from, to, zero3, to_origin, region, 0, NULL, &w->event));
}

static void with_buffer(struct world *w, const char *name, cl_mem image, cl_mem buffer, size_t x,
                        size_t columns, size_t slices, size_t offset)
{
        const size_t origin[3] = { x, 0, 0 }, region[3] = { columns, 4, slices };
        char text[64];
        snprintf(text, sizeof(text), "to_buffer_%s", name);
        RUN(text, clEnqueueCopyImageToBuffer(w->queue, image, buffer, origin, region, offset, 0,
                                             NULL, &w->event));
        snprintf(text, sizeof(text), "from_buffer_%s", name);
        RUN(text, clEnqueueCopyBufferToImage(w->queue, buffer, image, offset, origin, region, 0,
                                             NULL, &w->event));
}

void group_image_copies(struct world *w)
{
        if (!w->images)
                return;
        const cl_image_format snorm = { CL_RGBA, CL_UNORM_INT8 }, r32 = { CL_R, CL_UNSIGNED_INT32 };
        const cl_image_desc desc = DESC(PLAIN);
        cl_mem unorm8 = clCreateImage(w->context, 0, &snorm, &desc, NULL, &w->err);
        NEED(w->err);
        cl_mem wide = clCreateImage(w->context, 0, &r32, &desc, NULL, &w->err);
        NEED(w->err);
        copy(w, "plain", w->image, w->image3d, 2, 2, 4, 1);
        copy(w, "same_apart", w->image, w->image, 8, 0, 4, 1);
        copy(w, "overlap", w->image, w->image, 2, 0, 4, 1);
        copy(w, "same_place", w->image, w->image, 0, 0, 4, 1);
        copy(w, "beyond", w->image, w->image3d, 14, 0, 4, 1);
        copy(w, "region_zero", w->image, w->image3d, 0, 0, 0, 1);
        copy(w, "two_slices", w->image3d, w->image, 0, 0, 4, 2);
        copy(w, "foreign", w->image, w->foreign_image, 0, 0, 4, 1);
        copy(w, "type_differs", w->image, unorm8, 0, 0, 4, 1);
        copy(w, "order_differs", w->image, wide, 0, 0, 4, 1);
        copy(w, "of_buffer", w->a, w->image, 0, 0, 4, 1);
        copy(w, "to_buffer", w->image, w->a, 0, 0, 4, 1);
        RUN("null_region", clEnqueueCopyImage(w->queue, w->image, w->image3d, zero3, zero3, NULL, 0,
                                              NULL, &w->event));
        with_buffer(w, "plain", w->image, w->a, 0, 4, 1, 16);
        with_buffer(w, "offset_odd", w->image, w->a, 0, 4, 1, 1);
        with_buffer(w, "beyond", w->image, w->a, 14, 4, 1, 0);
        with_buffer(w, "region_zero", w->image, w->a, 0, 0, 1, 0);
        with_buffer(w, "two_slices", w->image, w->a, 0, 4, 2, 0);
        with_buffer(w, "offset_beyond", w->image, w->a, 0, 4, 1, SIZE - 32);
        with_buffer(w, "foreign", w->image, w->foreign, 0, 4, 1, 0);
        with_buffer(w, "image", w->image, w->image3d, 0, 4, 1, 0);
        with_buffer(w, "of_buffer", w->a, w->b, 0, 4, 1, 0);
        NEED(clReleaseMemObject(unorm8));
        NEED(clReleaseMemObject(wide));
}

/* ---- samplers ------------------------------------------------------------------------------- */

static void sampler(struct world *w, const char *name, cl_bool normalized, cl_addressing_mode a,
                    cl_filter_mode f)
{
        MAKE(name, clReleaseSampler, clCreateSampler(w->context, normalized, a, f, &w->err));
}

void group_samplers(struct world *w)
{
        if (!w->images)
                return;
        const struct {
                const char *name;
                cl_sampler_properties list[8];
        } lists[] = {
                { "properties_empty", { 0 } },
                { "properties_normalized", { CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0 } },
                { "properties_normalized_7", { CL_SAMPLER_NORMALIZED_COORDS, 7, 0 } },
                { "properties_addressing", { CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_REPEAT, 0 } },
                { "properties_addressing_bad", { CL_SAMPLER_ADDRESSING_MODE, 0x7777, 0 } },
                { "properties_filter_bad", { CL_SAMPLER_FILTER_MODE, 0x7777, 0 } },
                { "properties_twice",
                  { CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, CL_SAMPLER_FILTER_MODE,
                    CL_FILTER_LINEAR, 0 } },
                { "properties_unknown", { 0x7777, 1, 0 } },
                { "properties_mip_filter", { 0x1155, CL_FILTER_NEAREST, 0 } },
                { "properties_lod_min", { 0x1156, 0, 0 } },
        };
        sampler(w, "plain", CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR);
        sampler(w, "normalized_7", 7, CL_ADDRESS_CLAMP, CL_FILTER_LINEAR);
        sampler(w, "repeat_unnormalized", CL_FALSE, CL_ADDRESS_REPEAT, CL_FILTER_NEAREST);
        sampler(w, "mirrored_unnormalized", CL_FALSE, CL_ADDRESS_MIRRORED_REPEAT,
                CL_FILTER_NEAREST);
        sampler(w, "addressing_bad", CL_FALSE, 0x7777, CL_FILTER_NEAREST);
        sampler(w, "addressing_zero", CL_FALSE, 0, CL_FILTER_NEAREST);
        sampler(w, "filter_bad", CL_FALSE, CL_ADDRESS_CLAMP, 0x7777);
        sampler(w, "filter_zero", CL_FALSE, CL_ADDRESS_CLAMP, 0);
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                MAKE(lists[i].name, clReleaseSampler,
                     clCreateSamplerWithProperties(w->context, lists[i].list, &w->err));
        MAKE("properties_null", clReleaseSampler,
             clCreateSamplerWithProperties(w->context, NULL, &w->err));
        MAKE("null_context", clReleaseSampler,
             clCreateSampler(NULL, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &w->err));
}
