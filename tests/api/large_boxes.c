/* Rectangles and images of some MiB, which are moved in parts. Each byte is in its place, also
 * between devices. The bytes around the box stay as they were. servers: 2 */
#include <stdbool.h>

#include "api.h"

enum { PIXEL = 4 };

static uint32_t state = 1;

static void fill(uint8_t *to, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                state = state * 1664525u + 1013904223u;
                to[i] = (uint8_t)(state >> 24);
        }
}

/* Copy the region at `from_at` of one box of those pitches to `to_at` of another. */
static void copy_box(uint8_t *to, const size_t to_at[3], size_t to_row, size_t to_slice,
                     const uint8_t *from, const size_t from_at[3], size_t from_row,
                     size_t from_slice, const size_t region[3])
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(to + (to_at[2] + z) * to_slice + (to_at[1] + y) * to_row + to_at[0],
                               from + (from_at[2] + z) * from_slice + (from_at[1] + y) * from_row +
                                       from_at[0],
                               region[0]);
}

static void rectangle(struct api *a, const size_t region[3])
{
        cl_command_queue first = a->queues[0], last = a->queues[a->count - 1];
        const size_t row = region[0] + 13, slice = row * (region[1] + 2), host_row = region[0] + 5,
                     host_slice = host_row * (region[1] + 1);
        const size_t at[3] = { 7, 1, 1 }, host_at[3] = { 3, 1, 0 };
        const size_t size = slice * (region[2] + 2), host_size = host_slice * (region[2] + 1);
        uint8_t *want = api_alloc(size), *got = api_alloc(size), *host = api_alloc(host_size),
                *back = api_alloc(host_size);
        fill(want, size);
        fill(host, host_size);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, size, NULL);
        OK(clEnqueueWriteBuffer(first, m, CL_TRUE, 0, size, want, 0, NULL, NULL));
        OK(clEnqueueWriteBufferRect(first, m, CL_TRUE, at, host_at, region, row, slice, host_row,
                                    host_slice, host, 0, NULL, NULL));
        copy_box(want, at, row, slice, host, host_at, host_row, host_slice, region);
        OK(clFinish(first));
        OK(clEnqueueReadBuffer(last, m, CL_TRUE, 0, size, got, 0, NULL, NULL));
        CHECK(!memcmp(got, want, size));
        /* Only the box of `back` changes. */
        memcpy(back, host, host_size);

        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memset(back + (host_at[2] + z) * host_slice + (host_at[1] + y) * host_row +
                                       host_at[0],
                               0xEE, region[0]);
        OK(clEnqueueReadBufferRect(last, m, CL_TRUE, at, host_at, region, row, slice, host_row,
                                   host_slice, back, 0, NULL, NULL));
        CHECK(!memcmp(back, host, host_size));
        OK(clReleaseMemObject(m));
        free(want);
        free(got);
        free(host);
        free(back);
}

static void image(struct api *a, cl_mem_object_type type, const size_t size[3], const size_t at[3],
                  const size_t region[3])
{
        cl_command_queue first = a->queues[0], last = a->queues[a->count - 1];
        bool layers = type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        const cl_image_desc desc = { .image_type = type,
                                     .image_width = size[0],
                                     .image_height = size[1],
                                     .image_depth = layers ? 0 : size[2],
                                     .image_array_size = layers ? size[2] : 0 };
        const size_t zero[3] = { 0, 0, 0 }, row = size[0] * PIXEL, slice = row * size[1],
                     all = slice * size[2], box_row = (region[0] + 9) * PIXEL,
                     box_slice = size[2] > 1 ? box_row * (region[1] + 1) : 0;
        const size_t bytes[3] = { region[0] * PIXEL, region[1], region[2] },
                     byte_at[3] = { at[0] * PIXEL, at[1], at[2] };
        const size_t box_size = box_row * (region[1] + 1) * region[2];
        uint8_t *want = api_alloc(all), *got = api_alloc(all), *box = api_alloc(box_size),
                *back = api_alloc(box_size);
        cl_int err;
        fill(want, all);
        fill(box, box_size);
        memcpy(back, box, box_size);
        cl_mem m = clCreateImage(a->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
        OK(err);
        OK(clEnqueueWriteImage(first, m, CL_TRUE, zero, size, 0, 0, want, 0, NULL, NULL));
        OK(clEnqueueWriteImage(first, m, CL_TRUE, at, region, box_row, box_slice, box, 0, NULL,
                               NULL));
        copy_box(want, byte_at, row, slice, box, zero, box_row, box_slice, bytes);
        OK(clFinish(first));
        OK(clEnqueueReadImage(last, m, CL_TRUE, zero, size, 0, 0, got, 0, NULL, NULL));
        CHECK(!memcmp(got, want, all));
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memset(back + z * box_slice + y * box_row, 0xEE, bytes[0]);
        OK(clEnqueueReadImage(last, m, CL_TRUE, at, region, box_row, box_slice, back, 0, NULL,
                              NULL));
        CHECK(!memcmp(back, box, box_size));
        OK(clReleaseMemObject(m));
        free(want);
        free(got);
        free(box);
        free(back);
}

int main(void)
{
        struct api a = api_open(0);
        /* One slice in many rows, many slices, few large ones, one long row. */
        static const size_t regions[][3] = {
                { 1003, 2001, 1 }, { 300, 41, 200 }, { 1100, 1000, 3 },
                { 3000001, 1, 1 }, { 900001, 3, 1 }, { 1, 1, 300000 }
        };
        for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
                rectangle(&a, regions[i]);
        cl_bool images = CL_TRUE;
        for (cl_uint i = 0; i < a.count; i++) {
                cl_bool has;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_IMAGE_SUPPORT, sizeof(has), &has, NULL));
                images &= has;
        }
        if (images) {
                const size_t flat[3] = { 1200, 900, 1 }, deep[3] = { 120, 90, 70 },
                             thick[3] = { 700, 600, 3 }, wide[3] = { 2400, 1500, 1 };
                image(&a, CL_MEM_OBJECT_IMAGE2D, flat, (size_t[3]){ 3, 5, 0 },
                      (size_t[3]){ 1101, 801, 1 });
                image(&a, CL_MEM_OBJECT_IMAGE2D, wide, (size_t[3]){ 1, 0, 0 },
                      (size_t[3]){ 2399, 1500, 1 });
                image(&a, CL_MEM_OBJECT_IMAGE3D, deep, (size_t[3]){ 1, 2, 3 },
                      (size_t[3]){ 117, 77, 61 });
                image(&a, CL_MEM_OBJECT_IMAGE2D_ARRAY, thick, (size_t[3]){ 3, 0, 1 },
                      (size_t[3]){ 600, 599, 2 });
        }
        api_close(&a);
        return 0;
}
