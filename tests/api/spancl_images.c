/* Images in the application's own memory, of every type and with pitches: initial content, what a map shows, and
 * what is written under one. servers: 2 */
#include <stdbool.h>

#include "api.h"

enum { WIDTH = 9, HEIGHT = 6, LAYERS = 4, PIXEL = 4, ROW = 48, SLICE = ROW * 8 };

static const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };

struct shape {
        cl_mem_object_type type;
        size_t region[3];
        bool slices; /* has a slice pitch */
        bool rows;   /* the second coordinate is a row, and not a layer */
};

static const struct shape shapes[] = {
        { CL_MEM_OBJECT_IMAGE1D, { WIDTH, 1, 1 }, false, true },
        { CL_MEM_OBJECT_IMAGE1D_ARRAY, { WIDTH, LAYERS, 1 }, true, false },
        { CL_MEM_OBJECT_IMAGE2D, { WIDTH, HEIGHT, 1 }, false, true },
        { CL_MEM_OBJECT_IMAGE2D_ARRAY, { WIDTH, HEIGHT, LAYERS }, true, true },
        { CL_MEM_OBJECT_IMAGE3D, { WIDTH, HEIGHT, LAYERS }, true, true },
};

static cl_mem make(const struct api *a, const struct shape *s, void *own)
{
        const cl_image_desc desc = { .image_type = s->type,
                                     .image_width = WIDTH,
                                     .image_height = HEIGHT,
                                     .image_depth = LAYERS,
                                     .image_array_size = LAYERS,
                                     .image_row_pitch = ROW,
                                     .image_slice_pitch = s->slices ? SLICE : 0 };
        cl_int e;
        cl_mem m = clCreateImage(a->context, CL_MEM_USE_HOST_PTR, &format, &desc, own, &e);
        OK(e);
        return m;
}

/* Where a pixel is in the application's memory. */
static size_t place(const struct shape *s, size_t x, size_t y, size_t z)
{
        return x * PIXEL + y * (s->rows ? ROW : SLICE) + z * SLICE;
}

/* The image has what `own` has, as each device sees it. */
static void same(const struct api *a, const struct shape *s, cl_mem m, const uint8_t *own)
{
        static uint8_t out[WIDTH * HEIGHT * LAYERS * PIXEL];
        const size_t zero[3] = { 0 }, *n = s->region;
        for (unsigned i = 0; i < 2; i++) {
                const uint8_t *p = out;
                memset(out, 0xee, sizeof(out));
                OK(clEnqueueReadImage(api_queue(a, i), m, CL_TRUE, zero, n, 0, 0, out, 0, NULL,
                                      NULL));
                for (size_t z = 0; z < n[2]; z++)
                        for (size_t y = 0; y < n[1]; y++)
                                for (size_t x = 0; x < n[0]; x++, p += PIXEL)
                                        CHECK(!memcmp(p, own + place(s, x, y, z), PIXEL));
        }
}

static void own_memory(const struct api *a, const struct shape *s)
{
        static uint8_t model[SLICE * LAYERS];
        uint8_t *own = api_alloc(sizeof(model));
        const size_t *n = s->region, all[3] = { 0 };
        const size_t at[3] = { 2, n[1] / 2, n[2] / 2 };
        const size_t part[3] = { 3, n[1] - at[1], n[2] - at[2] };
        cl_int e;
        api_pattern(own, sizeof(model), (unsigned)s->type);
        memcpy(model, own, sizeof(model));
        cl_mem m = make(a, s, own);
        void *host;
        size_t pitch;
        OK(clGetMemObjectInfo(m, CL_MEM_HOST_PTR, sizeof(host), &host, NULL));
        CHECK(host == own);
        OK(clGetImageInfo(m, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL));
        CHECK(pitch == ROW);
        OK(clGetImageInfo(m, CL_IMAGE_SLICE_PITCH, sizeof(pitch), &pitch, NULL));
        CHECK(pitch == (s->slices ? SLICE : 0));
        same(a, s, m, model);
        for (unsigned i = 0; i < 4; i++) {
                cl_command_queue q = api_queue(a, i), r = api_queue(a, i + 1);
                const cl_uint color[4] = { i, 1, 2, 3 };
                const uint8_t pixel[PIXEL] = { (uint8_t)i, 1, 2, 3 };
                const size_t one[3] = { 1, 1, 1 };
                size_t row = 0, slice = 1;
                /* A device writes, a map shows it. */
                OK(clEnqueueFillImage(r, m, color, at, one, 0, NULL, NULL));
                OK(clFinish(r));
                memcpy(model + place(s, at[0], at[1], at[2]), pixel, PIXEL);
                uint8_t *p = clEnqueueMapImage(q, m, CL_TRUE, CL_MAP_READ, all, n, &row, &slice, 0,
                                               NULL, NULL, &e);
                OK(e);
                CHECK(p == own && row == ROW && slice == (s->slices ? SLICE : 0));
                CHECK(!memcmp(own + place(s, at[0], at[1], at[2]), pixel, PIXEL));
                /* A second one for reading, of a part. */
                uint8_t *again = clEnqueueMapImage(r, m, CL_TRUE, CL_MAP_READ, at, part, &row,
                                                   &slice, 0, NULL, NULL, &e);
                OK(e);
                CHECK(again == own + place(s, at[0], at[1], at[2]));
                OK(clEnqueueUnmapMemObject(r, m, again, 0, NULL, NULL));
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                OK(clFinish(r));
                same(a, s, m, model);
                /* The application writes a part under a map, the devices see it. */
                p = clEnqueueMapImage(q, m, CL_TRUE,
                                      i % 2 ? CL_MAP_WRITE : CL_MAP_WRITE_INVALIDATE_REGION, at,
                                      part, &row, &slice, 0, NULL, NULL, &e);
                OK(e);
                for (size_t z = 0; z < part[2]; z++)
                        for (size_t y = 0; y < part[1]; y++) {
                                size_t there = place(s, at[0], at[1] + y, at[2] + z);
                                api_pattern(model + there, part[0] * PIXEL, i * 100);
                                memcpy(p + place(s, 0, y, z), model + there, part[0] * PIXEL);
                        }
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                same(a, s, m, model);
        }
        /* The bytes between the rows are the application's. */
        for (size_t y = 0; s->rows && y < n[1]; y++)
                CHECK(!memcmp(own + y * ROW + WIDTH * PIXEL, model + y * ROW + WIDTH * PIXEL,
                              ROW - WIDTH * PIXEL));
        OK(clReleaseMemObject(m));
        free(own);
}

