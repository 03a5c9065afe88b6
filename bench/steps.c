/* A program that waits after each step: a launch and a clFinish, STEPS times, on one queue or on two in turn. Then
 * reads the result and checks it. Prints one JSON object: the time of a step with the read.
 *
 *     bench_steps STEPS [QUEUES [WORK]]
 *
 * WORK: rounds of each kernel's loop. */

#include "opencl.h"
#include "samples.h"

#include <stdint.h>
#include <stdlib.h>

enum { N = 65536, QUEUES_MAX = 2 };

static const char source[] = "kernel void advance(global uint *a, uint rounds) {\n"
                             "        size_t i = get_global_id(0);\n"
                             "        uint v = a[i];\n"
                             "        for (uint r = 0; r < rounds; r++)\n"
                             "                v = v * 1664525u + (uint)i + r;\n"
                             "        a[i] = v;\n"
                             "}\n";

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 1000, queues = argc > 2 ? atoi(argv[2]) : 1;
        const cl_uint rounds = argc > 3 ? (cl_uint)atoi(argv[3]) : 20;
        static uint32_t got[N];
        const char *text = source;
        const size_t n = N;
        cl_platform_id platform;
        cl_device_id device;
        cl_command_queue queue[QUEUES_MAX];
        cl_int err;
        if (steps < 1 || queues < 1 || queues > QUEUES_MAX) {
                fprintf(stderr, "usage: bench_steps STEPS [1|2 [WORK]]\n");
                return 2;
        }
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        for (int i = 0; i < queues; i++) {
                queue[i] = clCreateCommandQueue(context, device, 0, &err);
                check(err, "clCreateCommandQueue");
        }
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
        cl_kernel kernel = clCreateKernel(program, "advance", &err);
        check(err, "clCreateKernel");
        cl_mem mem = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(got), got, &err);
        check(err, "clCreateBuffer");
        CHECK(clSetKernelArg(kernel, 0, sizeof(mem), &mem));
        CHECK(clSetKernelArg(kernel, 1, sizeof(rounds), &rounds));
        for (int i = 0; i < 10; i++) { /* the driver's first launches are slow */
                CHECK(clEnqueueNDRangeKernel(queue[0], kernel, 1, NULL, &n, NULL, 0, NULL, NULL));
                CHECK(clFinish(queue[0]));
        }
        CHECK(clEnqueueReadBuffer(queue[0], mem, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
        double begin = now_us();
        for (int i = 0; i < steps; i++) {
                cl_command_queue q = queue[i % queues];
                CHECK(clEnqueueNDRangeKernel(q, kernel, 1, NULL, &n, NULL, 0, NULL, NULL));
                CHECK(clFinish(q));
        }
        CHECK(clEnqueueReadBuffer(queue[0], mem, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
        double took = now_us() - begin;
        for (uint32_t i = 0; i < N; i += 8191) {
                uint32_t v = 0;
                for (int s = 0; s < steps + 10; s++)
                        for (cl_uint r = 0; r < rounds; r++)
                                v = v * 1664525u + i + r;
                if (got[i] != v) {
                        fprintf(stderr, "item %u is %u, not %u\n", i, got[i], v);
                        return 1;
                }
        }
        printf("{\"step\": %.3f, \"steps\": %d, \"queues\": %d}\n", took / steps, steps, queues);
        return 0;
}
