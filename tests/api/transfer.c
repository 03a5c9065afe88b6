/* Reads, writes, copies and fills, also of rectangles; maps with every flag. The result is compared
 * with the same done in memory. */

#include "api.h"

enum { W = 64, H = 32, D = 8, SIZE = W * H * D };

static uint8_t want[SIZE];
static uint8_t got[SIZE];
static uint8_t data[SIZE];

static void compare(struct api *a, cl_mem m)
{
        for (cl_uint i = 0; i < a->count; i++) {
                memset(got, 0xee, sizeof(got));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, SIZE, got, 0, NULL, NULL));
                CHECK(memcmp(got, want, SIZE) == 0);
        }
}

static void rect(uint8_t *to, const size_t to_at[3], size_t to_row, size_t to_slice,
                 const uint8_t *from, const size_t from_at[3], size_t from_row, size_t from_slice,
                 const size_t region[3])
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(to + (to_at[2] + z) * to_slice + (to_at[1] + y) * to_row + to_at[0],
                               from + (from_at[2] + z) * from_slice + (from_at[1] + y) * from_row +
                                       from_at[0],
                               region[0]);
}

static void linear(struct api *a, cl_mem m)
{
        cl_command_queue q = a->queues[0];
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        memcpy(want, data, SIZE);
        compare(a, m);
        OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 13, 1001, data + 5, 0, NULL, NULL));
        memcpy(want + 13, data + 5, 1001);
        cl_uint pattern = 0x01020304;
        OK(clEnqueueFillBuffer(q, m, &pattern, sizeof(pattern), 4096, 400, 0, NULL, NULL));
        for (size_t i = 0; i < 400; i += 4)
                memcpy(want + 4096 + i, &pattern, 4);
        cl_uchar16 wide = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
        OK(clEnqueueFillBuffer(q, m, &wide, sizeof(wide), 8192, 160, 0, NULL, NULL));
        for (size_t i = 0; i < 160; i += 16)
                memcpy(want + 8192 + i, &wide, 16);
        OK(clFinish(q));
        compare(a, m);
        EXPECT(CL_INVALID_VALUE,
               clEnqueueWriteBuffer(q, m, CL_TRUE, SIZE - 4, 8, data, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBuffer(q, m, CL_TRUE, 0, SIZE, NULL, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, clEnqueueCopyBuffer(q, m, m, 0, 10, 20, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueFillBuffer(q, m, &pattern, 3, 0, 30, 0, NULL, NULL));
}

static void rectangles(struct api *a, cl_mem m, cl_mem other)
{
        cl_command_queue q = a->queues[a->count - 1];
        size_t at[3] = { 5, 3, 2 };
        size_t host_at[3] = { 1, 2, 0 };
        size_t region[3] = { 20, 9, 4 };
        OK(clEnqueueWriteBufferRect(q, m, CL_TRUE, at, host_at, region, W, W * H, 50, 50 * 20, data,
                                    0, NULL, NULL));
        rect(want, at, W, W * H, data, host_at, 50, 50 * 20, region);
        compare(a, m);

        memset(got, 0, sizeof(got));
        static uint8_t expected[SIZE];
        memset(expected, 0, sizeof(expected));
        rect(expected, host_at, 50, 50 * 20, want, at, W, W * H, region);
        OK(clEnqueueReadBufferRect(q, m, CL_TRUE, at, host_at, region, W, W * H, 50, 50 * 20, got,
                                   0, NULL, NULL));
        CHECK(memcmp(got, expected, SIZE) == 0);

        /* From one buffer to another, then within one, with pitches of their own. */
        OK(clEnqueueWriteBuffer(q, other, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        size_t from[3] = { 0, 1, 1 };
        OK(clEnqueueCopyBufferRect(q, other, m, from, at, region, 40, 40 * 16, W, W * H, 0, NULL,
                                   NULL));
        rect(want, at, W, W * H, data, from, 40, 40 * 16, region);
        OK(clFinish(q));
        compare(a, m);
        EXPECT(CL_INVALID_VALUE, clEnqueueWriteBufferRect(q, m, CL_TRUE, at, host_at, region, 10,
                                                          W * H, 0, 0, data, 0, NULL, NULL));
}

static void maps(struct api *a, cl_mem m)
{
        cl_int err;
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue q = a->queues[i];
                uint8_t *p = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 100, 300,
                                                0, NULL, NULL, &err);
                OK(err);
                CHECK(memcmp(p, want + 100, 300) == 0);
                for (size_t j = 0; j < 300; j++)
                        p[j] = want[100 + j] = (uint8_t)(j * 7 + i);
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                compare(a, m);

                /* Two that overlap, both for reading. */
                uint8_t *r1 = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, 1000, 0, NULL, NULL,
                                                 &err);
                OK(err);
                uint8_t *r2 = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 500, 1000, 0, NULL,
                                                 NULL, &err);
                OK(err);
                CHECK(memcmp(r1, want, 1000) == 0 && memcmp(r2, want + 500, 1000) == 0);
                cl_uint count = 0;
                OK(clGetMemObjectInfo(m, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL));
                CHECK(count == 2);
                OK(clEnqueueUnmapMemObject(q, m, r1, 0, NULL, NULL));
                OK(clEnqueueUnmapMemObject(q, m, r2, 0, NULL, NULL));
                OK(clFinish(q));

                uint8_t *w = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 2000,
                                                64, 0, NULL, NULL, &err);
                OK(err);
                memset(w, (int)i + 9, 64);
                memset(want + 2000, (int)i + 9, 64);
                OK(clEnqueueUnmapMemObject(q, m, w, 0, NULL, NULL));
                OK(clFinish(q));
                compare(a, m);
        }
}

