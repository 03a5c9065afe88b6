/* Measures unified shared memory on the first device of the first platform: faults, first touches, and launches after
 * the host has read everything, or written here and there. A read of 256 MiB after a kernel stands beside
 * clEnqueueReadBuffer. A launch that may reach memory in which nothing has changed stands beside one that reaches none.
 *
 *   bench_usm [MIB] */
#include "opencl.h"

#include <CL/cl_ext.h>
#include <stdint.h>
#include <string.h>

#include "samples.h"

enum { LAUNCHES = 2000, BLOCK = 64 << 10, FAULTS = 200, ROUNDS = 7 };

static struct launcher l;
static cl_kernel look; /* reads its argument */
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

/* Read all of it after a command, by accesses and by clEnqueueReadBuffer, in turn. `warm`: by accesses once more, when
 * nothing has to come. In GB/s. */
static void compare(volatile uint8_t *p, size_t size, double *ret_accesses, double *ret_warm,
                    double *ret_buffer)
{
        static struct samples accesses, warm, buffer;
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
                samples_add(&warm, sum_us(p, size));
                CHECK(clEnqueueFillBuffer(l.queue, m, &one, sizeof(one), 0, size, 0, NULL, NULL));
                CHECK(clFinish(l.queue));
                double begin = now_us();
                CHECK(clEnqueueReadBuffer(l.queue, m, CL_TRUE, 0, size, to, 0, NULL, NULL));
                samples_add(&buffer, now_us() - begin);
        }
        *ret_accesses = (double)size / samples_at(&accesses, 0.5) / 1e3;
        *ret_warm = (double)size / samples_at(&warm, 0.5) / 1e3;
        *ret_buffer = (double)size / samples_at(&buffer, 0.5) / 1e3;
        CHECK(clReleaseMemObject(m));
        free(to);
}

/* The time of a call that enqueues the kernel, which is waited for then. */
static double launches_us(cl_kernel k, int count)
{
        const size_t one = 1;
        double begin = now_us();
        for (int i = 0; i < count; i++)
                CHECK(clEnqueueNDRangeKernel(l.queue, k, 1, NULL, &one, NULL, 0, NULL, NULL));
        double us = (now_us() - begin) / count;
        CHECK(clFinish(l.queue));
        return us;
}

static double launch_us(void)
{
        return launches_us(l.kernel, LAUNCHES);
}

static void build_look(clSetKernelArgMemPointerINTEL_fn set_pointer, const volatile void *p)
{
        static const char *source = "__kernel void look(__global const uint *p) {}";
        cl_int err;
        cl_program program = clCreateProgramWithSource(l.context, 1, &source, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
        look = clCreateKernel(program, "look", &err);
        check(err, "clCreateKernel");
        CHECK(set_pointer(look, 0, (const void *)(uintptr_t)p));
}

/* Touch each block, in descending order, so that each access has a block of its own. */
static void each_block(volatile uint8_t *p, size_t size, int write)
{
        for (size_t i = size / BLOCK; i-- > 0;) {
                if (write)
                        p[i * BLOCK] = 1;
                else
                        (void)p[i * BLOCK];
        }
}

/* Launches that read memory that the host has used before. */
static void dirty(volatile uint8_t *p, size_t size)
{
        static struct samples read, clean, writes, written;
        for (int i = 0; i < ROUNDS; i++) {
                fill(p, size);
                each_block(p, size, 0);
                samples_add(&read, launches_us(look, 1));
                samples_add(&clean, launches_us(look, LAUNCHES));
                double begin = now_us();
                each_block(p, size, 1);
                samples_add(&writes, (now_us() - begin) / ((double)size / BLOCK));
                begin = now_us();
                (void)launches_us(look, 1);
                samples_add(&written, now_us() - begin);
        }
        printf("\"launch_read_us\": %.1f, \"launch_clean_us\": %.2f, \"scattered_write_us\": %.1f, "
               "\"launch_scattered_ms\": %.2f, ",
               samples_at(&read, 0.5), samples_at(&clean, 0.5), samples_at(&writes, 0.5),
               samples_at(&written, 0.5) / 1e3);
}

/* The same of 64 KiB, launch after launch. */
static double small_us(clSetKernelArgMemPointerINTEL_fn set_pointer)
{
        volatile uint8_t *p = alloc(BLOCK);
        p[0] = 1;
        build_look(set_pointer, p);
        (void)launches_us(look, LAUNCHES);
        double us = launches_us(look, LAUNCHES);
        CHECK(free_blocking(l.context, (void *)(uintptr_t)p));
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
        clSetKernelArgMemPointerINTEL_fn set_pointer =
                (clSetKernelArgMemPointerINTEL_fn)find("clSetKernelArgMemPointerINTEL");

        (void)launch_us();
        double without = launch_us(), small = small_us(set_pointer);
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
        printf("{");
        build_look(set_pointer, p);
        dirty(p, size);
        double accesses, warm, buffer;
        compare(p, size, &accesses, &warm, &buffer);
        CHECK(clSetKernelExecInfo(l.kernel, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                                  sizeof(yes), &yes));
        (void)launch_us();
        double reaching = launch_us();
        printf("\"first_touch_us\": %.2f, \"read_fault_us\": %.1f, \"write_fault_us\": %.1f, "
               "\"read_gb_s\": %.2f, \"read_warm_gb_s\": %.2f, \"read_buffer_gb_s\": %.2f, \"launch_us\": %.2f, "
               "\"launch_reaching_us\": %.2f, \"launch_small_us\": %.2f}\n",
               touch, samples_at(&reads, 0.5), samples_at(&writes, 0.5), accesses, warm, buffer,
               without, reaching, small);
        CHECK(free_blocking(l.context, (void *)(uintptr_t)p));
        return 0;
}
