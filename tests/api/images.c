/* Images and samplers of all types: transfers with pitches, fills, copies, maps, kernels, queries, and
 * images that follow the commands from device to device. */

#include "api.h"

#include <stdbool.h>

enum { W = 37, H = 19, D = 5, PIXEL = 4, ROW = W * PIXEL, SLICE = ROW * H, ALL = SLICE * D };

static const char source[] =
        "__constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
        "                             CLK_FILTER_NEAREST;\n"
        "__kernel void add(__read_only image2d_t in, __write_only image2d_t out, uint4 x) {\n"
        "        int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
        "        write_imageui(out, at, (read_imageui(in, plain, at) + x) & 255u);\n"
        "}\n"
        "__kernel void sample(__read_only image2d_t in, sampler_t s, __global float4 *out) {\n"
        "        out[0] = read_imagef(in, s, (float2)(-0.5f, 0.5f));\n"
        "        out[1] = read_imagef(in, s, (float2)(0.5f, 0.5f));\n"
        "}\n"
        "__kernel void line(__read_only image1d_buffer_t in, __global uint *out) {\n"
        "        out[get_global_id(0)] = read_imageui(in, (int)get_global_id(0)).x;\n"
        "}\n";

static const cl_image_format rgba8 = { CL_RGBA, CL_UNSIGNED_INT8 };
static const size_t zero[3] = { 0, 0, 0 };
static const size_t whole2d[3] = { W, H, 1 };
static uint8_t host[4 * ALL], back[4 * ALL], expected[4 * ALL];

/* Every type with its size as a region. */
static const struct shape {
        cl_mem_object_type type;
        size_t region[3];
} shapes[] = {
        { CL_MEM_OBJECT_IMAGE1D, { W, 1, 1 } },       { CL_MEM_OBJECT_IMAGE2D, { W, H, 1 } },
        { CL_MEM_OBJECT_IMAGE3D, { W, H, D } },       { CL_MEM_OBJECT_IMAGE1D_ARRAY, { W, D, 1 } },
        { CL_MEM_OBJECT_IMAGE2D_ARRAY, { W, H, D } },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static cl_image_desc shape_desc(const struct shape *s)
{
        cl_image_desc desc = { .image_type = s->type, .image_width = s->region[0] };
        switch (s->type) {
        case CL_MEM_OBJECT_IMAGE1D_ARRAY:
                desc.image_array_size = s->region[1];
                break;
        case CL_MEM_OBJECT_IMAGE2D_ARRAY:
                desc.image_height = s->region[1];
                desc.image_array_size = s->region[2];
                break;
        case CL_MEM_OBJECT_IMAGE3D:
                desc.image_height = s->region[1];
                desc.image_depth = s->region[2];
                break;
        case CL_MEM_OBJECT_IMAGE2D:
                desc.image_height = s->region[1];
                break;
        default:
                break;
        }
        return desc;
}

static cl_mem image_new(const struct api *a, cl_mem_flags flags, const cl_image_desc *desc,
                        void *data)
{
        cl_int err;
        cl_mem m = clCreateImage(a->context, flags, &rgba8, desc, data, &err);
        OK(err);
        return m;
}

static cl_mem image2d(const struct api *a, cl_mem_flags flags, void *data)
{
        cl_image_desc desc = shape_desc(&shapes[1]);
        return image_new(a, flags, &desc, data);
}

static size_t region_bytes(const size_t region[3])
{
        return region[0] * region[1] * region[2] * PIXEL;
}

/* Copy a box between two packed arrays of whole regions, as the reference for what images do. */
static void put_box(uint8_t *to, const size_t to_all[3], const size_t origin[3],
                    const size_t region[3], const uint8_t *from)
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(to + (((origin[2] + z) * to_all[1] + origin[1] + y) * to_all[0] +
                                     origin[0]) *
                                               PIXEL,
                               from + (z * region[1] + y) * region[0] * PIXEL, region[0] * PIXEL);
}

/* A part that lies inside in every direction that there is. */
static void inner(const size_t all[3], size_t origin[3], size_t region[3])
{
        for (int i = 0; i < 3; i++) {
                origin[i] = all[i] > 2 ? 1 : 0;
                region[i] = all[i] > 2 ? all[i] - 2 : 1;
        }
}

