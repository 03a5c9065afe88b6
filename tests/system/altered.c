/* altered [ROUNDS [TURNS]]: buffers go from the host to the first device, from there to the last,
 * and back to the host. A kernel on each device changes every byte. Then, with TURNS, a kernel
 * computes for so many turns of a loop. Exit status 0: all was right; 1: a call or a command
 * failed; 3: a byte is wrong. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>

enum { DEVICES_MAX = 8 };

/* A call that fails ends the program with status 1. */
#define OK(call)                                                     \
        do {                                                         \
                cl_int status_ = (call);                             \
                if (status_) {                                       \
                        fprintf(stderr, "%s: %d\n", #call, status_); \
                        _Exit(1);                                    \
                }                                                    \
        } while (0)

static const char source[] =
        "__kernel void add(__global uchar *p, uchar x) { p[get_global_id(0)] += x; }\n"
        "__kernel void turn(__global ulong *p, ulong n) {\n"
        "        ulong x = p[0];\n"
        "        for (ulong i = 0; i < n; i++) x = x * 6364136223846793005UL + (x >> 33);\n"
        "        p[0] = x;\n"
        "}\n";

static const size_t sizes[] = { 100, 20000, 70000, (1 << 20) + 5 };

static uint8_t expected(size_t i, unsigned seed)
{
        return (uint8_t)((i * 2654435761u + seed) >> 13);
}

static void add(cl_command_queue q, cl_kernel k, cl_mem m, size_t size)
{
        cl_uchar one = 1;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(one), &one));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &size, NULL, 0, NULL, NULL));
        OK(clFinish(q));
}

static void journey(cl_context context, cl_kernel k, cl_command_queue first, cl_command_queue last,
                    size_t size, unsigned seed)
{
        cl_int r;
        uint8_t *data = malloc(size);
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &r);
        OK(r);
        if (!data)
                _Exit(1);
        for (size_t i = 0; i < size; i++)
                data[i] = expected(i, seed);
        OK(clEnqueueWriteBuffer(first, m, CL_TRUE, 0, size, data, 0, NULL, NULL));
        add(first, k, m, size);
        add(last, k, m, size);
        add(first, k, m, size);
        memset(data, 0, size);
        OK(clEnqueueReadBuffer(first, m, CL_TRUE, 0, size, data, 0, NULL, NULL));
        for (size_t i = 0; i < size; i++)
                if (data[i] != (uint8_t)(expected(i, seed) + 3)) {
                        fprintf(stderr, "byte %zu of %zu is wrong\n", i, size);
                        _Exit(3);
                }
        OK(clReleaseMemObject(m));
        free(data);
}

static void turn(cl_context context, cl_program program, cl_command_queue q, cl_ulong turns)
{
        cl_int r;
        size_t one = 1;
        cl_ulong x = 1, expected_x = 1;
        cl_kernel k = clCreateKernel(program, "turn", &r);
        OK(r);
        cl_mem m = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(x), &x, &r);
        OK(r);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(turns), &turns));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
        puts("turning");
        (void)fflush(stdout);
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(x), &x, 0, NULL, NULL));
        for (cl_ulong i = 0; i < turns; i++)
                expected_x = expected_x * 6364136223846793005ull + (expected_x >> 33);
        if (x != expected_x)
                _Exit(3);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 1;
        cl_platform_id platform;
        cl_device_id devices[DEVICES_MAX];
        cl_uint count;
        cl_int r;
        const char *text = source;
        OK(clGetPlatformIDs(1, &platform, NULL));
        OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count));
        cl_context context = clCreateContext(NULL, count, devices, NULL, NULL, &r);
        OK(r);
        cl_command_queue first = clCreateCommandQueue(context, devices[0], 0, &r);
        OK(r);
        cl_command_queue last = clCreateCommandQueue(context, devices[count - 1], 0, &r);
        OK(r);
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
        OK(r);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        cl_kernel k = clCreateKernel(program, "add", &r);
        OK(r);
        for (int i = 0; i < rounds; i++)
                for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++)
                        journey(context, k, first, last, sizes[j], (unsigned)(i * 7 + (int)j));
        if (argc > 2)
                turn(context, program, first, strtoull(argv[2], NULL, 0));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
        OK(clReleaseCommandQueue(first));
        OK(clReleaseCommandQueue(last));
        OK(clReleaseContext(context));
        return 0;
}
