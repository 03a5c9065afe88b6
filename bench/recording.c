/* Compares the run of a command buffer of N empty kernels with enqueuing the N kernels
 * (cl_khr_command_buffer; SpanCL only). The two alternate round by round. Each is measured up to
 * the last enqueue and up to clFinish. Prints one JSON object. */

#include "opencl.h"
#include "samples.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300, WARM_UP = 20 };

static struct launcher on;
static const size_t one = 1;

static void *(*create)(cl_uint, const cl_command_queue *, const void *, cl_int *);
static cl_int (*launch)(void *, cl_command_queue, const void *, cl_kernel, cl_uint, const size_t *,
                        const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *,
                        void **);
static cl_int (*finalize)(void *), (*release)(void *);
static cl_int (*run)(cl_uint, cl_command_queue *, void *, cl_uint, const cl_event *, cl_event *);

static void find(const char *name, void *to)
{
        void *address = clGetExtensionFunctionAddressForPlatform(on.platform, name);
        if (!address) {
                fprintf(stderr, "%s: not there\n", name);
                exit(77);
        }
        memcpy(to, &address, sizeof(address));
}

static void set_up(void)
{
        launcher_init(&on);
        find("clCreateCommandBufferKHR", &create);
        find("clCommandNDRangeKernelKHR", &launch);
        find("clFinalizeCommandBufferKHR", &finalize);
        find("clReleaseCommandBufferKHR", &release);
        find("clEnqueueCommandBufferKHR", &run);
}

static void *record(int count)
{
        cl_int err;
        void *b = create(1, &on.queue, NULL, &err);
        check(err, "clCreateCommandBufferKHR");
        for (int i = 0; i < count; i++)
                check(launch(b, NULL, NULL, on.kernel, 1, NULL, &one, &one, 0, NULL, NULL, NULL),
                      "clCommandNDRangeKernelKHR");
        check(finalize(b), "clFinalizeCommandBufferKHR");
        return b;
}

static void enqueue(int count)
{
        for (int i = 0; i < count; i++)
                check(clEnqueueNDRangeKernel(on.queue, on.kernel, 1, NULL, &one, &one, 0, NULL,
                                             NULL),
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
                        check(clFinish(on.queue), "clFinish");
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
