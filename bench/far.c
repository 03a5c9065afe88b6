/* Measures each step of a small, ordinary program over links with a long round trip. Everything
 * is checked. Half of the queries ask twice, since the first answer may have to come from the
 * server. Prints one JSON object.
 *
 *     bench_far [STEPS] */

#include "opencl.h"
#include "samples.h"

#include <stdlib.h>
#include <string.h>

enum { N = 4096, DEVICES_MAX = 8 };

static const char source[] =
        "kernel void add(global uint *p, uint by) { p[get_global_id(0)] += by; }\n"
        "kernel void twice(global const uint *p, global uint *q, local uint *l) {\n"
        "        size_t i = get_global_id(0);\n"
        "        l[get_local_id(0)] = p[i];\n"
        "        q[i] = 2 * l[get_local_id(0)];\n"
        "}\n";

static struct samples samples;
static double begin;

static void done(const char *name)
{
        samples_add(&samples, (now_us() - begin) * 1e-3);
        samples_print(&samples, name, "ms");
        begin = now_us();
}

static void ask_kernel(cl_kernel k, cl_device_id device)
{
        char text[256];
        cl_uint count;
        size_t size[3];
        cl_ulong bytes;
        CHECK(clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, NULL));
        CHECK(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL));
        for (cl_uint i = 0; i < count; i++)
                CHECK(clGetKernelArgInfo(k, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(text), text, NULL));
        CHECK(clGetKernelWorkGroupInfo(k, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size[0]), size,
                                       NULL));
        CHECK(clGetKernelWorkGroupInfo(k, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(size),
                                       size, NULL));
        CHECK(clGetKernelWorkGroupInfo(k, device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(bytes), &bytes,
                                       NULL));
}

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 1000;
        cl_platform_id platform;
        cl_device_id devices[DEVICES_MAX];
        cl_uint count;
        cl_int err;
        const size_t n = N;

        begin = now_us();
        double first = begin;
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count));
        if (count > DEVICES_MAX)
                count = DEVICES_MAX;
        for (cl_uint i = 0; i < count; i++) {
                char text[4096];
                CHECK(clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(text), text, NULL));
                CHECK(clGetDeviceInfo(devices[i], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
        }
        done("devices");
        cl_context context = clCreateContext(NULL, count, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        cl_command_queue queues[DEVICES_MAX], queue;
        for (cl_uint i = 0; i < count; i++) {
                queues[i] =
                        clCreateCommandQueue(context, devices[i], CL_QUEUE_PROFILING_ENABLE, &err);
                check(err, "clCreateCommandQueue");
        }
        queue = queues[0];
        cl_uint formats;
        CHECK(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
                                         &formats));
        done("context");

        const char *text = source;
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
        done("build");
        char log[4096];
        size_t kernels;
        CHECK(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, sizeof(log), log,
                                    NULL));
        CHECK(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(kernels), &kernels, NULL));
        done("build_info");
        cl_kernel add = clCreateKernel(program, "add", &err);
        check(err, "clCreateKernel");
        cl_kernel twice = clCreateKernel(program, "twice", &err);
        check(err, "clCreateKernel");
        done("kernels");
        for (cl_uint i = 0; i < count; i++) {
                ask_kernel(add, devices[i]);
                ask_kernel(twice, devices[i]);
        }
        done("kernel_info");

        cl_uint *host = calloc(N, sizeof(*host)), *back = calloc(N, sizeof(*host));
        if (!host || !back)
                return 1;
        for (cl_uint i = 0; i < N; i++)
                host[i] = i * 2654435761u;
        cl_mem a = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, N * 4, host, &err);
        check(err, "clCreateBuffer");
        cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, N * 4, NULL, &err);
        check(err, "clCreateBuffer");
        done("buffers");
        CHECK(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, N * 4, host, 0, NULL, NULL));
        done("write");

        cl_uint sum = 0, by;
        for (int i = 0; i < steps; i++) {
                sum += by = (cl_uint)i;
                CHECK(clSetKernelArg(add, 0, sizeof(a), &a));
                CHECK(clSetKernelArg(add, 1, sizeof(by), &by));
                CHECK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 0, NULL, NULL));
        }
        CHECK(clFinish(queue));
        done("loop");
        cl_event last = NULL, next;
        for (int i = 0; i < steps; i++) {
                cl_uint device = (cl_uint)i * count / (cl_uint)steps;
                sum += by = 1;
                CHECK(clSetKernelArg(add, 1, sizeof(by), &by));
                CHECK(clEnqueueNDRangeKernel(queues[device], add, 1, NULL, &n, NULL, last != NULL,
                                             last ? &last : NULL, &next));
                CHECK(clFlush(queues[device]));
                if (last)
                        CHECK(clReleaseEvent(last));
                last = next;
        }
        CHECK(clWaitForEvents(1, &last));
        done("chain_over_devices");
        cl_ulong start, end;
        cl_int status;
        CHECK(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             NULL));
        CHECK(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_START, sizeof(start), &start,
                                      NULL));
        CHECK(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL));
        CHECK(clReleaseEvent(last));
        done("event_info");

        const size_t local = 64;
        CHECK(clSetKernelArg(twice, 0, sizeof(a), &a));
        CHECK(clSetKernelArg(twice, 1, sizeof(b), &b));
        CHECK(clSetKernelArg(twice, 2, local * 4, NULL));
        CHECK(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &n, &local, 0, NULL, NULL));
        CHECK(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, N * 4, back, 0, NULL, NULL));
        done("read");
        for (cl_uint i = 0; i < N; i++) {
                if (back[i] != 2 * (host[i] + sum)) {
                        fprintf(stderr, "bench_far: %u at %u, not %u\n", back[i], i,
                                2 * (host[i] + sum));
                        return 1;
                }
        }

        begin = now_us();
        clReleaseMemObject(a);
        clReleaseMemObject(b);
        clReleaseKernel(add);
        clReleaseKernel(twice);
        clReleaseProgram(program);
        for (cl_uint i = 0; i < count; i++)
                clReleaseCommandQueue(queues[i]);
        clReleaseContext(context);
        done("release");
        begin = first;
        done("all");
        printf("\n}\n");
        return 0;
}
