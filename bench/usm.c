/* Measures unified shared memory on the first device of the first platform: faults, first touches, reading 256 MiB
 * after a kernel beside clEnqueueReadBuffer, and a launch that may reach memory in which nothing has changed beside
 * one that reaches none.
 *
 *   bench_usm [MIB] */
#include "opencl.h"

#include <CL/cl_ext.h>
#include <stdint.h>
#include <string.h>

#include "samples.h"

enum { LAUNCHES = 2000, BLOCK = 64 << 10, FAULTS = 200, ROUNDS = 7 };

static struct launcher l;
static clSharedMemAllocINTEL_fn shared_alloc;
static clMemBlockingFreeINTEL_fn free_blocking;
static clEnqueueMemFillINTEL_fn mem_fill;

static void *find(const char *name)
{
        void *f = clGetExtensionFunctionAddressForPlatform(l.platform, name);
        check(f ? CL_SUCCESS : CL_INVALID_OPERATION, name);
        return f;
}

static volatile uint8_t *alloc(size_t size)
{
        cl_int err;
        void *p = shared_alloc(l.context, NULL, NULL, size, 0, &err);
        check(err, "clSharedMemAllocINTEL");
        return p;
}

/* The device has the bytes afterwards. */
static void fill(volatile uint8_t *p, size_t size)
{
        const cl_uint one = 0x01010101;
        CHECK(mem_fill(l.queue, (void *)(uintptr_t)p, &one, sizeof(one), size, 0, NULL, NULL));
        CHECK(clFinish(l.queue));
}

static double sum_us(volatile uint8_t *p, size_t size)
{
        const uint64_t *words = (const uint64_t *)(uintptr_t)p;
        uint64_t sum = 0;
        double begin = now_us();
        for (size_t i = 0; i < size / sizeof(*words); i++)
                sum += words[i];
        double us = now_us() - begin;
        check(sum == size / sizeof(*words) * 0x0101010101010101 ? CL_SUCCESS : CL_INVALID_VALUE,
              "the bytes");
        return us;
}

/* Read all of it after a command, by accesses and by clEnqueueReadBuffer, in turn. */
static void compare(volatile uint8_t *p, size_t size, double *ret_accesses, double *ret_buffer)
{
        static struct samples accesses, buffer;
        const cl_uchar one = 1;
        void *to = malloc(size);
        cl_int err;
        cl_mem m = clCreateBuffer(l.context, 0, size, NULL, &err);
        check(err, "clCreateBuffer");
        check(to ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY, "malloc");
        memset(to, 1, size);
        for (int i = 0; i < ROUNDS; i++) {
                fill(p, size);
                samples_add(&accesses, sum_us(p, size));
                CHECK(clEnqueueFillBuffer(l.queue, m, &one, sizeof(one), 0, size, 0, NULL, NULL));
                CHECK(clFinish(l.queue));
                double begin = now_us();
                CHECK(clEnqueueReadBuffer(l.queue, m, CL_TRUE, 0, size, to, 0, NULL, NULL));
                samples_add(&buffer, now_us() - begin);
        }
        *ret_accesses = (double)size / samples_at(&accesses, 0.5) / 1e3;
        *ret_buffer = (double)size / samples_at(&buffer, 0.5) / 1e3;
        CHECK(clReleaseMemObject(m));
        free(to);
}

static double launch_us(void)
{
        const size_t one = 1;
        double begin = now_us();
        for (int i = 0; i < LAUNCHES; i++)
                CHECK(clEnqueueNDRangeKernel(l.queue, l.kernel, 1, NULL, &one, NULL, 0, NULL,
                                             NULL));
        double us = (now_us() - begin) / LAUNCHES;
        CHECK(clFinish(l.queue));
        return us;
}

int main(int argc, char **argv)
{
        static struct samples reads, writes;
        size_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) << 20;
        const cl_bool yes = CL_TRUE;
        launcher_init(&l);
        shared_alloc = (clSharedMemAllocINTEL_fn)find("clSharedMemAllocINTEL");
        free_blocking = (clMemBlockingFreeINTEL_fn)find("clMemBlockingFreeINTEL");
        mem_fill = (clEnqueueMemFillINTEL_fn)find("clEnqueueMemFillINTEL");

        (void)launch_us();
        double without = launch_us();
        volatile uint8_t *p = alloc(size);
        double begin = now_us();
        for (size_t i = 0; i < size; i += 4096)
                p[i] = 1;
        double touch = (now_us() - begin) / ((double)size / 4096);
        fill(p, size);
        /* Descending, so that each access fetches one block. */
        for (size_t i = FAULTS; i-- > 0 && FAULTS * BLOCK <= size;) {
                begin = now_us();
                (void)p[i * BLOCK];
                samples_add(&reads, now_us() - begin);
                begin = now_us();
                p[i * BLOCK] = 2;
                samples_add(&writes, now_us() - begin);
        }
        double accesses, buffer;
        compare(p, size, &accesses, &buffer);
        CHECK(clSetKernelExecInfo(l.kernel, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                                  sizeof(yes), &yes));
        (void)launch_us();
        double reaching = launch_us();
        printf("{\"first_touch_us\": %.2f, \"read_fault_us\": %.1f, \"write_fault_us\": %.1f, "
               "\"read_gb_s\": %.2f, \"read_buffer_gb_s\": %.2f, \"launch_us\": %.2f, "
               "\"launch_reaching_us\": %.2f}\n",
               touch, samples_at(&reads, 0.5), samples_at(&writes, 0.5), accesses, buffer, without,
               reaching);
        CHECK(free_blocking(l.context, (void *)(uintptr_t)p));
        return 0;
}
