/* For the OpenCL programs of the system tests. */
#ifndef SPANCL_TESTS_TRY_H
#define SPANCL_TESTS_TRY_H

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

/* End the program if the call fails, with the line "CALL: error N". */
#define TRY(...)                                                               \
        do {                                                                   \
                cl_int err_ = (__VA_ARGS__);                                   \
                if (err_ != CL_SUCCESS) {                                      \
                        fprintf(stderr, "%s: error %d\n", #__VA_ARGS__, err_); \
                        exit(1);                                               \
                }                                                              \
        } while (0)

/* Make a context and a queue for the first device of that type. */
static inline void open_device(cl_device_type type, cl_device_id *ret_device,
                               cl_context *ret_context, cl_command_queue *ret_queue)
{
        cl_platform_id platform;
        cl_int err;
        TRY(clGetPlatformIDs(1, &platform, NULL));
        TRY(clGetDeviceIDs(platform, type, 1, ret_device, NULL));
        *ret_context = clCreateContext(NULL, 1, ret_device, NULL, NULL, &err);
        TRY(err);
        *ret_queue = clCreateCommandQueueWithProperties(*ret_context, *ret_device, NULL, &err);
        TRY(err);
}

#endif
