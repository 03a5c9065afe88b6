/* Helpers of the OpenCL programs in this folder: all devices of the first platform in one
 * context, a queue for each, and checks that end the program. Plain OpenCL, so it works on any
 * implementation. */
#ifndef TESTS_API_API_H
#define TESTS_API_API_H

#include <CL/cl.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(...)                                                                                \
        do {                                                                                      \
                if (!(__VA_ARGS__)) {                                                             \
                        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
                        exit(1);                                                                  \
                }                                                                                 \
        } while (0)

/* The call returns this code. */
#define EXPECT(expected, ...)                                                                    \
        do {                                                                                     \
                cl_int api_err_ = (__VA_ARGS__);                                                 \
                if (api_err_ != (expected)) {                                                    \
                        fprintf(stderr, "%s:%d: %d, not %d: %s\n", __FILE__, __LINE__, api_err_, \
                                (int)(expected), #__VA_ARGS__);                                  \
                        exit(1);                                                                 \
                }                                                                                \
        } while (0)

/* The call returns NULL and this code in `error`. */
#define EXPECT_ERROR(expected, ...)           \
        do {                                  \
                cl_int error = 1;             \
                CHECK((__VA_ARGS__) == NULL); \
                EXPECT(expected, error);      \
        } while (0)

#define OK(...) EXPECT(CL_SUCCESS, __VA_ARGS__)

enum { API_DEVICES_MAX = 16 };

static inline int api_entries(const char *folder)
{
        int n = 0;
        DIR *d = opendir(folder);
        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

static int api_descriptors, api_threads;

/* At exit, when all objects were released, check the open descriptors and threads. Only those
 * that each server costs may be left, and none of objects, commands, or waits. Otherwise the exit
 * status is 97. */
static void api_leaks(void)
{
        int servers = atoi(getenv("TEST_LEAKS"));
        int descriptors = api_entries("/proc/self/fd") - api_descriptors;
        int threads = api_entries("/proc/self/task") - api_threads;
        if (descriptors <= 4 + 20 * servers && threads <= 2 + 6 * servers)
                return;
        fprintf(stderr, "%d descriptors and %d threads are left\n", descriptors, threads);
        _exit(97);
}

/* Runs before main; with-servers gives the number of servers. */
__attribute__((constructor)) static void api_watch_leaks(void)
{
        if (!getenv("TEST_LEAKS"))
                return;
        api_descriptors = api_entries("/proc/self/fd");
        api_threads = api_entries("/proc/self/task");
        atexit(api_leaks);
}

struct api {
        cl_platform_id platform;
        cl_device_id devices[API_DEVICES_MAX];
        cl_uint count;
        cl_context context;
        cl_command_queue queues[API_DEVICES_MAX];
};

static inline struct api api_open_type(cl_device_type type, cl_command_queue_properties properties)
{
        struct api a = { 0 };
        cl_int err;
        OK(clGetPlatformIDs(1, &a.platform, NULL));
        OK(clGetDeviceIDs(a.platform, type, API_DEVICES_MAX, a.devices, &a.count));
        CHECK(a.count > 0);
        if (a.count > API_DEVICES_MAX)
                a.count = API_DEVICES_MAX;
        a.context = clCreateContext(NULL, a.count, a.devices, NULL, NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < a.count; i++) {
                a.queues[i] = clCreateCommandQueue(a.context, a.devices[i], properties, &err);
                OK(err);
        }
        return a;
}

/* A context of the first device alone; api_close. */
static inline struct api api_open_first(const struct api *of)
{
        struct api a = { .platform = of->platform, .devices = { of->devices[0] }, .count = 1 };
        cl_int err;
        a.context = clCreateContext(NULL, 1, a.devices, NULL, NULL, &err);
        OK(err);
        a.queues[0] = clCreateCommandQueue(a.context, a.devices[0], 0, &err);
        OK(err);
        return a;
}

static inline struct api api_open(cl_command_queue_properties properties)
{
        return api_open_type(CL_DEVICE_TYPE_ALL, properties);
}

static inline void api_close(struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++) {
                OK(clFinish(a->queues[i]));
                OK(clReleaseCommandQueue(a->queues[i]));
        }
        OK(clReleaseContext(a->context));
}

/* Not every device has queues that work out of order. */
static inline int api_out_of_order(const struct api *a, cl_uint device)
{
        cl_command_queue_properties p = 0;
        OK(clGetDeviceInfo(a->devices[device], CL_DEVICE_QUEUE_PROPERTIES, sizeof(p), &p, NULL));
        return (p & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

/* Return true if each device has coarse-grained shared virtual memory. */
static inline int api_has_svm(const struct api *a)
{
        cl_device_svm_capabilities caps = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
        for (cl_uint i = 0; i < a->count && caps & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER; i++)
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps,
                                   NULL));
        return (caps & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
}

/* Return the queue of device i; devices repeat. */
static inline cl_command_queue api_queue(const struct api *a, unsigned i)
{
        return a->queues[i % a->count];
}

static inline cl_program api_build(const struct api *a, const char *source, const char *options)
{
        cl_int err;
        cl_program program = clCreateProgramWithSource(a->context, 1, &source, NULL, &err);
        OK(err);
        OK(clBuildProgram(program, 0, NULL, options, NULL, NULL));
        return program;
}

static inline cl_kernel api_kernel(cl_program program, const char *name)
{
        cl_int err;
        cl_kernel kernel = clCreateKernel(program, name, &err);
        OK(err);
        return kernel;
}

static inline cl_mem api_buffer(const struct api *a, cl_mem_flags flags, size_t size, void *host)
{
        cl_int err;
        cl_mem buffer = clCreateBuffer(a->context, flags, size, host, &err);
        OK(err);
        return buffer;
}

/* Run kernel `f(global uint *n)` of the program on this device and return what it writes to
 * n[0]. */
static inline cl_uint api_run(struct api *a, cl_uint device, cl_program p)
{
        cl_kernel k = api_kernel(p, "f");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        size_t one = 1;
        cl_uint value = 0;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[device], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[device], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        return value;
}

static inline cl_int api_status(cl_event event)
{
        cl_int status = 1;
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
        return status;
}

static inline void *api_alloc(size_t size)
{
        void *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        CHECK(p);
        memset(p, 0, size);
        return p;
}

/* Bytes that differ from place to place and from seed to seed. */
static inline void api_pattern(void *data, size_t size, unsigned seed)
{
        uint8_t *p = data;
        uint32_t x = seed * 2654435761u + 1;
        for (size_t i = 0; i < size; i++) {
                x = x * 1664525u + 1013904223u;
                p[i] = (uint8_t)(x >> 24);
        }
}

#endif