/* Write and read an image, wholly and in parts, on any device. A write of a part keeps the rest. */
static void transfers(const struct api *a)
{
        for (int i = 0; i < SHAPES; i++) {
                const size_t *all = shapes[i].region;
                size_t origin[3], region[3], n = region_bytes(all);
                cl_image_desc desc = shape_desc(&shapes[i]);
                cl_mem m = image_new(a, CL_MEM_READ_WRITE, &desc, NULL);
                api_pattern(host, sizeof(host), (unsigned)i);
                OK(clEnqueueWriteImage(a->queues[0], m, CL_TRUE, zero, all, 0, 0, host, 0, NULL,
                                       NULL));
                memset(back, 0, n);
                OK(clEnqueueReadImage(api_queue(a, 1), m, CL_TRUE, zero, all, 0, 0, back, 0, NULL,
                                      NULL));
                CHECK(!memcmp(host, back, n));

                inner(all, origin, region);
                memcpy(expected, host, n);
                put_box(expected, all, origin, region, host + 7 * PIXEL);
                OK(clEnqueueWriteImage(api_queue(a, 1), m, CL_TRUE, origin, region, 0, 0,
                                       host + 7 * PIXEL, 0, NULL, NULL));
                memset(back, 0, n);
                OK(clEnqueueReadImage(a->queues[0], m, CL_TRUE, zero, all, 0, 0, back, 0, NULL,
                                      NULL));
                CHECK(!memcmp(expected, back, n));

                memset(back, 0, n);
                OK(clEnqueueReadImage(api_queue(a, 2), m, CL_TRUE, origin, region, 0, 0, back, 0,
                                      NULL, NULL));
                CHECK(!memcmp(host + 7 * PIXEL, back, region_bytes(region)));
                OK(clReleaseMemObject(m));
        }
}

/* Rows and slices of the application may lie apart; what lies between is not touched. */
static void pitches(const struct api *a)
{
        cl_image_desc desc = shape_desc(&shapes[2]);
        const size_t *all = shapes[2].region;
        size_t row = ROW + 20, slice = row * (H + 2);
        CHECK(slice * D <= sizeof(host));
        cl_mem m = image_new(a, CL_MEM_READ_WRITE, &desc, NULL);
        api_pattern(host, sizeof(host), 50);
        OK(clEnqueueWriteImage(a->queues[0], m, CL_TRUE, zero, all, row, slice, host, 0, NULL,
                               NULL));
        memset(back, 0xEE, sizeof(back));
        OK(clEnqueueReadImage(api_queue(a, 1), m, CL_TRUE, zero, all, row, slice, back, 0, NULL,
                              NULL));
        for (size_t z = 0; z < D; z++)
                for (size_t y = 0; y < H + 2; y++) {
                        size_t at = z * slice + y * row;
                        size_t used = y < H ? ROW : 0;
                        CHECK(!memcmp(host + at, back + at, used));
                        for (size_t x = used; x < row; x++)
                                CHECK(back[at + x] == 0xEE);
                }
        OK(clReleaseMemObject(m));

        /* The same of memory that the image is made from. */
        desc.image_row_pitch = row;
        desc.image_slice_pitch = slice;
        m = image_new(a, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &desc, host);
        OK(clEnqueueReadImage(api_queue(a, 1), m, CL_TRUE, zero, all, 0, 0, back, 0, NULL, NULL));
        for (size_t z = 0; z < D; z++)
                for (size_t y = 0; y < H; y++)
                        CHECK(!memcmp(host + z * slice + y * row, back + (z * H + y) * ROW, ROW));
        size_t value;
        OK(clGetImageInfo(m, CL_IMAGE_ROW_PITCH, sizeof(value), &value, NULL));
        CHECK(value >= ROW);
        OK(clReleaseMemObject(m));
}

