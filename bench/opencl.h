/* OpenCL helpers that the benchmark programs share. Not thread-safe. */
#ifndef BENCH_OPENCL_H
#define BENCH_OPENCL_H

#include <CL/cl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A call that fails ends the program. */
static inline void check(cl_int err, const char *what)
{
        if (err == CL_SUCCESS)
                return;
        fprintf(stderr, "%s: %s: error %d\n", program_invocation_short_name, what, err);
        exit(1);
}

#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__)

/* An in-order queue of the first device, and an empty kernel for it. Nothing is released. */
struct launcher {
        cl_platform_id platform;
        cl_context context;
        cl_command_queue queue;
        cl_kernel kernel;
};

static inline void launcher_init(struct launcher *l)
{
        static const char *source = "__kernel void empty(void) {}";
        cl_device_id device;
        cl_int err;
        CHECK(clGetPlatformIDs(1, &l->platform, NULL));
        CHECK(clGetDeviceIDs(l->platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        l->context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        l->queue = clCreateCommandQueue(l->context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(l->context, 1, &source, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
        l->kernel = clCreateKernel(program, "empty", &err);
        check(err, "clCreateKernel");
}

#endif
