/* calls HOST PORT BINARY: every call of the nano client, and its errors, over a server with PoCL. BINARY: a file with
 * a binary (binary.c); or `reference`: built-in kernels, over a server with the reference backend. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"

static uint64_t arena[3000];
#define BUILT_IN "pocl.add.i32"

static unsigned failures;
static struct connect lanes;

#define expect(what, wanted)                                                                    \
        do {                                                                                    \
                long long got_ = (long long)(what), wanted_ = (long long)(wanted);              \
                if (got_ != wanted_) {                                                          \
                        fprintf(stderr, "%s:%d: %s: %lld, not %lld (%s)\n", __FILE__, __LINE__, \
                                #what, got_, wanted_, spancl_nano_error());                     \
                        failures++;                                                             \
                }                                                                               \
        } while (0)
/* A call that makes an object. */
#define made(object, call)                   \
        do {                                 \
                (object) = (call);           \
                expect(status, CL_SUCCESS);  \
                expect((object) != NULL, 1); \
                if (!(object))               \
                        exit(1);             \
        } while (0)
#define refused(call, wanted)              \
        do {                               \
                expect((call) == NULL, 1); \
                expect(status, wanted);    \
        } while (0)

static cl_int status;
static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static void check_platform(void)
{
        char text[64];
        size_t size;
        cl_uint count;
        cl_device_type type;
        cl_ulong number;
        expect(clGetPlatformIDs(0, NULL, NULL), CL_INVALID_VALUE);
        expect(clGetPlatformIDs(0, &platform, NULL), CL_INVALID_VALUE);
        expect(clGetPlatformIDs(1, &platform, &count), CL_SUCCESS);
        expect(count, 1);
        expect(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(text), text, &size),
               CL_SUCCESS);
        expect(strcmp(text, "SpanCL"), 0);
        expect(size, 7);
        expect(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(text), text, NULL),
               CL_SUCCESS);
        expect(strncmp(text, "OpenCL 1.2 ", 11), 0);
        expect(clGetPlatformInfo(platform, CL_PLATFORM_PROFILE, 3, text, NULL), CL_INVALID_VALUE);
        expect(clGetPlatformInfo(platform, 1, sizeof(text), text, NULL), CL_INVALID_VALUE);
        expect(clGetPlatformInfo(NULL, CL_PLATFORM_NAME, sizeof(text), text, NULL),
               CL_INVALID_PLATFORM);
        expect(clGetDeviceIDs(platform, 0, 1, &device, NULL), CL_INVALID_DEVICE_TYPE);
        expect(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), CL_DEVICE_NOT_FOUND);
        expect(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, &device, NULL), CL_INVALID_VALUE);
        expect(clGetDeviceIDs(NULL, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_INVALID_PLATFORM);
        expect(clGetDeviceIDs(platform, CL_DEVICE_TYPE_DEFAULT, 1, &device, &count), CL_SUCCESS);
        expect(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(text), text, &size), CL_SUCCESS);
        expect(size == strlen(text) + 1 && size > 4, 1);
        expect(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(text), text, NULL), CL_SUCCESS);
        expect(strncmp(text, "OpenCL ", 7), 0);
        expect(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL), CL_SUCCESS);
        expect((type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_CUSTOM)) != 0, 1);
        expect(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(number), &number, NULL),
               CL_SUCCESS);
        expect(number > 1 << 20, 1);
        expect(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size), &size, NULL),
               CL_SUCCESS);
        expect(size > 0, 1);
        expect(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(count), &count, NULL),
               CL_SUCCESS);
        expect(count > 0, 1);
        expect(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof(count), &count, NULL),
               CL_SUCCESS);
        expect(count, CL_TRUE);
        expect(clGetDeviceInfo(device, 1, sizeof(count), &count, NULL), CL_INVALID_VALUE);
        expect(clGetDeviceInfo(NULL, CL_DEVICE_NAME, sizeof(text), text, NULL), CL_INVALID_DEVICE);
        expect(clGetDeviceInfo((cl_device_id)(void *)text, CL_DEVICE_NAME, sizeof(text), text,
                               NULL),
               CL_INVALID_DEVICE);
}