/* clCreateImage2D and clCreateImage3D say of a size that it is not one. */
static void legacy_errors(const struct api *a)
{
        char data[64];
        EXPECT_ERROR(CL_INVALID_IMAGE_SIZE,
                     clCreateImage2D(a->context, 0, &format, 0, 4, 0, NULL, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_SIZE, clCreateImage2D(a->context, CL_MEM_COPY_HOST_PTR,
                                                            &format, 4, 4, 15, data, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_SIZE, clCreateImage3D(a->context, CL_MEM_COPY_HOST_PTR,
                                                            &format, 2, 2, 2, 8, 12, data, &error));
        EXPECT_ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                     clCreateImage2D(a->context, 0, NULL, 4, 4, 0, NULL, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR,
                     clCreateImage2D(a->context, 0, &format, 4, 4, 0, data, &error));
}

/* Commands that images do not allow, beside those of images.c. */
static void errors(const struct api *a)
{
        static const cl_image_format other_format = { CL_RGBA, CL_SIGNED_INT8 };
        const cl_mem_properties unknown[] = { 0x7777, 1, 0 }, none[] = { 0 };
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                               .image_width = WIDTH,
                               .image_height = HEIGHT };
        const size_t zero[3] = { 0 }, one[3] = { 1, 1, 1 }, last[3] = { WIDTH - 1, HEIGHT - 1, 0 },
                     two[3] = { 2, 1, 1 };
        static cl_uint data[WIDTH * HEIGHT * LAYERS];
        const size_t cube[3] = { 2, 2, 2 };
        cl_command_queue q = a->queues[0];
        size_t row = 0, slice = 0;
        cl_int e;
        EXPECT_ERROR(
                CL_INVALID_PROPERTY,
                clCreateImageWithProperties(a->context, unknown, 0, &format, &desc, NULL, &error));
        EXPECT_ERROR(CL_INVALID_CONTEXT,
                     clCreateImageWithProperties(NULL, none, 0, &format, &desc, NULL, &error));
        cl_mem m = clCreateImageWithProperties(a->context, none, 0, &format, &desc, NULL, &e);
        OK(e);
        cl_mem other = clCreateImage(a->context, 0, &other_format, &desc, NULL, &e);
        OK(e);
        desc.image_type = CL_MEM_OBJECT_IMAGE3D;
        desc.image_depth = LAYERS;
        cl_mem deep = clCreateImage(a->context, 0, &format, &desc, NULL, &e);
        OK(e);
        cl_mem b = api_buffer(a, 0, 4 * WIDTH, NULL);
        const cl_image_desc in_buffer = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                          .image_width = WIDTH,
                                          .mem_object = b };
        cl_mem line = clCreateImage(a->context, 0, &format, &in_buffer, NULL, &e);
        OK(e);
        cl_context x = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        cl_mem foreign = clCreateBuffer(x, 0, 4 * WIDTH, NULL, &e);
        OK(e);

        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadImage(q, m, CL_TRUE, NULL, one, 0, 0, data, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadImage(q, m, CL_TRUE, zero, NULL, 0, 0, data, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, /* rows, and then slices, shorter than what they hold */
               clEnqueueReadImage(q, deep, CL_TRUE, zero, cube, 7, 0, data, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadImage(q, deep, CL_TRUE, zero, cube, 8, 15, data, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST,
               clEnqueueReadImage(q, m, CL_TRUE, zero, one, 0, 0, data, 1, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueFillImage(q, m, data, last, two, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueFillImage(q, b, data, zero, one, 0, NULL, NULL));
        EXPECT(CL_IMAGE_FORMAT_MISMATCH,
               clEnqueueCopyImage(q, m, other, zero, zero, one, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueCopyImage(q, m, deep, last, zero, two, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueCopyImage(q, deep, m, zero, last, two, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueCopyImage(q, b, m, zero, zero, one, 0, NULL, NULL));
        EXPECT(CL_INVALID_CONTEXT,
               clEnqueueCopyImageToBuffer(q, m, foreign, zero, one, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_CONTEXT,
               clEnqueueCopyBufferToImage(q, foreign, m, 0, zero, one, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueCopyImageToBuffer(q, line, b, zero, one, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueCopyBufferToImage(q, b, line, 0, zero, one, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueCopyBufferToImage(q, b, m, 4 * WIDTH - 4, zero, two, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_VALUE, clEnqueueMapImage(q, m, CL_TRUE, CL_MAP_READ, zero, one,
                                                         NULL, &slice, 0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clEnqueueMapImage(q, deep, CL_TRUE, CL_MAP_READ, zero, one,
                                                         &row, NULL, 0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT,
                     clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &error));
        void *p = clEnqueueMapImage(q, m, CL_TRUE, CL_MAP_READ, zero, one, &row, NULL, 0, NULL,
                                    NULL, &e);
        OK(e);
        EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, deep, p, 0, NULL, NULL));
        OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
        OK(clFinish(q));
        const cl_mem all[] = { foreign, line, b, deep, other, m };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                OK(clReleaseMemObject(all[i]));
        OK(clReleaseContext(x));
}

/* Every command on a 1D image of a buffer; the buffer has what the image has. */
static void lines(const struct api *a)
{
        enum { N = 6000 };
        static cl_uint want[N], got[N];
        cl_int err;
        cl_mem b = api_buffer(a, 0, sizeof(want), NULL),
               other = api_buffer(a, 0, sizeof(want), NULL);
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                     .image_width = N,
                                     .mem_object = b };
        const cl_image_desc row = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                    .image_width = 100,
                                    .image_height = 2 };
        cl_mem line = clCreateImage(a->context, 0, &format, &desc, NULL, &err);
        OK(err);
        cl_mem plane = clCreateImage(a->context, 0, &format, &row, NULL, &err);
        OK(err);
        const size_t all[3] = { N, 1, 1 }, part[3] = { 100, 1, 1 }, most[3] = { 5000, 1, 1 };
        const size_t zero[3] = { 0, 0, 0 }, at[3] = { 300, 0, 0 }, second[3] = { 0, 1, 0 },
                     far[3] = { 900, 0, 0 };
        const cl_uint colour[4] = { 0x11, 0x22, 0x33, 0x44 };
        for (unsigned i = 0; i < 4; i++) {
                cl_command_queue q = api_queue(a, i);
                api_pattern(want, sizeof(want), i);
                OK(clEnqueueWriteImage(q, line, CL_TRUE, zero, all, 0, 0, want, 0, NULL, NULL));
                OK(clEnqueueFillImage(q, line, colour, far, most, 0, NULL, NULL));
                OK(clEnqueueCopyImage(q, line, plane, at, second, part, 0, NULL, NULL));
                OK(clEnqueueCopyImage(q, plane, line, second, zero, part, 0, NULL, NULL));
                OK(clEnqueueCopyImageToBuffer(q, line, other, at, part, 40, 0, NULL, NULL));
                OK(clEnqueueCopyBufferToImage(q, other, line, 80, at, (size_t[]){ 50, 1, 1 }, 0,
                                              NULL, NULL));
                for (size_t k = 0; k < most[0]; k++)
                        want[far[0] + k] = 0x44332211;
                memcpy(want, want + 300, 400);
                memmove(want + 300, want + 310, 200);
                OK(clEnqueueReadImage(q, line, CL_TRUE, at, part, 0, 0, got, 0, NULL, NULL));
                CHECK(!memcmp(got, want + 300, 400));
                OK(clEnqueueReadBuffer(api_queue(a, i + 1), b, CL_TRUE, 0, sizeof(got), got, 0,
                                       NULL, NULL));
                CHECK(!memcmp(got, want, sizeof(got)));
        }
        OK(clReleaseMemObject(line));
        OK(clReleaseMemObject(plane));
        OK(clReleaseMemObject(b));
        OK(clReleaseMemObject(other));
}

int main(void)
{
        struct api a = api_open(0);
        legacy_errors(&a);
        errors(&a);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
                own_memory(&a, &shapes[i]);
        lines(&a);
        api_close(&a);
        printf("images: %u devices\n", a.count);
        return 0;
}
