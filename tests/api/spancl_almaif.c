/* CPU and accelerators in one context, as in the AlmaIF paper's validation: separate queues, events that go
 * both ways, results that are checked. The accelerators are emulated: two of this host, which share memory,
 * and one behind a server. runner: with-accelerators */

#include "api.h"

enum { N = 1000, ROUNDS = 8 };

static const char source[] = "kernel void twice(global const int *in, global int *out) {"
                             " size_t i = get_global_id(0); out[i] = in[i] * 2; }\n"
                             "kernel void never(global int *p) { p[0] = 1; }\n";

struct parts {
        struct api a; /* custom devices last */
        cl_uint cpus;
        cl_program program, built_in;
};

static cl_device_type type_of(cl_device_id d)
{
        cl_device_type t;
        OK(clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof(t), &t, NULL));
        return t;
}

/* Custom devices are there when they are asked for, CL_DEVICE_TYPE_ALL leaves them out. */
static struct parts parts_open(void)
{
        struct parts p = { 0 };
        cl_uint custom;
        cl_int err;
        OK(clGetPlatformIDs(1, &p.a.platform, NULL));
        OK(clGetDeviceIDs(p.a.platform, CL_DEVICE_TYPE_ALL, 8, p.a.devices, &p.cpus));
        for (cl_uint i = 0; i < p.cpus; i++)
                CHECK(!(type_of(p.a.devices[i]) & CL_DEVICE_TYPE_CUSTOM));
        OK(clGetDeviceIDs(p.a.platform, CL_DEVICE_TYPE_CUSTOM, 8, p.a.devices + p.cpus, &custom));
        CHECK(p.cpus == 2 && custom == 3);
        p.a.count = p.cpus + custom;
        p.a.context = clCreateContext(NULL, p.a.count, p.a.devices, NULL, NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < p.a.count; i++) {
                p.a.queues[i] = clCreateCommandQueue(p.a.context, p.a.devices[i], 0, &err);
                OK(err);
        }
        const char *text = source;
        p.program = clCreateProgramWithSource(p.a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(p.program, p.cpus, p.a.devices, "", NULL, NULL));
        p.built_in =
                clCreateProgramWithBuiltInKernels(p.a.context, custom, p.a.devices + p.cpus,
                                                  "pocl.add.i32;pocl.mul.i32;spancl.inc.i32", &err);
        OK(err);
        return p;
}

static void parts_close(struct parts *p)
{
        OK(clReleaseProgram(p->program));
        OK(clReleaseProgram(p->built_in));
        api_close(&p->a);
}

static cl_event launch(const struct parts *p, cl_uint device, cl_kernel k, cl_event after)
{
        size_t items = N;
        cl_event e;
        OK(clEnqueueNDRangeKernel(p->a.queues[device], k, 1, NULL, &items, NULL, after ? 1 : 0,
                                  after ? &after : NULL, &e));
        if (after)
                OK(clReleaseEvent(after));
        return e;
}

static void device_says_what_it_is(const struct parts *p)
{
        for (cl_uint i = p->cpus; i < p->a.count; i++) {
                char text[2000];
                cl_bool compiler = CL_TRUE;
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_NAME, sizeof(text), text, NULL));
                CHECK(strstr(text, "accelerator") != NULL);
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_BUILT_IN_KERNELS, sizeof(text), text,
                                   NULL));
                CHECK(strstr(text, "pocl.add.i32") != NULL);
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler),
                                   &compiler, NULL));
                CHECK(!compiler);
        }
        EXPECT_ERROR(CL_INVALID_VALUE,
                     (void *)clCreateProgramWithBuiltInKernels(
                             p->a.context, 1, p->a.devices + p->cpus, "pocl.nonsense", &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     (void *)clCreateProgramWithBuiltInKernels(p->a.context, 1, p->a.devices,
                                                               "pocl.add.i32", &error));
}