static void check_context(void)
{
        cl_device_id wrong = (cl_device_id)(void *)&status;
        refused(clCreateContext(NULL, 0, &device, NULL, NULL, &status), CL_INVALID_VALUE);
        refused(clCreateContext(NULL, 1, &wrong, NULL, NULL, &status), CL_INVALID_DEVICE);
        made(context, clCreateContext(NULL, 1, &device, NULL, NULL, &status));
        refused(clCreateCommandQueue(NULL, device, 0, &status), CL_INVALID_CONTEXT);
        refused(clCreateCommandQueue(context, wrong, 0, &status), CL_INVALID_DEVICE);
        refused(clCreateCommandQueue(context, device, 4, &status), CL_INVALID_VALUE);
        refused(clCreateCommandQueue(context, device, 2, &status), CL_INVALID_QUEUE_PROPERTIES);
        made(queue, clCreateCommandQueue(context, device, 0, &status));
        expect(clRetainCommandQueue(queue), CL_SUCCESS);
        expect(clReleaseCommandQueue(queue), CL_SUCCESS);
        expect(clFlush(queue), CL_SUCCESS);
        expect(clFlush((cl_command_queue)(void *)context), CL_INVALID_COMMAND_QUEUE);
        expect(clFinish(NULL), CL_INVALID_COMMAND_QUEUE);
        expect(clRetainContext((cl_context)(void *)queue), CL_INVALID_CONTEXT);
}

