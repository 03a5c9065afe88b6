/* A program over the nano client: fuzz_nano.c runs it over a server of its own, and record_nano.c over a real one.
 * Each call may fail. */
#ifndef SPANCL_FUZZ_NANO_PROGRAM_H
#define SPANCL_FUZZ_NANO_PROGRAM_H

#include <stdbool.h>
#include <stdlib.h>

#include "spancl_nano.h"

enum { NANO_PROGRAM_SMALL = 48, NANO_PROGRAM_LARGE = 16385 };

/* The bytes of a record in front of its data: u8 lane; u24 how many bytes the client has sent on both lanes before it;
 * u16 bytes of data. */
enum { NANO_RECORD = 6 };

static inline void nano_program_commands(cl_context context, cl_command_queue queue,
                                         cl_kernel kernel)
{
        uint8_t *small = malloc(NANO_PROGRAM_SMALL), *large = calloc(NANO_PROGRAM_LARGE, 1);
        const size_t items = NANO_PROGRAM_SMALL / 4;
        const uint64_t content = 100;
        cl_event events[2] = { NULL, NULL };
        cl_mem m[3];
        cl_int status;
        for (int i = 0; i < 3; i++) {
                m[i] = clCreateBuffer(context, 0, NANO_PROGRAM_LARGE, NULL, NULL);
                clSetKernelArg(kernel, (cl_uint)i, sizeof(m[i]), &m[i]);
        }
        clEnqueueWriteBuffer(queue, m[0], CL_TRUE, 0, NANO_PROGRAM_LARGE, large, 0, NULL, NULL);
        clEnqueueWriteBuffer(queue, m[1], CL_FALSE, 8, sizeof(content), &content, 0, NULL,
                             &events[0]);
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, events[0] != NULL,
                               events[0] ? events : NULL, &events[1]);
        clEnqueueCopyBuffer(queue, m[2], m[0], 0, 0, NANO_PROGRAM_SMALL, 0, NULL, NULL);
        clEnqueueReadBuffer(queue, m[0], CL_FALSE, 0, NANO_PROGRAM_LARGE, large, 0, NULL, NULL);
        clEnqueueReadBuffer(queue, m[0], CL_TRUE, 0, NANO_PROGRAM_SMALL, small, 0, NULL, NULL);
        clFinish(queue);
        for (int i = 0; i < 2; i++) {
                clGetEventInfo(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                               &status, NULL);
                clReleaseEvent(events[i]);
        }
        clSetContentSizeBufferPoCL(m[0], m[1]);
        clEnqueueReadBuffer(queue, m[0], CL_TRUE, 0, NANO_PROGRAM_LARGE, large, 0, NULL, NULL);
        for (int i = 0; i < 3; i++)
                clReleaseMemObject(m[i]);
        clFinish(queue);
        /* Bytes may come into them as long as the session lives. */
        spancl_nano_stop();
        free(small);
        free(large);
}

/* `built_in`: the program is of built-in kernels. */
static inline void nano_program(const struct spancl_nano_transport *t, void *arena, size_t size,
                                bool built_in)
{
        static const uint8_t random[32] = { 1, 2, 3 };
        const char *source = "__kernel void add(__global int *a, __global int *b, __global int *c)"
                             "{ c[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]; }";
        const char *name = built_in ? "pocl.add.i32" : "add";
        const struct spancl_nano_config config = { .transport = t,
                                                   .arena = arena,
                                                   .arena_size = size,
                                                   .random = random,
                                                   .retry_ms = 500 };
        cl_platform_id platform;
        cl_device_id device;
        char text[300];
        if (spancl_nano_start(&config))
                return;
        if (!clGetPlatformIDs(1, &platform, NULL) &&
            !clGetDeviceIDs(platform, CL_DEVICE_TYPE_DEFAULT, 1, &device, NULL)) {
                clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(text), text, NULL);
                cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
                cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
                cl_program program =
                        built_in
                                ? clCreateProgramWithBuiltInKernels(context, 1, &device, name, NULL)
                                : clCreateProgramWithSource(context, 1, &source, NULL, NULL);
                clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
                clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(text), text,
                                      NULL);
                nano_program_commands(context, queue, clCreateKernel(program, name, NULL));
        }
        spancl_nano_stop();
}

#endif