static void kernels_say_what_their_arguments_are(const struct parts *p)
{
        cl_kernel k = api_kernel(p->built_in, "pocl.add.i32");
        cl_uint count;
        cl_kernel_arg_address_qualifier address;
        cl_kernel_arg_type_qualifier type;
        char name[32];
        OK(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL));
        CHECK(count == 3);
        OK(clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address,
                              NULL));
        CHECK(address == CL_KERNEL_ARG_ADDRESS_GLOBAL);
        OK(clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type, NULL));
        CHECK(type == CL_KERNEL_ARG_TYPE_CONST);
        OK(clGetKernelArgInfo(k, 2, CL_KERNEL_ARG_TYPE_NAME, sizeof(name), name, NULL));
        CHECK(!strcmp(name, "int*"));
        EXPECT(CL_INVALID_ARG_INDEX, clSetKernelArg(k, 3, sizeof(cl_mem), NULL));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, 3, "abc"));
        OK(clReleaseKernel(k));
}

/* CPU → accelerator → CPU → next accelerator, with nothing but events between. */
static void chains_go_both_ways(const struct parts *p)
{
        static cl_int a[N], b[N], out[N];
        for (int i = 0; i < N; i++) {
                a[i] = i;
                b[i] = 1000 - 3 * i;
        }
        cl_mem x = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(a), a);
        cl_mem y = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(b), b);
        cl_mem z = api_buffer(&p->a, 0, sizeof(a), NULL);
        cl_kernel twice = api_kernel(p->program, "twice");
        cl_kernel add = api_kernel(p->built_in, "pocl.add.i32");
        cl_kernel mul = api_kernel(p->built_in, "pocl.mul.i32");
        cl_event e = NULL;
        for (unsigned round = 0; round < ROUNDS; round++) {
                cl_uint cpu = round % p->cpus, acc = p->cpus + round % (p->a.count - p->cpus);
                cl_kernel k = round % 4 == 3 ? mul : add;
                OK(clSetKernelArg(twice, 0, sizeof(x), &x));
                OK(clSetKernelArg(twice, 1, sizeof(z), &z));
                e = launch(p, cpu, twice, e);
                OK(clSetKernelArg(k, 0, sizeof(z), &z));
                OK(clSetKernelArg(k, 1, sizeof(y), &y));
                OK(clSetKernelArg(k, 2, sizeof(x), &x));
                e = launch(p, acc, k, e);
                OK(clFlush(p->a.queues[cpu]));
                OK(clFlush(p->a.queues[acc]));
                for (int i = 0; i < N; i++)
                        a[i] = k == mul ? (cl_int)((cl_uint)a[i] * 2 * (cl_uint)b[i])
                                        : (cl_int)((cl_uint)a[i] * 2 + (cl_uint)b[i]);
        }
        OK(clEnqueueReadBuffer(p->a.queues[0], x, CL_TRUE, 0, sizeof(out), out, 1, &e, NULL));
        CHECK(!memcmp(out, a, sizeof(a)));
        OK(clReleaseEvent(e));
        OK(clReleaseKernel(twice));
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(mul));
        OK(clReleaseMemObject(x));
        OK(clReleaseMemObject(y));
        OK(clReleaseMemObject(z));
}