static void check_buffers(void)
{
        enum { SIZE = 100000 };
        static uint8_t from[SIZE], to[SIZE];
        cl_mem a, b, all[32];
        cl_event event, other;
        cl_uint type, refs;
        refused(clCreateBuffer(NULL, 0, 1, NULL, &status), CL_INVALID_CONTEXT);
        refused(clCreateBuffer(context, 3, 1, NULL, &status), CL_INVALID_VALUE);
        refused(clCreateBuffer(context, 1 << 3, 1, from, &status), CL_INVALID_VALUE);
        refused(clCreateBuffer(context, 0, 1, from, &status), CL_INVALID_HOST_PTR);
        refused(clCreateBuffer(context, 0, 0, NULL, &status), CL_INVALID_BUFFER_SIZE);
        made(a, clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &status));
        made(b, clCreateBuffer(context, 0, SIZE, NULL, &status));
        for (unsigned i = 0; i < SIZE; i++)
                from[i] = (uint8_t)(i * 7 + (i >> 8));
        expect(clEnqueueWriteBuffer(NULL, a, 1, 0, 1, from, 0, NULL, NULL),
               CL_INVALID_COMMAND_QUEUE);
        expect(clEnqueueWriteBuffer(queue, NULL, 1, 0, 1, from, 0, NULL, NULL),
               CL_INVALID_MEM_OBJECT);
        expect(clEnqueueWriteBuffer(queue, a, 1, 0, SIZE + 1, from, 0, NULL, NULL),
               CL_INVALID_VALUE);
        expect(clEnqueueWriteBuffer(queue, a, 1, SIZE, 1, from, 0, NULL, NULL), CL_INVALID_VALUE);
        expect(clEnqueueWriteBuffer(queue, a, 1, 0, 1, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
        expect(clEnqueueWriteBuffer(queue, a, 1, 0, 1, from, 1, NULL, NULL),
               CL_INVALID_EVENT_WAIT_LIST);
        expect(clEnqueueReadBuffer(queue, a, 1, 0, 0, to, 0, NULL, NULL), CL_INVALID_VALUE);
        /* With the messages, inline to here, and over lane 1 both ways. */
        const size_t sizes[] = { 1, 255, 256, 257, 9000, 16384, 16385, SIZE };
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                memset(to, 0, SIZE);
                expect(clEnqueueWriteBuffer(queue, a, i % 2, 0, sizes[i], from, 0, NULL, &event),
                       CL_SUCCESS);
                expect(clEnqueueCopyBuffer(queue, a, b, 0, 0, sizes[i], 1, &event, &other),
                       CL_SUCCESS);
                expect(clEnqueueReadBuffer(queue, b, 1, 0, sizes[i], to, 1, &other, NULL),
                       CL_SUCCESS);
                expect(memcmp(from, to, sizes[i]), 0);
                expect(clWaitForEvents(1, &event), CL_SUCCESS);
                expect(clReleaseEvent(event), CL_SUCCESS);
                expect(clReleaseEvent(other), CL_SUCCESS);
        }
        expect(clEnqueueCopyBuffer(queue, a, a, 0, 5, 10, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
        expect(clEnqueueCopyBuffer(queue, a, b, 0, 5, SIZE, 0, NULL, NULL), CL_INVALID_VALUE);
        expect(clEnqueueCopyBuffer(queue, a, a, 0, 10, 10, 0, NULL, &event), CL_SUCCESS);
        expect(clWaitForEvents(0, &event), CL_INVALID_VALUE);
        expect(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL), CL_SUCCESS);
        expect(type, CL_COMMAND_COPY_BUFFER);
        expect(clRetainEvent(event), CL_SUCCESS);
        expect(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL),
               CL_SUCCESS);
        expect(refs, 2);
        expect(clGetEventInfo(event, 1, sizeof(refs), &refs, NULL), CL_INVALID_VALUE);
        expect(clReleaseEvent(event), CL_SUCCESS);
        expect(clFinish(queue), CL_SUCCESS);
        expect(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                              NULL),
               CL_SUCCESS);
        expect(status, CL_COMPLETE);
        expect(clReleaseEvent(event), CL_SUCCESS);
        expect(clReleaseEvent(event), CL_INVALID_EVENT);
        /* Many reads without a wait: clFinish is their end. */
        memset(to, 0, SIZE);
        for (unsigned i = 0; i < 50; i++)
                expect(clEnqueueReadBuffer(queue, a, 0, i * 2000, 2000, to + i * 2000, 0, NULL,
                                           NULL),
                       CL_SUCCESS);
        expect(clFinish(queue), CL_SUCCESS);
        expect(memcmp(from + 20, to + 20, SIZE - 20), 0);
        unsigned count = 0;
        while (count < 32 && (all[count] = clCreateBuffer(context, 0, 1, NULL, &status)))
                count++;
        expect(status, CL_OUT_OF_HOST_MEMORY);
        expect(count, 14);
        while (count)
                expect(clReleaseMemObject(all[--count]), CL_SUCCESS);
        expect(clRetainMemObject(a), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_INVALID_MEM_OBJECT);
        expect(clReleaseMemObject(b), CL_SUCCESS);
}

/* A queue whose last command ends, while a call waits for room, is released then. `shift`: another end of the room. */
static void check_release_in_a_wait(int shift)
{
        cl_command_queue own;
        cl_mem a, b;
        cl_event event;
        made(a, clCreateBuffer(context, 0, 100, NULL, &status));
        made(own, clCreateCommandQueue(context, device, 0, &status));
        expect(clFinish(queue), CL_SUCCESS);
        expect(clEnqueueCopyBuffer(own, a, a, 0, 10, 10, 0, NULL, &event), CL_SUCCESS);
        expect(clReleaseEvent(event), CL_SUCCESS);
        expect(clReleaseCommandQueue(own), CL_SUCCESS);
        expect(clFlush(queue), CL_SUCCESS);
        /* The client reads that the command has ended when later messages have filled its buffer. */
        struct pollfd server = { .fd = lanes.tcp.lanes[0].fd1 - 1, .events = POLLIN };
        expect(poll(&server, 1, -1), 1);
        for (int i = 0; i < 300; i++) {
                if (i < shift)
                        expect(clEnqueueCopyBuffer(queue, a, a, 0, 10, 10, 0, NULL, NULL),
                               CL_SUCCESS);
                made(b, clCreateBuffer(context, 0, 100, NULL, &status));
                expect(clReleaseMemObject(b), CL_SUCCESS);
        }
        expect(clFinish(queue), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_SUCCESS);
}

