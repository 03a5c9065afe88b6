/* Executes a number of commands and nothing else, so that instructions.py can count instructions.
 * Uses the built-in kernel spancl.inc.i32 of the reference backend and checks its results.
 *
 *   bench_commands launch|finish|args|chain|write|marker N
 *
 * `time` is `launch`, and prints the processor time of a launch in ns, of all threads: the lowest tenth of all batches,
 * because other work of the host only adds to it. */

#include "opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 100 }; /* commands between two waits; markers: all of them */

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem counter;

/* An in-order queue: one command behind the other. */
static void launch(int n)
{
        const size_t one = 1;
        for (int i = 0; i < n; i++)
                check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                      "clEnqueueNDRangeKernel");
        check(clFinish(queue), "clFinish");
}

/* The same, each waited for. */
static void finish(int n)
{
        for (int i = 0; i < n; i++)
                launch(1);
}

static double processor_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
        const double *x = a, *y = b;
        return (*x > *y) - (*x < *y);
}

static void time_launches(int n)
{
        enum { BATCHES = 10 }; /* for each sample */
        int count = n / (BATCH * BATCHES);
        double *samples = calloc((size_t)count + 1, sizeof(*samples));
        if (!samples)
                exit(1);
        for (int i = 0; i < count; i++) {
                double begin = processor_ns();
                for (int k = 0; k < BATCHES; k++)
                        launch(BATCH);
                samples[i] = (processor_ns() - begin) / (BATCH * BATCHES);
        }
        for (int i = 0; i < n % (BATCH * BATCHES) / BATCH; i++)
                launch(BATCH);
        qsort(samples, (size_t)count, sizeof(*samples), by_size);
        printf("%.1f\n", samples[count / 10]);
        free(samples);
}

/* The same, but one argument is another one each time. */
static void args(int n)
{
        const size_t one = 1;
        for (int i = 0; i < n; i++) {
                const cl_uint by = i & 1 ? 0 : 2;
                check(clSetKernelArg(kernel, 1, sizeof(by), &by), "clSetKernelArg");
                check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                      "clEnqueueNDRangeKernel");
        }
        check(clFinish(queue), "clFinish");
}

/* An out-of-order queue: each waits for the event of the one before. */
static void chain(int n)
{
        const size_t one = 1;
        cl_event last = NULL;
        for (int i = 0; i < n; i++) {
                cl_event next;
                check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, last ? 1 : 0,
                                             last ? &last : NULL, &next),
                      "clEnqueueNDRangeKernel");
                if (last)
                        check(clReleaseEvent(last), "clReleaseEvent");
                last = next;
        }
        check(clWaitForEvents(1, &last), "clWaitForEvents");
        check(clReleaseEvent(last), "clReleaseEvent");
}

/* Small transfers to the device, on an in-order queue. */
static void write_small(int n)
{
        static const cl_uint values[2] = { 1, 2 };
        for (int i = 0; i < n; i++)
                check(clEnqueueWriteBuffer(queue, counter, CL_FALSE, 4, 4, &values[i & 1], 0, NULL,
                                           NULL),
                      "clEnqueueWriteBuffer");
        check(clFinish(queue), "clFinish");
}

/* An out-of-order queue: every other one stands for all before it. */
static void marker(int n)
{
        const size_t one = 1;
        for (int i = 0; i < n; i++) {
                check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                      "clEnqueueNDRangeKernel");
                check(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL),
                      "clEnqueueMarkerWithWaitList");
        }
        check(clFinish(queue), "clFinish");
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*run)(int n);
                cl_command_queue_properties properties;
        } modes[] = {
                { "launch", launch, 0 },
                { "time", time_launches, 0 },
                { "finish", finish, 0 },
                { "args", args, 0 },
                { "chain", chain, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE },
                { "write", write_small, 0 },
                { "marker", marker, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE },
        };
        unsigned mode = 0, count = sizeof(modes) / sizeof(modes[0]);
        while (mode < count && (argc != 3 || strcmp(argv[1], modes[mode].name) != 0))
                mode++;
        if (mode == count) {
                fprintf(stderr,
                        "usage: bench_commands launch|time|finish|args|chain|write|marker N\n");
                return 2;
        }
        int n = atoi(argv[2]) / BATCH * BATCH;
        const cl_uint zeros[2] = { 0, 0 }, by = 1;
        cl_uint result = 0;
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, NULL), "clGetDeviceIDs");
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        queue = clCreateCommandQueue(context, device, modes[mode].properties, &err);
        check(err, "clCreateCommandQueue");
        cl_program program =
                clCreateProgramWithBuiltInKernels(context, 1, &device, "spancl.inc.i32", &err);
        check(err, "clCreateProgramWithBuiltInKernels");
        kernel = clCreateKernel(program, "spancl.inc.i32", &err);
        check(err, "clCreateKernel");
        counter = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zeros), (void *)zeros, &err);
        check(err, "clCreateBuffer");
        check(clSetKernelArg(kernel, 0, sizeof(counter), &counter), "clSetKernelArg");
        check(clSetKernelArg(kernel, 1, sizeof(by), &by), "clSetKernelArg");
        int batch = modes[mode].run == marker || modes[mode].run == time_launches ? n : BATCH;
        for (int i = 0; i < n; i += batch)
                modes[mode].run(batch);
        check(clEnqueueReadBuffer(queue, counter, CL_TRUE, 0, sizeof(result), &result, 0, NULL,
                                  NULL),
              "clEnqueueReadBuffer");
        if (modes[mode].run != write_small && result != (cl_uint)n) {
                fprintf(stderr, "counted %u, not %d\n", result, n);
                return 1;
        }
        clReleaseMemObject(counter);
        clReleaseKernel(kernel);
        clReleaseProgram(program);
        clReleaseCommandQueue(queue);
        clReleaseContext(context);
        return 0;
}