/* Writes, reads, copies, fills, rectangles and maps on an accelerator's memory. */
static void transfers_work(const struct parts *p)
{
        for (cl_uint i = p->cpus; i < p->a.count; i++) {
                cl_command_queue q = p->a.queues[i];
                unsigned char in[64 * 16], out[64 * 16];
                cl_int err;
                for (unsigned n = 0; n < sizeof(in); n++)
                        in[n] = (unsigned char)(n * 5 + i);
                cl_mem m = api_buffer(&p->a, 0, sizeof(in), NULL);
                cl_mem n = api_buffer(&p->a, 0, sizeof(in), NULL);
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(in), in, 0, NULL, NULL));
                OK(clEnqueueCopyBuffer(q, m, n, 0, 0, sizeof(in), 0, NULL, NULL));
                OK(clEnqueueFillBuffer(q, n, "\x11\x22", 2, 100, 50, 0, NULL, NULL));
                memcpy(out, in, sizeof(in));
                for (unsigned k = 100; k < 150; k++)
                        out[k] = k % 2 ? 0x22 : 0x11;
                size_t from[3] = { 3, 2, 0 }, to[3] = { 7, 8, 0 }, region[3] = { 9, 4, 1 };
                OK(clEnqueueCopyBufferRect(q, m, n, from, to, region, 64, 0, 64, 0, 0, NULL, NULL));
                for (unsigned y = 0; y < 4; y++)
                        memcpy(out + (8 + y) * 64 + 7, in + (2 + y) * 64 + 3, 9);
                unsigned char *map = clEnqueueMapBuffer(q, n, CL_TRUE, CL_MAP_READ, 0, sizeof(in),
                                                        0, NULL, NULL, &err);
                OK(err);
                CHECK(!memcmp(map, out, sizeof(out)));
                OK(clEnqueueUnmapMemObject(q, n, map, 0, NULL, NULL));
                OK(clFinish(q));
                OK(clReleaseMemObject(m));
                OK(clReleaseMemObject(n));
        }
}

/* A launch that leaves its buffer fails on the device. A command on the CPU that waits for it
 * fails, too. */
static void failure_reaches_the_other_device(const struct parts *p)
{
        cl_kernel inc = api_kernel(p->built_in, "spancl.inc.i32"),
                  never = api_kernel(p->program, "never");
        cl_mem m = api_buffer(&p->a, 0, 4, NULL), n = api_buffer(&p->a, 0, 4, NULL);
        cl_int by = 1, zero = 0, out = 1;
        size_t too_many = 1 << 30, one = 1;
        OK(clEnqueueWriteBuffer(p->a.queues[0], n, CL_TRUE, 0, 4, &zero, 0, NULL, NULL));
        OK(clSetKernelArg(inc, 0, sizeof(m), &m));
        OK(clSetKernelArg(inc, 1, sizeof(by), &by));
        OK(clSetKernelArg(never, 0, sizeof(n), &n));
        cl_event e, f;
        OK(clEnqueueNDRangeKernel(p->a.queues[p->cpus], inc, 1, NULL, &too_many, NULL, 0, NULL,
                                  &e));
        OK(clEnqueueNDRangeKernel(p->a.queues[0], never, 1, NULL, &one, NULL, 1, &e, &f));
        OK(clFlush(p->a.queues[p->cpus]));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &f));
        CHECK(api_status(e) == CL_OUT_OF_RESOURCES);
        CHECK(api_status(f) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        OK(clEnqueueReadBuffer(p->a.queues[0], n, CL_TRUE, 0, 4, &out, 0, NULL, NULL));
        CHECK(out == 0);
        OK(clReleaseEvent(e));
        OK(clReleaseEvent(f));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
        OK(clReleaseKernel(inc));
        OK(clReleaseKernel(never));
}

/* Packets have no place for it. */
static void offsets_are_refused(const struct parts *p)
{
        cl_kernel inc = api_kernel(p->built_in, "spancl.inc.i32");
        cl_mem m = api_buffer(&p->a, 0, 64, NULL);
        cl_int by = 1;
        size_t offset = 1, items = 1;
        cl_event e;
        OK(clSetKernelArg(inc, 0, sizeof(m), &m));
        OK(clSetKernelArg(inc, 1, sizeof(by), &by));
        cl_int r = clEnqueueNDRangeKernel(p->a.queues[p->cpus], inc, 1, &offset, &items, NULL, 0,
                                          NULL, &e);
        if (r == CL_SUCCESS) { /* the server says so later */
                CHECK(clWaitForEvents(1, &e) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                r = api_status(e);
                OK(clReleaseEvent(e));
        }
        CHECK(r == CL_INVALID_GLOBAL_OFFSET);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(inc));
}

int main(void)
{
        struct parts p = parts_open();
        device_says_what_it_is(&p);
        kernels_say_what_their_arguments_are(&p);
        chains_go_both_ways(&p);
        transfers_work(&p);
        failure_reaches_the_other_device(&p);
        offsets_are_refused(&p);
        parts_close(&p);
        return 0;
}