static void check_content_size(void)
{
        enum { SIZE = 200000, CONTENT = 40000 };
        static uint8_t from[SIZE], to[SIZE];
        const uint64_t content = CONTENT;
        cl_mem a, size;
        made(a, clCreateBuffer(context, 0, SIZE, NULL, &status));
        made(size, clCreateBuffer(context, 0, 8, NULL, &status));
        expect(clSetContentSizeBufferPoCL(NULL, size), CL_INVALID_MEM_OBJECT);
        expect(clSetContentSizeBufferPoCL(a, a), CL_INVALID_MEM_OBJECT);
        expect(clSetContentSizeBufferPoCL(a, size), CL_SUCCESS);
        memset(from, 5, SIZE);
        expect(clEnqueueWriteBuffer(queue, a, 1, 0, SIZE, from, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueWriteBuffer(queue, size, 1, 0, 8, &content, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueReadBuffer(queue, a, 1, 0, SIZE, to, 0, NULL, NULL), CL_SUCCESS);
        expect(memcmp(from, to, CONTENT), 0);
        expect(to[SIZE - 1], 0); /* it was left out */
        expect(clReleaseMemObject(size), CL_SUCCESS);
        expect(clSetContentSizeBufferPoCL(a, NULL), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_SUCCESS);
}

static void check_programs(void)
{
        const char *good =
                "__kernel void add(__global int *a, int b, __local int *l, __global const int *none)\n"
                "{\n"
                "        size_t i = get_global_id(0);\n"
                "        l[get_local_id(0)] = b;\n"
                "        a[i] += l[get_local_id(0)] * SCALE + (none ? none[0] : 0);\n"
                "}\n"
                "__kernel void same(__global int *a) { a[0] = 7; }\n";
        const char *bad = "__kernel void broken(", *two[] = { good, good };
        const size_t global = 8, local = 4, odd = 3, none = 0, huge = 1 << 30, offset = 8;
        static char log[1024];
        int numbers[16], b = 5;
        cl_int build;
        cl_mem a, null = NULL;
        cl_event event;
        cl_program p;
        cl_kernel k, other;
        refused(clCreateProgramWithSource(NULL, 1, &good, NULL, &status), CL_INVALID_CONTEXT);
        refused(clCreateProgramWithSource(context, 0, &good, NULL, &status), CL_INVALID_VALUE);
        refused(clCreateProgramWithSource(context, 2, two, NULL, &status), CL_OUT_OF_HOST_MEMORY);
        made(p, clCreateProgramWithSource(context, 1, &bad, NULL, &status));
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
        expect(clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL),
               CL_SUCCESS);
        expect(strlen(log) > 10, 1);
        expect(clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_STATUS, sizeof(build), &build,
                                     NULL),
               CL_SUCCESS);
        expect(build, CL_BUILD_ERROR);
        refused(clCreateKernel(p, "broken", &status), CL_INVALID_PROGRAM_EXECUTABLE);
        expect(clReleaseProgram(p), CL_SUCCESS);
        made(p, clCreateProgramWithSource(context, 1, &good, NULL, &status));
        expect(clBuildProgram(p, 1, NULL, NULL, NULL, NULL), CL_INVALID_VALUE);
        expect(clBuildProgram(p, 1, &device, "-DSCALE=3", NULL, NULL), CL_SUCCESS);
        expect(clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_STATUS, sizeof(build), &build,
                                     NULL),
               CL_SUCCESS);
        expect(build, CL_BUILD_SUCCESS);
        expect(clGetProgramBuildInfo(p, NULL, CL_PROGRAM_BUILD_STATUS, sizeof(build), &build, NULL),
               CL_INVALID_DEVICE);
        refused(clCreateKernel(NULL, "add", &status), CL_INVALID_PROGRAM);
        refused(clCreateKernel(p, "sub", &status), CL_INVALID_KERNEL_NAME);
        refused(clCreateKernel(p, NULL, &status), CL_INVALID_VALUE);
        made(other, clCreateKernel(p, "same", &status));
        made(k, clCreateKernel(p, "add", &status));
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL), CL_INVALID_OPERATION);
        made(a, clCreateBuffer(context, 0, sizeof(numbers), NULL, &status));
        for (int i = 0; i < 16; i++)
                numbers[i] = i;
        expect(clEnqueueWriteBuffer(queue, a, 1, 0, sizeof(numbers), numbers, 0, NULL, NULL),
               CL_SUCCESS);
        expect(clSetKernelArg(k, 4, sizeof(b), &b), CL_INVALID_ARG_INDEX);
        expect(clSetKernelArg(k, 0, 3, &a), CL_INVALID_ARG_SIZE);
        expect(clSetKernelArg(k, 0, sizeof(a), &queue), CL_INVALID_MEM_OBJECT);
        expect(clSetKernelArg(k, 1, 2, &b), CL_INVALID_ARG_SIZE);
        expect(clSetKernelArg(k, 1, sizeof(b), NULL), CL_INVALID_ARG_VALUE);
        expect(clSetKernelArg(k, 2, 0, NULL), CL_INVALID_ARG_SIZE);
        expect(clSetKernelArg(k, 2, 4, &b), CL_INVALID_ARG_VALUE);
        expect(clSetKernelArg(k, 0, sizeof(a), &a), CL_SUCCESS);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, NULL, 0, NULL, NULL),
               CL_INVALID_KERNEL_ARGS);
        expect(clSetKernelArg(k, 1, sizeof(b), &none), CL_SUCCESS);
        expect(clSetKernelArg(k, 1, sizeof(b), &b), CL_SUCCESS);
        expect(clSetKernelArg(k, 2, 4 * sizeof(int), NULL), CL_SUCCESS);
        expect(clSetKernelArg(k, 3, sizeof(null), &null), CL_SUCCESS);
        expect(clEnqueueNDRangeKernel(queue, NULL, 1, NULL, &global, NULL, 0, NULL, NULL),
               CL_INVALID_KERNEL);
        expect(clEnqueueNDRangeKernel(queue, k, 0, NULL, &global, NULL, 0, NULL, NULL),
               CL_INVALID_WORK_DIMENSION);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &none, NULL, 0, NULL, NULL),
               CL_INVALID_GLOBAL_WORK_SIZE);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, &odd, 0, NULL, NULL),
               CL_INVALID_WORK_GROUP_SIZE);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &huge, &huge, 0, NULL, NULL),
               CL_INVALID_WORK_GROUP_SIZE);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, &local, 0, NULL, &event),
               CL_SUCCESS);
        b = 1;
        expect(clSetKernelArg(k, 1, sizeof(b), &b), CL_SUCCESS);
        expect(clEnqueueNDRangeKernel(queue, k, 1, &offset, &global, &local, 1, &event, NULL),
               CL_SUCCESS);
        expect(clReleaseEvent(event), CL_SUCCESS);
        expect(clEnqueueReadBuffer(queue, a, 1, 0, sizeof(numbers), numbers, 0, NULL, NULL),
               CL_SUCCESS);
        for (int i = 0; i < 16; i++)
                expect(numbers[i], i + (i < 8 ? 15 : 3));
        expect(clRetainKernel(k), CL_SUCCESS);
        expect(clReleaseKernel(k), CL_SUCCESS);
        expect(clReleaseKernel(k), CL_SUCCESS);
        expect(clReleaseKernel(k), CL_INVALID_KERNEL);
        expect(clReleaseKernel(other), CL_SUCCESS);
        expect(clReleaseMemObject(a), CL_SUCCESS);
        expect(clRetainProgram(p), CL_SUCCESS);
        expect(clReleaseProgram(p), CL_SUCCESS);
        expect(clReleaseProgram(p), CL_SUCCESS);
        expect(clReleaseProgram(p), CL_INVALID_PROGRAM);
}