/* Fills and copies between images and buffers, each on another device. */
static void fills_and_copies(const struct api *a)
{
        const size_t origin[3] = { 3, 2, 0 }, region[3] = { 10, 7, 1 }, to[3] = { 20, 9, 0 };
        const cl_uint color[4] = { 1, 2, 3, 4 };
        size_t n = region_bytes(whole2d), part = region_bytes(region);
        static uint8_t box[ALL];
        api_pattern(host, sizeof(host), 60);
        cl_mem x = image2d(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, host);
        cl_mem y = image2d(a, CL_MEM_READ_WRITE, NULL);
        cl_mem b = api_buffer(a, CL_MEM_READ_WRITE, n, NULL);

        for (size_t i = 0; i < part; i++)
                box[i] = (uint8_t)(i % 4 + 1);
        memcpy(expected, host, n);
        put_box(expected, whole2d, origin, region, box);
        OK(clEnqueueFillImage(api_queue(a, 0), x, color, origin, region, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 0)));
        OK(clEnqueueCopyImage(api_queue(a, 1), x, y, zero, zero, whole2d, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 1)));
        OK(clEnqueueReadImage(api_queue(a, 0), y, CL_TRUE, zero, whole2d, 0, 0, back, 0, NULL,
                              NULL));
        CHECK(!memcmp(expected, back, n));

        /* Within one image, where the two do not meet. */
        put_box(expected, whole2d, to, region, box);
        OK(clEnqueueCopyImage(api_queue(a, 0), y, y, origin, to, region, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 0)));
        OK(clEnqueueCopyImageToBuffer(api_queue(a, 1), y, b, zero, whole2d, 0, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 1)));
        OK(clEnqueueReadBuffer(api_queue(a, 0), b, CL_TRUE, 0, n, back, 0, NULL, NULL));
        CHECK(!memcmp(expected, back, n));

        put_box(expected, whole2d, to, region, back + 8);
        OK(clEnqueueCopyBufferToImage(api_queue(a, 2), b, y, 8, to, region, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 2)));
        OK(clEnqueueReadImage(api_queue(a, 0), y, CL_TRUE, zero, whole2d, 0, 0, back, 0, NULL,
                              NULL));
        CHECK(!memcmp(expected, back, n));
        OK(clReleaseMemObject(x));
        OK(clReleaseMemObject(y));
        OK(clReleaseMemObject(b));
}

static void maps(const struct api *a)
{
        cl_int err;
        for (int i = 0; i < SHAPES; i++) {
                const size_t *all = shapes[i].region;
                size_t origin[3], region[3], n = region_bytes(all), row = 0, slice = 77;
                cl_image_desc desc = shape_desc(&shapes[i]);
                inner(all, origin, region);
                api_pattern(host, sizeof(host), 70 + (unsigned)i);
                cl_mem m = image_new(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &desc, host);
                uint8_t *p =
                        clEnqueueMapImage(api_queue(a, 0), m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                          origin, region, &row, &slice, 0, NULL, NULL, &err);
                OK(err);
                bool slices = desc.image_depth || desc.image_array_size;
                CHECK(row >= ROW && (slices ? slice >= row : slice == 0));
                bool array1d = shapes[i].type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
                memcpy(expected, host, n);
                for (size_t z = 0; z < region[2]; z++)
                        for (size_t y = 0; y < region[1]; y++) {
                                uint8_t *line = p + z * slice + y * (array1d ? slice : row);
                                size_t at = (((origin[2] + z) * all[1] + origin[1] + y) * all[0] +
                                             origin[0]) *
                                            PIXEL;
                                CHECK(!memcmp(line, host + at, region[0] * PIXEL));
                                memset(line, (int)(y + z), region[0] * PIXEL);
                                memset(expected + at, (int)(y + z), region[0] * PIXEL);
                        }
                cl_uint count;
                OK(clGetMemObjectInfo(m, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL));
                CHECK(count == 1);
                OK(clEnqueueUnmapMemObject(api_queue(a, 0), m, p, 0, NULL, NULL));
                OK(clFinish(api_queue(a, 0)));
                OK(clEnqueueReadImage(api_queue(a, 1), m, CL_TRUE, zero, all, 0, 0, back, 0, NULL,
                                      NULL));
                CHECK(!memcmp(expected, back, n));
                OK(clReleaseMemObject(m));
        }

        /* The application's own memory, with a pitch. */
        cl_image_desc desc = shape_desc(&shapes[1]);
        size_t row = 0;
        desc.image_row_pitch = 2 * ROW;
        uint8_t *own = api_alloc(2 * SLICE);
        api_pattern(own, 2 * SLICE, 80);
        cl_mem m = image_new(a, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &desc, own);
        const cl_uint color[4] = { 9, 9, 9, 9 };
        const size_t at[3] = { 1, 1, 0 }, one[3] = { 1, 1, 1 };
        OK(clEnqueueFillImage(api_queue(a, 1), m, color, at, one, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 1)));
        uint8_t *p = clEnqueueMapImage(api_queue(a, 0), m, CL_TRUE, CL_MAP_READ, zero, whole2d,
                                       &row, NULL, 0, NULL, NULL, &err);
        OK(err);
        CHECK(p == own && row == 2 * ROW);
        CHECK(p[2 * ROW + 4] == 9 && p[2 * ROW + 7] == 9);
        OK(clEnqueueUnmapMemObject(api_queue(a, 0), m, p, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 0)));
        OK(clReleaseMemObject(m));
        free(own);
}

