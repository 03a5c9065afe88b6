/* servers: 2. The waits of a program whose servers are far away. The program runs itself up to
 * some step, with little and with much of everything. SPANCL_STATS has the number of its waits. A
 * wait is a round trip. It is less when the client asked both servers at once and one had
 * answered already. */

#include "api.h"
#include "stats.h"

/* All of it fits into a session's window: else the program waits until some has arrived. */
enum { N = 256, FEW = 1, MANY = 1000 };

enum step { CONNECT, CONTEXT, BUILD, KERNELS, BUFFERS, LAUNCHES, FINISH, LOOK, READ, RELEASE };

static const char source[] =
        "kernel void add(global int *p, int by) { p[get_global_id(0)] += by; }\n"
        "kernel void copy(global const int *p, global int *q, local int *l) {\n"
        "        l[get_local_id(0)] = p[get_global_id(0)];\n"
        "        q[get_global_id(0)] = l[get_local_id(0)];\n"
        "}\n";

static struct {
        struct api api;
        cl_program program;
        cl_kernel add, copy;
        cl_mem a, b, sub, image;
        cl_event last;
        int host[N], back[N], sum;
} w;

/* Query the devices. The client knows the answers once it is connected. */
static void ask_context(void)
{
        char text[8192];
        cl_uint formats;
        for (cl_uint i = 0; i < w.api.count; i++) {
                OK(clGetDeviceInfo(w.api.devices[i], CL_DEVICE_NAME, sizeof(text), text, NULL));
                OK(clGetDeviceInfo(w.api.devices[i], CL_DEVICE_EXTENSIONS, sizeof(text), text,
                                   NULL));
        }
        OK(clGetSupportedImageFormats(w.api.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0,
                                      NULL, &formats));
        cl_ulong device, host;
        OK(clGetDeviceAndHostTimer(w.api.devices[0], &device, &host));
}

/* Query a program and its kernels. The answers came with the build. */
static void ask_kernels(int count)
{
        char text[8192];
        size_t size[3];
        for (int i = 0; i < count; i++) {
                cl_device_id device = w.api.devices[(cl_uint)i % w.api.count];
                cl_kernel k = api_kernel(w.program, i & 1 ? "add" : "copy");
                OK(clGetProgramBuildInfo(w.program, device, CL_PROGRAM_BUILD_LOG, sizeof(text),
                                         text, NULL));
                OK(clGetProgramInfo(w.program, CL_PROGRAM_KERNEL_NAMES, sizeof(text), text, NULL));
                OK(clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, NULL));
                OK(clGetKernelArgInfo(k, 1, CL_KERNEL_ARG_TYPE_NAME, sizeof(text), text, NULL));
                OK(clGetKernelWorkGroupInfo(k, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size[0]),
                                            size, NULL));
                OK(clGetKernelWorkGroupInfo(k, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                            sizeof(size), size, NULL));
                OK(clReleaseKernel(k));
        }
        w.add = api_kernel(w.program, "add");
        w.copy = api_kernel(w.program, "copy");
}

/* Small data travels with the commands, so that even a blocking write does not wait. */
static void make_buffers(int count)
{
        cl_int err;
        cl_buffer_region half = { 0, sizeof(w.host) / 2 };
        for (int i = 0; i < count; i++) {
                w.a = api_buffer(&w.api, CL_MEM_COPY_HOST_PTR, sizeof(w.host), w.host);
                w.b = api_buffer(&w.api, CL_MEM_READ_WRITE, sizeof(w.host), NULL);
                w.sub = clCreateSubBuffer(w.b, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &err);
                OK(err);
                OK(clEnqueueWriteBuffer(w.api.queues[0], w.b, CL_TRUE, 0, sizeof(w.host), w.host, 0,
                                        NULL, NULL));
                cl_command_queue q = clCreateCommandQueue(w.api.context, w.api.devices[0], 0, &err);
                OK(err);
                OK(clReleaseCommandQueue(q));
                OK(clReleaseMemObject(w.sub));
                if (i + 1 < count) {
                        OK(clReleaseMemObject(w.a));
                        OK(clReleaseMemObject(w.b));
                }
        }
}