/* A source that is larger than the arena: it is never in the client's memory. */
static void check_large_source(void)
{
        enum { SIZE = 300000 };
        static char text[SIZE];
        const char *at = text;
        cl_program p;
        cl_kernel k;
        memset(text, ' ', SIZE - 1);
        memcpy(text + SIZE - 100, "__kernel void last(__global int *a) { a[0] = 1; }", 49);
        made(p, clCreateProgramWithSource(context, 1, &at, NULL, &status));
        expect(clBuildProgram(p, 0, NULL, "", NULL, NULL), CL_SUCCESS);
        made(k, clCreateKernel(p, "last", &status));
        expect(clReleaseKernel(k), CL_SUCCESS);
        expect(clReleaseProgram(p), CL_SUCCESS);
}

/* As many arguments as have room: their description takes no other's place. */
static void check_many_args(void)
{
        const char *few = "__kernel void first(__global int *a) { a[0] = 1; }";
        const char *many =
                "__kernel void many(int a, int b, int c, int d, int e, int f, int g, int h,"
                " int i, int j, int k, int l, int m, int n, int o, int p) {}";
        const cl_int value = 0;
        cl_program p[3];
        cl_kernel k;
        for (int i = 0; i < 3; i++) {
                made(p[i],
                     clCreateProgramWithSource(context, 1, i == 2 ? &many : &few, NULL, &status));
                expect(clBuildProgram(p[i], 0, NULL, "", NULL, NULL), CL_SUCCESS);
                if (i == 1)
                        expect(clReleaseProgram(p[0]), CL_SUCCESS);
        }
        made(k, clCreateKernel(p[1], "first", &status));
        expect(clReleaseKernel(k), CL_SUCCESS);
        made(k, clCreateKernel(p[2], "many", &status));
        for (cl_uint i = 0; i < 16; i++)
                expect(clSetKernelArg(k, i, 2, &value), CL_INVALID_ARG_SIZE);
        expect(clReleaseKernel(k), CL_SUCCESS);
        expect(clReleaseProgram(p[1]), CL_SUCCESS);
        expect(clReleaseProgram(p[2]), CL_SUCCESS);
}