/* Kernels on several devices in turn, nothing but events between them. */
static void kernels(const struct api *a, cl_program program)
{
        enum { ROUNDS = 12 };
        cl_kernel k = api_kernel(program, "add");
        size_t n = region_bytes(whole2d);
        api_pattern(host, sizeof(host), 90);
        cl_mem m[2] = { image2d(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, host),
                        image2d(a, CL_MEM_READ_WRITE, NULL) };
        cl_event last = NULL;
        for (unsigned i = 0; i < ROUNDS; i++) {
                const cl_uint x[4] = { 1, 2, 3, i };
                cl_event next;
                OK(clSetKernelArg(k, 0, sizeof(cl_mem), &m[i % 2]));
                OK(clSetKernelArg(k, 1, sizeof(cl_mem), &m[(i + 1) % 2]));
                OK(clSetKernelArg(k, 2, sizeof(x), x));
                OK(clEnqueueNDRangeKernel(api_queue(a, i), k, 2, NULL, whole2d, NULL, last ? 1 : 0,
                                          last ? &last : NULL, &next));
                OK(clFlush(api_queue(a, i)));
                if (last)
                        OK(clReleaseEvent(last));
                last = next;
        }
        OK(clEnqueueReadImage(api_queue(a, 0), m[ROUNDS % 2], CL_TRUE, zero, whole2d, 0, 0, back, 1,
                              &last, NULL));
        OK(clReleaseEvent(last));
        const unsigned add[4] = { ROUNDS, 2 * ROUNDS, 3 * ROUNDS, ROUNDS * (ROUNDS - 1) / 2 };
        for (size_t i = 0; i < n; i++)
                CHECK(back[i] == (uint8_t)(host[i] + add[i % 4]));
        OK(clReleaseMemObject(m[0]));
        OK(clReleaseMemObject(m[1]));
        OK(clReleaseKernel(k));
}

static void samplers(const struct api *a, cl_program program)
{
        cl_int err;
        static const cl_image_format norm = { CL_RGBA, CL_UNORM_INT8 };
        cl_image_desc desc = shape_desc(&shapes[1]);
        memset(host, 255, SLICE);
        cl_mem m = clCreateImage(a->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &norm, &desc,
                                 host, &err);
        OK(err);
        cl_mem out = api_buffer(a, CL_MEM_READ_WRITE, 32, NULL);
        cl_kernel k = api_kernel(program, "sample");
        cl_sampler s[2] = { clCreateSampler(a->context, CL_FALSE, CL_ADDRESS_CLAMP,
                                            CL_FILTER_NEAREST, &err),
                            clCreateSampler(a->context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE,
                                            CL_FILTER_NEAREST, &err) };
        OK(err);
        CHECK(s[0] && s[1]);
        for (unsigned i = 0; i < 4; i++) {
                const size_t one = 1;
                float v[8];
                OK(clSetKernelArg(k, 0, sizeof(m), &m));
                OK(clSetKernelArg(k, 1, sizeof(cl_sampler), &s[i % 2]));
                OK(clSetKernelArg(k, 2, sizeof(out), &out));
                cl_command_queue q = api_queue(a, i / 2);
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, out, CL_TRUE, 0, sizeof(v), v, 0, NULL, NULL));
                CHECK(v[0] == (i % 2 ? 1.0f : 0.0f));
                CHECK(v[4] == 1.0f);
        }

        cl_uint refs;
        cl_addressing_mode mode;
        cl_bool normalized;
        OK(clRetainSampler(s[1]));
        OK(clGetSamplerInfo(s[1], CL_SAMPLER_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
        CHECK(refs == 2);
        OK(clReleaseSampler(s[1]));
        OK(clGetSamplerInfo(s[1], CL_SAMPLER_ADDRESSING_MODE, sizeof(mode), &mode, NULL));
        CHECK(mode == CL_ADDRESS_CLAMP_TO_EDGE);
        OK(clGetSamplerInfo(s[1], CL_SAMPLER_NORMALIZED_COORDS, sizeof(normalized), &normalized,
                            NULL));
        CHECK(normalized == CL_FALSE);
        EXPECT(CL_INVALID_VALUE, clGetSamplerInfo(s[1], CL_IMAGE_WIDTH, 4, &refs, NULL));
        OK(clReleaseSampler(s[0]));
        OK(clReleaseSampler(s[1]));
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(out));
}