static void host_pointers(struct api *a)
{
        cl_int err;
        static uint8_t mine[SIZE] __attribute__((aligned(4096)));
        memcpy(mine, data, SIZE);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, SIZE, mine);
        cl_command_queue q = a->queues[a->count - 1];
        cl_uchar nine = 9;
        OK(clEnqueueFillBuffer(q, m, &nine, 1, 10, 20, 0, NULL, NULL));
        /* A map of such a buffer is the host pointer itself, with what the device wrote. */
        uint8_t *p = clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, SIZE, 0, NULL, NULL, &err);
        OK(err);
        CHECK(p == mine);
        CHECK(mine[9] == data[9] && mine[10] == 9 && mine[29] == 9 && mine[30] == data[30]);
        OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
        OK(clFinish(q));
        void *host = NULL;
        OK(clGetMemObjectInfo(m, CL_MEM_HOST_PTR, sizeof(host), &host, NULL));
        CHECK(host == mine);
        OK(clReleaseMemObject(m));
}

/* As programs exchange borders: all devices' reads and writes at a time, none of which blocks. */
static void several_at_a_time(struct api *a)
{
        enum { EACH = 4, BYTES = 640 << 10, ROUNDS = 10 };
        cl_uint n = a->count * EACH;
        cl_mem *m = api_alloc(n * sizeof(cl_mem));
        uint8_t *out = api_alloc((size_t)n * BYTES), *in = api_alloc((size_t)n * BYTES);
        for (cl_uint i = 0; i < n; i++)
                m[i] = api_buffer(a, CL_MEM_READ_WRITE, BYTES, NULL);
        for (cl_uint round = 0; round < ROUNDS; round++) {
                for (size_t i = 0; i < (size_t)n * BYTES; i++)
                        out[i] = (uint8_t)(i * 7 + (i >> 9) + round);
                memset(in, 0xee, (size_t)n * BYTES);
                for (cl_uint i = 0; i < n; i++)
                        OK(clEnqueueWriteBuffer(a->queues[i % a->count], m[i], CL_FALSE, 0, BYTES,
                                                out + (size_t)i * BYTES, 0, NULL, NULL));
                for (cl_uint i = 0; i < n; i++)
                        OK(clEnqueueReadBuffer(a->queues[i % a->count], m[i], CL_FALSE, 0, BYTES,
                                               in + (size_t)i * BYTES, 0, NULL, NULL));
                for (cl_uint i = 0; i < a->count; i++)
                        OK(clFinish(a->queues[i]));
                CHECK(memcmp(in, out, (size_t)n * BYTES) == 0);
        }
        for (cl_uint i = 0; i < n; i++)
                OK(clReleaseMemObject(m[i]));
        free(m);
        free(out);
        free(in);
}

int main(void)
{
        struct api a = api_open(0);
        for (size_t i = 0; i < SIZE; i++)
                data[i] = (uint8_t)(i * 131 + (i >> 8) * 17 + 3);
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, SIZE, NULL);
        cl_mem other = api_buffer(&a, CL_MEM_READ_WRITE, SIZE, NULL);
        linear(&a, m);
        rectangles(&a, m, other);
        maps(&a, m);
        host_pointers(&a);
        several_at_a_time(&a);
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(other));
        api_close(&a);
        return 0;
}