/* More kernels than have room, and a binary that is none. */
static void check_limits(void)
{
        static char source[4000];
        const unsigned char nonsense[] = "this is no binary";
        const unsigned char *binary = nonsense;
        const char *at = source;
        const size_t length = sizeof(nonsense);
        cl_int binary_status;
        cl_program p;
        for (unsigned i = 0; i < 20; i++)
                sprintf(source + strlen(source),
                        "__kernel void k%u(__global int *a) { a[%u] = 0; }\n", i, i);
        made(p, clCreateProgramWithSource(context, 1, &at, NULL, &status));
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL), CL_OUT_OF_HOST_MEMORY);
        expect(clReleaseProgram(p), CL_SUCCESS);
        refused(clCreateProgramWithBinary(context, 0, &device, &length, &binary, &binary_status,
                                          &status),
                CL_INVALID_VALUE);
        refused(clCreateProgramWithBinary(context, 1, &device, NULL, &binary, &binary_status,
                                          &status),
                CL_INVALID_VALUE);
        made(p, clCreateProgramWithBinary(context, 1, &device, &length, &binary, &binary_status,
                                          &status));
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL) < 0, 1);
        expect(clReleaseProgram(p), CL_SUCCESS);
}

/* A binary that the caller made of a kernel `twice` for this device. */
static void check_binary(const char *path)
{
        static unsigned char binary[1 << 20];
        const unsigned char *at = binary;
        const size_t items = 4;
        int numbers[4] = { 1, 2, 3, 4 };
        cl_int binary_status;
        cl_program p;
        cl_kernel k;
        cl_mem a;
        FILE *f = fopen(path, "rb");
        const size_t length = f ? fread(binary, 1, sizeof(binary), f) : 0;
        if (f)
                fclose(f);
        made(p,
             clCreateProgramWithBinary(context, 1, &device, &length, &at, &binary_status, &status));
        expect(binary_status, CL_SUCCESS);
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
        made(k, clCreateKernel(p, "twice", &status));
        made(a, clCreateBuffer(context, 0, sizeof(numbers), NULL, &status));
        expect(clEnqueueWriteBuffer(queue, a, 0, 0, sizeof(numbers), numbers, 0, NULL, NULL),
               CL_SUCCESS);
        expect(clSetKernelArg(k, 0, sizeof(a), &a), CL_SUCCESS);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, NULL, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueReadBuffer(queue, a, 1, 0, sizeof(numbers), numbers, 0, NULL, NULL),
               CL_SUCCESS);
        expect(numbers[3], 8);
        expect(clReleaseMemObject(a), CL_SUCCESS);
        expect(clReleaseKernel(k), CL_SUCCESS);
        expect(clReleaseProgram(p), CL_SUCCESS);
}

