/* Measures the cost of a command when very many commands are pending, and when a tenth as many
 * are. Implementations should take equally long for each command. Uses all devices of the first
 * platform.
 *
 *   bench_many [N] */
#include "opencl.h"

#include <stdint.h>
#include <string.h>

#include "samples.h"

enum { DEVICES_MAX = 8, BYTES = 8, STRIDE = 16 };

static cl_context context;
static cl_uint device_count;
static cl_command_queue queues[DEVICES_MAX], unordered;
static cl_kernel kernel;

static void *allocate(size_t count, size_t size)
{
        void *p = calloc(count, size);
        if (!p) {
                fprintf(stderr, "out of memory\n");
                exit(1);
        }
        return p;
}

static cl_mem buffer_new(size_t size)
{
        cl_int err;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        return m;
}

static void setup(void)
{
        static const char *source = "kernel void put(global int *x) { *x = 1; }";
        cl_platform_id platform;
        cl_device_id devices[DEVICES_MAX];
        cl_int err;
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &device_count));
        if (device_count > DEVICES_MAX)
                device_count = DEVICES_MAX;
        context = clCreateContext(NULL, device_count, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        for (cl_uint i = 0; i < device_count; i++) {
                queues[i] = clCreateCommandQueue(context, devices[i], 0, &err);
                check(err, "clCreateCommandQueue");
        }
        unordered = clCreateCommandQueue(context, devices[0],
                                         CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &err);
        check(err, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
        kernel = clCreateKernel(program, "put", &err);
        check(err, "clCreateKernel");
        CHECK(clReleaseProgram(program));
}

static void launch(cl_uint waits, const cl_event *wait_list, cl_event *ret)
{
        const size_t one = 1;
        CHECK(clEnqueueNDRangeKernel(unordered, kernel, 1, NULL, &one, NULL, waits, wait_list,
                                     ret));
}

static void expect_written(cl_mem m)
{
        cl_int seen = 0;
        CHECK(clEnqueueReadBuffer(queues[0], m, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL));
        check(seen == 1 ? CL_SUCCESS : CL_INVALID_VALUE, "what the kernel wrote");
}

/* Launches in no order, of a kernel that writes the same buffer each time. */
static void one_buffer(int n)
{
        cl_mem m = buffer_new(sizeof(cl_int));
        CHECK(clSetKernelArg(kernel, 0, sizeof(m), &m));
        for (int i = 0; i < n; i++)
                launch(0, NULL, NULL);
        CHECK(clFinish(unordered));
        expect_written(m);
        CHECK(clReleaseMemObject(m));
}

/* A buffer for each launch, which is released at once. */
static void own_buffers(int n)
{
        for (int i = 0; i < n; i++) {
                cl_mem m = buffer_new(sizeof(cl_int));
                CHECK(clSetKernelArg(kernel, 0, sizeof(m), &m));
                launch(0, NULL, NULL);
                CHECK(clReleaseMemObject(m));
        }
        CHECK(clFinish(unordered));
}

/* All launches wait for one event, and the program waits for their events. */
static void user_event(int n)
{
        cl_int err;
        cl_mem m = buffer_new(sizeof(cl_int));
        cl_event *events = allocate((size_t)n, sizeof(cl_event));
        cl_event begin = clCreateUserEvent(context, &err);
        check(err, "clCreateUserEvent");
        CHECK(clSetKernelArg(kernel, 0, sizeof(m), &m));
        for (int i = 0; i < n; i++)
                launch(1, &begin, &events[i]);
        CHECK(clSetUserEventStatus(begin, CL_COMPLETE));
        CHECK(clWaitForEvents((cl_uint)n, events));
        expect_written(m);
        for (int i = 0; i < n; i++)
                CHECK(clReleaseEvent(events[i]));
        CHECK(clReleaseEvent(begin));
        CHECK(clReleaseMemObject(m));
        free(events);
}

/* The devices write pieces of a buffer in turn, with gaps; the first one reads it all. */
static void scattered(int n)
{
        size_t size = (size_t)n * STRIDE;
        cl_mem m = buffer_new(size);
        uint8_t *given = allocate(size, 1), *seen = allocate(size, 1);
        for (size_t i = 0; i < size; i++)
                given[i] = (uint8_t)(i * 7 + i / 251);
        for (int i = 0; i < n; i++)
                CHECK(clEnqueueWriteBuffer(queues[(cl_uint)i % device_count], m, CL_FALSE,
                                           (size_t)i * STRIDE, BYTES, given + (size_t)i * STRIDE, 0,
                                           NULL, NULL));
        for (cl_uint i = 0; i < device_count; i++)
                CHECK(clFinish(queues[i]));
        CHECK(clEnqueueReadBuffer(queues[0], m, CL_TRUE, 0, size, seen, 0, NULL, NULL));
        for (int i = 0; i < n; i++)
                if (memcmp(seen + (size_t)i * STRIDE, given + (size_t)i * STRIDE, BYTES) != 0)
                        check(CL_INVALID_VALUE, "piece");
        CHECK(clReleaseMemObject(m));
        free(given);
        free(seen);
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*run)(int n);
        } kinds[] = {
                { "one_buffer", one_buffer },
                { "own_buffers", own_buffers },
                { "user_event", user_event },
                { "scattered", scattered },
        };
        int n = argc > 1 ? atoi(argv[1]) : 20000;
        if (n < 10) {
                fprintf(stderr, "Usage: bench_many [N]\nN: commands at a time, 10 or more.\n");
                return 2;
        }
        setup();
        one_buffer(10);
        printf("{\n");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                double begin = now_us();
                kinds[i].run(n / 10);
                double middle = now_us();
                kinds[i].run(n);
                double few = (middle - begin) / (n / 10), many = (now_us() - middle) / n;
                printf("  \"%s\": {\"unit\": \"us\", \"each_of_%d\": %.3g, \"each_of_%d\": %.3g}%s\n",
                       kinds[i].name, n / 10, few, n, many,
                       i + 1 < sizeof(kinds) / sizeof(kinds[0]) ? "," : "");
        }
        printf("}\n");
        return 0;
}