/* A 1D image has its buffer's bytes. */
static void lines(const struct api *a, cl_program program)
{
        enum { N = 500 };
        static const cl_image_format format = { CL_R, CL_UNSIGNED_INT32 };
        cl_uint in[N], out[N];
        cl_int err;
        api_pattern(in, sizeof(in), 100);
        cl_mem b = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(in), in);
        cl_mem to = api_buffer(a, CL_MEM_READ_WRITE, sizeof(out), NULL);
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                               .image_width = N,
                               .mem_object = b };
        cl_mem m = clCreateImage(a->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
        OK(err);
        cl_mem of = NULL;
        OK(clGetMemObjectInfo(m, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(of), &of, NULL));
        CHECK(of == b);
        desc.image_row_pitch = sizeof(in); /* of its one row: drivers take it */
        OK(clReleaseMemObject(m));
        m = clCreateImage(a->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
        OK(err);
        cl_kernel k = api_kernel(program, "line");
        const size_t n = N;
        for (unsigned i = 0; i < 3; i++) {
                /* Written as a buffer in one place, read as an image in another. */
                in[i] = 1000 + i;
                OK(clEnqueueWriteBuffer(api_queue(a, i), b, CL_TRUE, 4 * i, 4, &in[i], 0, NULL,
                                        NULL));
                OK(clSetKernelArg(k, 0, sizeof(m), &m));
                OK(clSetKernelArg(k, 1, sizeof(to), &to));
                cl_command_queue q = api_queue(a, i + 1);
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, to, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
                CHECK(!memcmp(in, out, sizeof(in)));
        }
        OK(clReleaseMemObject(b));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(to));
        OK(clReleaseKernel(k));
}

static size_t info_size(cl_mem m, cl_image_info name)
{
        size_t value = 77;
        OK(clGetImageInfo(m, name, sizeof(value), &value, NULL));
        return value;
}

static void queries(const struct api *a)
{
        for (int i = 0; i < SHAPES; i++) {
                cl_image_desc desc = shape_desc(&shapes[i]);
                cl_mem m = image_new(a, CL_MEM_READ_WRITE, &desc, NULL);
                cl_image_format format;
                cl_mem_object_type type;
                OK(clGetImageInfo(m, CL_IMAGE_FORMAT, sizeof(format), &format, NULL));
                CHECK(!memcmp(&format, &rgba8, sizeof(format)));
                OK(clGetMemObjectInfo(m, CL_MEM_TYPE, sizeof(type), &type, NULL));
                CHECK(type == shapes[i].type);
                CHECK(info_size(m, CL_IMAGE_ELEMENT_SIZE) == PIXEL);
                CHECK(info_size(m, CL_IMAGE_WIDTH) == desc.image_width);
                CHECK(info_size(m, CL_IMAGE_HEIGHT) == desc.image_height);
                CHECK(info_size(m, CL_IMAGE_DEPTH) == desc.image_depth);
                CHECK(info_size(m, CL_IMAGE_ARRAY_SIZE) == desc.image_array_size);
                CHECK(info_size(m, CL_IMAGE_ROW_PITCH) >= ROW);
                size_t size;
                OK(clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof(size), &size, NULL));
                CHECK(size >= region_bytes(shapes[i].region));
                EXPECT(CL_INVALID_VALUE, clGetImageInfo(m, CL_MEM_TYPE, 8, &size, NULL));
                OK(clReleaseMemObject(m));
        }

        cl_uint count = 0, some = 0;
        cl_image_format *list;
        OK(clGetSupportedImageFormats(a->context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
                                      &count));
        CHECK(count > 0);
        list = api_alloc(count * sizeof(*list));
        OK(clGetSupportedImageFormats(a->context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, count,
                                      list, NULL));
        for (cl_uint i = 0; i < count; i++)
                some += !memcmp(&list[i], &rgba8, sizeof(rgba8));
        CHECK(some == 1);
        free(list);
        EXPECT(CL_INVALID_VALUE, clGetSupportedImageFormats(a->context, CL_MEM_READ_WRITE,
                                                            CL_MEM_OBJECT_BUFFER, 0, NULL, &count));
}

