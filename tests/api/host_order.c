/* Commands that meet in the application's memory. Large or small, from or to any device: in the
 * end the memory has the bytes of the later command. */

#include "api.h"

enum { LARGE = 3 << 20, SMALL = 64, ROUNDS = 12 };

static uint8_t memory[LARGE], source[LARGE];

/* A buffer of LARGE bytes, all the same. */
static cl_mem filled(struct api *a, cl_uchar value)
{
        memset(source, value, LARGE);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, LARGE, NULL);
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_TRUE, 0, LARGE, source, 0, NULL, NULL));
        return m;
}

static void expect_at(size_t begin, size_t end, uint8_t value)
{
        for (size_t i = begin; i < end; i++)
                CHECK(memory[i] == value);
}

/* Large ones, small ones in their middle, rows at their end. */
static void reads(struct api *a, cl_mem ones, cl_mem twos, cl_mem threes)
{
        const size_t zero[3] = { 0, 0, 0 }, region[3] = { 32, 8, 1 };
        for (int i = 0; i < ROUNDS; i++) {
                cl_command_queue q = api_queue(a, (unsigned)i);
                size_t at = (size_t)i * 4099;
                memset(memory, 0, LARGE);
                OK(clEnqueueReadBuffer(q, ones, CL_FALSE, 0, LARGE, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, twos, CL_FALSE, 5, SMALL, memory + at, 0, NULL, NULL));
                OK(clEnqueueReadBufferRect(q, threes, CL_FALSE, zero, zero, region, 0, 0, 64, 0,
                                           memory + LARGE - 1024, 0, NULL, NULL));
                OK(clFinish(q));
                expect_at(0, at, 1);
                expect_at(at, at + SMALL, 2);
                expect_at(at + SMALL, LARGE - 1024, 1);
                for (size_t k = LARGE - 1024; k < LARGE; k++) {
                        size_t row = (k - (LARGE - 1024)) / 64, x = k % 64;
                        CHECK(memory[k] == (row < 8 && x < 32 ? 3 : 1));
                }
                OK(clEnqueueReadBuffer(q, twos, CL_FALSE, 0, SMALL, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, ones, CL_FALSE, 0, LARGE, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, threes, CL_TRUE, 0, LARGE / 2, memory, 0, NULL, NULL));
                expect_at(0, LARGE / 2, 3);
                expect_at(LARGE / 2, LARGE, 1);
        }
}

/* The same across devices, ordered by events. */
static void devices(struct api *a, cl_mem ones, cl_mem twos)
{
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue first = a->queues[i], second = a->queues[(i + 1) % a->count];
                cl_event read;
                memset(memory, 0, LARGE);
                OK(clEnqueueReadBuffer(first, ones, CL_FALSE, 0, LARGE, memory, 0, NULL, &read));
                OK(clFlush(first));
                OK(clEnqueueReadBuffer(second, twos, CL_TRUE, 0, SMALL, memory + 7, 1, &read,
                                       NULL));
                expect_at(7, 7 + SMALL, 2);
                OK(clReleaseEvent(read));
                OK(clFinish(first));
                expect_at(7, 7 + SMALL, 2);
                expect_at(7 + SMALL, LARGE, 1);
        }
}

/* Written from where a read puts them: the write has the bytes that were read. */
static void writes(struct api *a, cl_mem ones, cl_mem twos)
{
        cl_mem to = filled(a, 9);
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue q = a->queues[i];
                memset(memory, 0, LARGE);
                OK(clEnqueueReadBuffer(q, ones, CL_FALSE, 0, LARGE, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, twos, CL_FALSE, 0, SMALL, memory, 0, NULL, NULL));
                OK(clEnqueueWriteBuffer(q, to, CL_FALSE, 0, 2 * SMALL, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, ones, CL_FALSE, 0, SMALL, memory, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, to, CL_TRUE, 0, LARGE, memory, 0, NULL, NULL));
                expect_at(0, SMALL, 2);
                expect_at(SMALL, 2 * SMALL, 1);
                expect_at(2 * SMALL, LARGE, 9);
        }
        OK(clReleaseMemObject(to));
}

/* Copies that the host makes, between reads and writes of what they use. */
static void copies(struct api *a, cl_mem ones, cl_mem twos)
{
        static uint8_t other[LARGE];
        cl_mem to = filled(a, 9);
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue q = a->queues[i];
                memset(memory, 0, LARGE);
                /* The copy gets the bytes of the first read, and not those of the later one. */
                OK(clEnqueueReadBuffer(q, ones, CL_FALSE, 0, LARGE, memory, 0, NULL, NULL));
                OK(clEnqueueSVMMemcpy(q, CL_FALSE, other, memory, LARGE, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, twos, CL_FALSE, 0, SMALL, memory, 0, NULL, NULL));
                OK(clEnqueueWriteBuffer(q, to, CL_FALSE, 0, SMALL, other, 0, NULL, NULL));
                OK(clEnqueueSVMMemcpy(q, CL_FALSE, other, memory, SMALL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, to, CL_FALSE, 0, SMALL, memory + SMALL, 0, NULL, NULL));
                OK(clFinish(q));
                expect_at(0, SMALL, 2);
                expect_at(SMALL, LARGE, 1);
                memcpy(memory, other, LARGE);
                expect_at(0, SMALL, 2);
                expect_at(SMALL, LARGE, 1);
        }
        OK(clReleaseMemObject(to));
}

static int has_svm(const struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++) {
                cl_device_svm_capabilities caps = 0;
                if (clGetDeviceInfo(a->devices[i], CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps,
                                    NULL) != CL_SUCCESS ||
                    !caps)
                        return 0;
        }
        return 1;
}

int main(void)
{
        struct api a = api_open(0);
        cl_mem ones = filled(&a, 1), twos = filled(&a, 2), threes = filled(&a, 3);
        reads(&a, ones, twos, threes);
        devices(&a, ones, twos);
        writes(&a, ones, twos);
        if (has_svm(&a))
                copies(&a, ones, twos);
        OK(clReleaseMemObject(ones));
        OK(clReleaseMemObject(twos));
        OK(clReleaseMemObject(threes));
        api_close(&a);
        return 0;
}
