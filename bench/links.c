/* Programs that depend on the link in different ways, for what_if.py. Each checks what it computes, and prints one JSON
 * object: the seconds from its first OpenCL call.
 *
 *     bench_links finish STEPS     a launch and a clFinish in each step
 *     bench_links launches STEPS   100 launches, then a clFinish, in each step
 *     bench_links transfers MIB    writes and reads of 1, 4, ... up to MIB MiB: blocking, and without blocking around a
 *                                  kernel
 *     bench_links solver STEPS     as a conjugate-gradient solver: three launches in each step, and two numbers read
 */
#include "opencl.h"
#include "samples.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N = 65536, LAUNCHES = 100, ROUNDS = 40 };

static const char source[] =
        "kernel void advance(global uint *a, uint rounds) {\n"
        "        size_t i = get_global_id(0);\n"
        "        uint v = a[i];\n"
        "        for (uint r = 0; r < rounds; r++)\n"
        "                v = v * 1664525u + (uint)i + r;\n"
        "        a[i] = v;\n"
        "}\n"
        "kernel void add(global uint *a, uint by) { a[get_global_id(0)] += by; }\n";

static cl_context context;
static cl_command_queue queue;
static cl_kernel advance, add;
static cl_mem mem;
static uint32_t *data;

static void launch(cl_kernel k, cl_mem m, cl_uint value, size_t n)
{
        CHECK(clSetKernelArg(k, 0, sizeof(m), &m));
        CHECK(clSetKernelArg(k, 1, sizeof(value), &value));
        CHECK(clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL));
}

static void check_that(int right, const char *what)
{
        if (right)
                return;
        fprintf(stderr, "bench_links: %s is wrong\n", what);
        exit(1);
}

static void open_device(void)
{
        const char *text = source;
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
        advance = clCreateKernel(program, "advance", &err);
        check(err, "clCreateKernel");
        add = clCreateKernel(program, "add", &err);
        check(err, "clCreateKernel");
}

static void make_buffer(size_t size)
{
        cl_int err;
        mem = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        data = malloc(size);
        if (!data)
                abort();
        uint32_t v = 1;
        for (size_t i = 0; i < size / sizeof(*data); i++) /* nothing that can be compressed */
                data[i] = v = v * 1664525u + 1013904223u;
        CHECK(clEnqueueFillBuffer(queue, mem, &(cl_uint){ 0 }, sizeof(cl_uint), 0, size, 0, NULL,
                                  NULL));
}

static void finish(int steps, int launches)
{
        make_buffer(N * sizeof(*data));
        for (int i = 0; i < steps; i++) {
                for (int k = 0; k < launches; k++)
                        launch(launches > 1 ? add : advance, mem, launches > 1 ? 1 : ROUNDS,
                               launches > 1 ? 256 : N);
                CHECK(clFinish(queue));
        }
        CHECK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 256 * sizeof(*data), data, 0, NULL,
                                  NULL));
        check_that(launches == 1 || data[255] == (uint32_t)(steps * launches), "the sum");
}

static void transfers(int mib)
{
        size_t most = (size_t)mib << 20;
        uint32_t *back = malloc(most);
        make_buffer(most);
        if (!back)
                abort();
        for (size_t size = 1 << 20; size <= most; size *= 4) {
                CHECK(clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, size, data, 0, NULL, NULL));
                CHECK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, size, back, 0, NULL, NULL));
                check_that(!memcmp(back, data, size), "what was read");
                CHECK(clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, size, data, 0, NULL, NULL));
                launch(add, mem, 7, size / sizeof(*data));
                CHECK(clEnqueueReadBuffer(queue, mem, CL_FALSE, 0, size, back, 0, NULL, NULL));
                CHECK(clFinish(queue));
                check_that(back[size / sizeof(*back) - 1] == data[size / sizeof(*data) - 1] + 7,
                           "what was added");
        }
        free(back);
}

static void solver(int steps)
{
        uint32_t got[2] = { 0 };
        make_buffer(N * sizeof(*data));
        for (int i = 0; i < steps; i++) {
                launch(advance, mem, ROUNDS, N);
                launch(add, mem, 1, N);
                CHECK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 4, &got[0], 0, NULL, NULL));
                launch(add, mem, got[0] & 1, N);
                CHECK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 4, 4, &got[1], 0, NULL, NULL));
        }
        check_that(got[0] != got[1], "the numbers");
}

int main(int argc, char **argv)
{
        int count = argc == 3 ? atoi(argv[2]) : 0;
        const char *what = argc == 3 ? argv[1] : "";
        double begin = now_us();
        if (count < 1) {
                fprintf(stderr, "usage: bench_links finish|launches|transfers|solver COUNT\n");
                return 2;
        }
        open_device();
        if (!strcmp(what, "finish"))
                finish(count, 1);
        else if (!strcmp(what, "launches"))
                finish(count, LAUNCHES);
        else if (!strcmp(what, "transfers"))
                transfers(count);
        else if (!strcmp(what, "solver"))
                solver(count);
        else
                return 2;
        printf("{\"seconds\": %.6f}\n", (now_us() - begin) * 1e-6);
        return 0;
}