/* A chain of events that goes to the other server and back. */
static void launch(int count)
{
        const size_t n = N, local = 64;
        for (int i = 0; i < count; i++) {
                cl_command_queue q = api_queue(&w.api, (unsigned)i / ((unsigned)count / 2 + 1));
                cl_event next;
                w.sum += i;
                OK(clSetKernelArg(w.add, 0, sizeof(w.a), &w.a));
                OK(clSetKernelArg(w.add, 1, sizeof(i), &i));
                OK(clEnqueueNDRangeKernel(q, w.add, 1, NULL, &n, i & 1 ? &local : NULL,
                                          w.last != NULL, w.last ? &w.last : NULL, &next));
                OK(clFlush(q));
                if (w.last)
                        OK(clReleaseEvent(w.last));
                w.last = next;
                OK(clEnqueueFillBuffer(q, w.b, &i, sizeof(i), 0, sizeof(w.host), 0, NULL, NULL));
                OK(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
        }
        OK(clSetKernelArg(w.copy, 0, sizeof(w.a), &w.a));
        OK(clSetKernelArg(w.copy, 1, sizeof(w.b), &w.b));
        OK(clSetKernelArg(w.copy, 2, 64 * 4, NULL));
        cl_event next;
        OK(clEnqueueNDRangeKernel(w.api.queues[0], w.copy, 1, NULL, &n, &local, 1, &w.last, &next));
        OK(clReleaseEvent(w.last));
        w.last = next;
        for (cl_uint i = 0; i < w.api.count; i++)
                OK(clFlush(w.api.queues[i]));
}

static int work(enum step end, int count)
{
        w.api = api_open(0);
        if (end >= CONTEXT)
                ask_context();
        if (end >= BUILD)
                w.program = api_build(&w.api, source, "-cl-kernel-arg-info");
        if (end >= KERNELS)
                ask_kernels(count);
        if (end >= BUFFERS)
                make_buffers(count);
        if (end >= LAUNCHES)
                launch(count);
        if (end >= FINISH)
                OK(clWaitForEvents(1, &w.last));
        if (end >= LOOK)
                for (int i = 0; i < count; i++)
                        CHECK(api_status(w.last) == CL_COMPLETE);
        if (end >= READ) {
                OK(clEnqueueReadBuffer(w.api.queues[0], w.b, CL_TRUE, 0, sizeof(w.back), w.back, 0,
                                       NULL, NULL));
                CHECK(w.back[0] == w.sum && w.back[N - 1] == w.sum);
        }
        if (end >= RELEASE) {
                OK(clReleaseEvent(w.last));
                OK(clReleaseMemObject(w.a));
                OK(clReleaseMemObject(w.b));
                OK(clReleaseKernel(w.add));
                OK(clReleaseKernel(w.copy));
                OK(clReleaseProgram(w.program));
                for (cl_uint i = 0; i < w.api.count; i++)
                        OK(clReleaseCommandQueue(w.api.queues[i]));
                OK(clReleaseContext(w.api.context));
        }
        return 0;
}

/* The waits of a program that ends there. */
static long waits(char *self, enum step end, int count)
{
        char step[16], times[16];
        snprintf(step, sizeof(step), "%d", (int)end);
        snprintf(times, sizeof(times), "%d", count);
        return stats_waits((char *[]){ self, step, times, NULL });
}

int main(int argc, char **argv)
{
        static const struct {
                enum step end;
                const char *what;
                long waits; /* for this step, at most */
        } steps[] = {
                { CONNECT, "connecting", 2 },
                { CONTEXT, "questions about devices", 0 },
                { BUILD, "a build", 2 },
                { KERNELS, "kernels and questions about them", 0 },
                { BUFFERS, "buffers and small writes", 0 },
                { LAUNCHES, "launches, fills and barriers on two servers", 0 },
                { FINISH, "clWaitForEvents", 1 },
                { LOOK, "the status of what was waited for", 0 },
                { READ, "a blocking read", 1 },
                { RELEASE, "releases", 0 },
        };
        if (argc == 3)
                return work((enum step)atoi(argv[1]), atoi(argv[2]));
        long limit = 0;
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                limit += steps[i].waits;
                long few = waits(argv[0], steps[i].end, FEW);
                long many = waits(argv[0], steps[i].end, MANY);
                printf("up to %s: %ld waits, %ld with %d times as many, at most %ld\n",
                       steps[i].what, few, many, MANY, limit);
                CHECK(few <= limit && many <= limit);
        }
        return 0;
}
