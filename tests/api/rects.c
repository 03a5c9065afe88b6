/* Rectangular reads, writes and copies against a model on the host. servers: 2 */
#include <stdbool.h>

#include "api.h"

enum { SIZE = 1 << 18, ROUNDS = 150 };

static uint32_t state = 20240607;

static size_t random_below(size_t n)
{
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % n;
}

struct box {
        size_t origin[3], row_pitch, slice_pitch;
};

/* A box of that region somewhere in SIZE bytes, with or without gaps. */
static struct box random_box(const size_t region[3])
{
        struct box b;
        b.row_pitch = region[0] + (random_below(2) ? random_below(40) : 0);
        b.slice_pitch = b.row_pitch * (region[1] + (random_below(2) ? random_below(3) : 0));
        b.origin[0] = random_below(b.row_pitch - region[0] + 1);
        b.origin[1] = random_below(3);
        b.origin[2] = random_below(3);
        return b;
}

static size_t box_end(const struct box *b, const size_t region[3])
{
        return (b->origin[2] + region[2] - 1) * b->slice_pitch +
               (b->origin[1] + region[1] - 1) * b->row_pitch + b->origin[0] + region[0];
}

static size_t box_at(const struct box *b, size_t x, size_t y, size_t z)
{
        return (b->origin[2] + z) * b->slice_pitch + (b->origin[1] + y) * b->row_pitch +
               b->origin[0] + x;
}

static void model_copy(uint8_t *to, const struct box *t, const uint8_t *from, const struct box *f,
                       const size_t region[3])
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        memcpy(to + box_at(t, 0, y, z), from + box_at(f, 0, y, z), region[0]);
}

static void random_rounds(struct api *a)
{
        uint8_t *model[2], *host = api_alloc(SIZE), *expected = api_alloc(SIZE);
        cl_mem m[2];
        for (int i = 0; i < 2; i++) {
                model[i] = api_alloc(SIZE);
                api_pattern(model[i], SIZE, (unsigned)i);
                m[i] = api_buffer(a, CL_MEM_COPY_HOST_PTR, SIZE, model[i]);
        }
        for (unsigned round = 0; round < ROUNDS; round++) {
                bool large = round % 10 == 0;
                size_t region[3] = { 1 + random_below(large ? 600 : 60),
                                     1 + random_below(large ? 60 : 8), 1 + random_below(4) };
                struct box there = random_box(region), here = random_box(region);
                if (box_end(&there, region) > SIZE || box_end(&here, region) > SIZE)
                        continue;
                cl_command_queue q = api_queue(a, (unsigned)random_below(a->count));
                int i = (int)random_below(2);
                switch (random_below(3)) {
                case 0:
                        api_pattern(host, SIZE, round);
                        OK(clEnqueueWriteBufferRect(
                                q, m[i], random_below(2) ? CL_TRUE : CL_FALSE, there.origin,
                                here.origin, region, there.row_pitch, there.slice_pitch,
                                here.row_pitch, here.slice_pitch, host, 0, NULL, NULL));
                        OK(clFinish(q));
                        model_copy(model[i], &there, host, &here, region);
                        break;
                case 1:
                        memset(host, 0xab, SIZE);
                        memset(expected, 0xab, SIZE);
                        OK(clEnqueueReadBufferRect(
                                q, m[i], random_below(2) ? CL_TRUE : CL_FALSE, there.origin,
                                here.origin, region, there.row_pitch, there.slice_pitch,
                                here.row_pitch, here.slice_pitch, host, 0, NULL, NULL));
                        OK(clFinish(q));
                        model_copy(expected, &here, model[i], &there, region);
                        CHECK(!memcmp(host, expected, SIZE));
                        break;
                default:
                        OK(clEnqueueCopyBufferRect(q, m[i], m[!i], there.origin, here.origin,
                                                   region, there.row_pitch, there.slice_pitch,
                                                   here.row_pitch, here.slice_pitch, 0, NULL,
                                                   NULL));
                        OK(clFinish(q));
                        model_copy(model[!i], &here, model[i], &there, region);
                }
        }
        for (int i = 0; i < 2; i++) {
                OK(clEnqueueReadBuffer(a->queues[0], m[i], CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
                CHECK(!memcmp(host, model[i], SIZE));
                OK(clReleaseMemObject(m[i]));
                free(model[i]);
        }
        free(host);
        free(expected);
}

static void errors(struct api *a)
{
        char host[256];
        cl_command_queue q = a->queues[0];
        cl_mem m = api_buffer(a, 0, 256, NULL), n = api_buffer(a, 0, 256, NULL);
        const size_t zero[3] = { 0 }, one[3] = { 1, 1, 1 }, box[3] = { 8, 8, 1 };
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBufferRect(q, m, CL_TRUE, NULL, zero, box, 0, 0, 0, 0,
                                                         host, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBufferRect(q, m, CL_TRUE, zero, zero, box, 7, 0, 0, 0,
                                                         host, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBufferRect(q, m, CL_TRUE, zero, zero, box, 8, 63, 0,
                                                         0, host, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueWriteBufferRect(q, m, CL_TRUE, zero, zero, box, 64, 0, 0,
                                                          0, host, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueWriteBufferRect(q, m, CL_TRUE, zero, zero, one, 0, 0, 0,
                                                          0, NULL, 0, NULL, NULL));
        /* Side by side in the same rows is no overlap, one byte further is. */
        const size_t beside[3] = { 8, 0, 0 }, across[3] = { 7, 0, 0 };
        OK(clEnqueueCopyBufferRect(q, m, m, zero, beside, box, 16, 128, 16, 128, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, clEnqueueCopyBufferRect(q, m, m, zero, across, box, 16, 128, 16,
                                                            128, 0, NULL, NULL));
        OK(clEnqueueCopyBufferRect(q, m, n, zero, across, box, 16, 128, 16, 128, 0, NULL, NULL));
        OK(clFinish(q));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
}

int main(void)
{
        struct api a = api_open(0);
        random_rounds(&a);
        errors(&a);
        api_close(&a);
        printf("rects: %u devices\n", a.count);
        return 0;
}