static void check_built_in(void)
{
        const size_t items = 4;
        int a[4] = { 1, 2, 3, 4 }, b[4] = { 10, 20, 30, 40 }, sum[4] = { 0 };
        cl_mem m[3];
        cl_program p;
        cl_kernel k;
        refused(clCreateProgramWithBuiltInKernels(context, 1, &device, NULL, &status),
                CL_INVALID_VALUE);
        made(p, clCreateProgramWithBuiltInKernels(context, 1, &device, BUILT_IN, &status));
        expect(clBuildProgram(p, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
        made(k, clCreateKernel(p, BUILT_IN, &status));
        for (unsigned i = 0; i < 3; i++) {
                made(m[i], clCreateBuffer(context, 0, sizeof(a), NULL, &status));
                expect(clSetKernelArg(k, i, sizeof(m[i]), &m[i]), CL_SUCCESS);
        }
        expect(clEnqueueWriteBuffer(queue, m[0], 0, 0, sizeof(a), a, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueWriteBuffer(queue, m[1], 0, 0, sizeof(b), b, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, NULL, 0, NULL, NULL), CL_SUCCESS);
        expect(clEnqueueReadBuffer(queue, m[2], 1, 0, sizeof(sum), sum, 0, NULL, NULL), CL_SUCCESS);
        for (unsigned i = 0; i < 4; i++)
                expect(sum[i], a[i] + b[i]);
}

int main(int argc, char **argv)
{
        const uint8_t random[32] = { (uint8_t)(uintptr_t)&argc, (uint8_t)((uintptr_t)&argc >> 8) };
        if (argc != 4)
                return 2;
        const struct spancl_nano_transport *t = connect_by(&lanes, argv[1], argv[2], random);
        struct spancl_nano_config c = {
                .transport = t, .arena = arena, .arena_size = sizeof(arena), .random = random
        };
        cl_uint count = 1;
        expect(clGetPlatformIDs(0, NULL, &count), CL_SUCCESS);
        expect(count, 0);
        expect(spancl_nano_start(NULL), CL_INVALID_VALUE);
        c.arena_size = 4000;
        expect(spancl_nano_start(&c), CL_OUT_OF_HOST_MEMORY);
        c.arena_size = sizeof(arena);
        expect(spancl_nano_start(&c), CL_SUCCESS);
        expect(spancl_nano_start(&c), CL_INVALID_OPERATION);
        expect(spancl_nano_used() <= sizeof(arena), 1);
        check_platform();
        check_context();
        check_buffers();
        for (int shift = 0; shift < 6; shift++)
                check_release_in_a_wait(shift);
        if (!strcmp(argv[3], "reference")) {
                check_built_in();
        } else {
                check_content_size();
                check_programs();
                check_large_source();
                check_many_args();
                check_limits();
                check_binary(argv[3]);
                expect(clReleaseCommandQueue(queue), CL_SUCCESS);
                expect(clReleaseContext(context), CL_SUCCESS);
                expect(clReleaseContext(context), CL_INVALID_CONTEXT);
        }
        spancl_nano_stop();
        expect(clFinish(queue), CL_INVALID_COMMAND_QUEUE);
        posix_transport_close(&lanes.tcp);
        lanes.tcp.port = 1; /* nobody listens there */
        expect(spancl_nano_start(&c), CL_DEVICE_NOT_AVAILABLE);
        expect(strlen(spancl_nano_error()) > 0, 1);
        printf("%u failures\n", failures);
        return failures != 0;
}