static void errors(const struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_context x = a->context;
        cl_image_desc desc = shape_desc(&shapes[1]), bad = desc;
        cl_image_format wrong = { 1, 2 };
        cl_mem m = image2d(a, CL_MEM_READ_WRITE, NULL);
        cl_mem ro = image2d(a, CL_MEM_READ_ONLY, NULL), wo = image2d(a, CL_MEM_WRITE_ONLY, NULL);
        cl_mem hidden = image2d(a, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, NULL);
        cl_mem b = api_buffer(a, CL_MEM_READ_WRITE, SLICE, NULL);
        const size_t out[3] = { W, 0, 0 }, none[3] = { 0, 1, 1 }, deep[3] = { 1, 1, 2 };
        size_t row, slice;

        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreateImage(NULL, 0, &rgba8, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                     clCreateImage(x, 0, NULL, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                     clCreateImage(x, 0, &wrong, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_DESCRIPTOR, clCreateImage(x, 0, &rgba8, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateImage(x, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
                                                     &rgba8, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR,
                     clCreateImage(x, CL_MEM_COPY_HOST_PTR, &rgba8, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR, clCreateImage(x, 0, &rgba8, &desc, host, &error));
        bad.image_type = CL_MEM_OBJECT_BUFFER;
        EXPECT_ERROR(CL_INVALID_IMAGE_DESCRIPTOR, clCreateImage(x, 0, &rgba8, &bad, NULL, &error));
        bad = desc;
        bad.image_width = 1 << 24;
        EXPECT_ERROR(CL_INVALID_IMAGE_SIZE, clCreateImage(x, 0, &rgba8, &bad, NULL, &error));
        bad.image_width = SIZE_MAX / 2 + 1;
        EXPECT_ERROR(CL_INVALID_IMAGE_SIZE, clCreateImage(x, 0, &rgba8, &bad, NULL, &error));
        bad = desc;
        bad.image_row_pitch = ROW - PIXEL;
        EXPECT_ERROR(CL_INVALID_IMAGE_DESCRIPTOR,
                     clCreateImage(x, CL_MEM_COPY_HOST_PTR, &rgba8, &bad, host, &error));

        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadImage(q, b, CL_TRUE, zero, whole2d, 0, 0, back, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadBuffer(q, m, CL_TRUE, 0, 4, back, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadImage(q, m, CL_TRUE, out, whole2d, 0, 0, back, 0, NULL, NULL));
        OK(clEnqueueReadImage(q, m, CL_TRUE, zero, none, 0, 0, back, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadImage(q, m, CL_TRUE, zero, deep, 0, 0, back, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueWriteImage(q, m, CL_TRUE, zero, whole2d, 0, 0, NULL, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueWriteImage(q, m, CL_TRUE, zero, whole2d, 5, 0, host, 0, NULL, NULL));
        EXPECT(CL_INVALID_OPERATION,
               clEnqueueReadImage(q, hidden, CL_TRUE, zero, whole2d, 0, 0, back, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP,
               clEnqueueCopyImage(q, m, m, zero, zero, whole2d, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueCopyImageToBuffer(q, m, b, zero, whole2d, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueFillImage(q, m, NULL, zero, whole2d, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_VALUE, clEnqueueMapImage(q, m, CL_TRUE, CL_MAP_READ, out, whole2d,
                                                         &row, &slice, 0, NULL, NULL, &error));
        EXPECT(CL_INVALID_MEM_OBJECT, clGetImageInfo(b, CL_IMAGE_WIDTH, 8, &row, NULL));

        cl_kernel k = api_kernel(program, "sample");
        EXPECT(CL_INVALID_SAMPLER, clSetKernelArg(k, 1, sizeof(cl_sampler), NULL));
        EXPECT(CL_INVALID_SAMPLER, clSetKernelArg(k, 1, sizeof(m), &m));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 1, 3, &m));
        OK(clReleaseKernel(k));
        EXPECT(CL_INVALID_SAMPLER, clRetainSampler(NULL));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateSampler(x, CL_TRUE, 7, CL_FILTER_LINEAR, &error));

        k = api_kernel(program, "add");
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(cl_mem), NULL));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, 1, &m));
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(b), &b));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArg(k, 0, sizeof(wo), &wo));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArg(k, 1, sizeof(ro), &ro));
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(ro));
        OK(clReleaseMemObject(wo));
        OK(clReleaseMemObject(hidden));
        OK(clReleaseMemObject(b));
}

int main(void)
{
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_bool images = CL_FALSE;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images,
                                   NULL));
                if (!images)
                        return 77;
        }
        cl_program program = api_build(&a, source, NULL);
        queries(&a);
        /* PoCL 3.1 gets several of them wrong. */
        if (getenv("SPANCL_SERVERS"))
                errors(&a, program);
        transfers(&a);
        pitches(&a);
        fills_and_copies(&a);
        maps(&a);
        kernels(&a, program);
        samplers(&a, program);
        lines(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
