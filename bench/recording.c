/* What a command buffer of N empty kernels costs to run, against enqueuing the N of them (cl_khr_command_buffer;
 * SpanCL only). Both in turn, round after round, each up to clFinish and up to the last enqueue. Prints one JSON
 * object. */

#include "samples.h"

#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300, WARM_UP = 20 };

static cl_platform_id platform;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static const size_t one = 1;

static void *(*create)(cl_uint, const cl_command_queue *, const void *, cl_int *);
static cl_int (*launch)(void *, cl_command_queue, const void *, cl_kernel, cl_uint, const size_t *,
                        const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *,
                        void **);
static cl_int (*finalize)(void *), (*release)(void *);
static cl_int (*run)(cl_uint, cl_command_queue *, void *, cl_uint, const cl_event *, cl_event *);

static void check(cl_int err, const char *what)
{
        if (err == CL_SUCCESS)
                return;
        fprintf(stderr, "%s: %d\n", what, err);
        exit(1);
}

static void find(const char *name, void *to)
{
        void *address = clGetExtensionFunctionAddressForPlatform(platform, name);
        if (!address) {
                fprintf(stderr, "%s: not there\n", name);
                exit(77);
        }
        memcpy(to, &address, sizeof(address));
}

static void set_up(void)
{
        static const char *source = "__kernel void empty(void) {}";
        cl_device_id device;
        cl_int err;
        check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        check(err, "clCreateProgramWithSource");
        check(clBuildProgram(program, 1, &device, NULL, NULL, NULL), "clBuildProgram");
        kernel = clCreateKernel(program, "empty", &err);
        check(err, "clCreateKernel");
        find("clCreateCommandBufferKHR", &create);
        find("clCommandNDRangeKernelKHR", &launch);
        find("clFinalizeCommandBufferKHR", &finalize);
        find("clReleaseCommandBufferKHR", &release);
        find("clEnqueueCommandBufferKHR", &run);
}

static void *record(int count)
{
        cl_int err;
        void *b = create(1, &queue, NULL, &err);
        check(err, "clCreateCommandBufferKHR");
        for (int i = 0; i < count; i++)
                check(launch(b, NULL, NULL, kernel, 1, NULL, &one, &one, 0, NULL, NULL, NULL),
                      "clCommandNDRangeKernelKHR");
        check(finalize(b), "clFinalizeCommandBufferKHR");
        return b;
}

static void enqueue(int count)
{
        for (int i = 0; i < count; i++)
                check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL),
                      "clEnqueueNDRangeKernel");
}

/* [0] recorded, [1] enqueued. */
static struct samples finished[2], enqueued[2];

static void measure(int count)
{
        void *b = record(count);
        for (int i = 0; i < WARM_UP + ROUNDS; i++) {
                for (int how = 0; how < 2; how++) {
                        double begin = now_us();
                        if (how)
                                enqueue(count);
                        else
                                check(run(0, NULL, b, 0, NULL, NULL), "clEnqueueCommandBufferKHR");
                        double middle = now_us();
                        check(clFinish(queue), "clFinish");
                        if (i < WARM_UP)
                                continue;
                        samples_add(&finished[how], now_us() - begin);
                        samples_add(&enqueued[how], middle - begin);
                }
        }
        check(release(b), "clReleaseCommandBufferKHR");
        static const char *const ways[] = { "recorded", "enqueued" };
        for (int how = 0; how < 2; how++) {
                char name[64];
                snprintf(name, sizeof(name), "%s_%d_finished", ways[how], count);
                samples_print(&finished[how], name, "us");
                snprintf(name, sizeof(name), "%s_%d_returned", ways[how], count);
                samples_print(&enqueued[how], name, "us");
        }
}

int main(void)
{
        set_up();
        measure(1);
        measure(10);
        measure(100);
        measure(1000);
        printf("\n}\n");
        return 0;
}
