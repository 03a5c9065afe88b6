/* C = A B of N x N numbers, rows over the devices, gathered on the first: what several devices of one context make
 * of work that is divided once, without host code that moves data. Uploads are not counted; some rows
 * are checked. Prints one JSON object: for 1, 2, 4, ... devices, or the numbers given, the time in ms.
 *
 *     bench_matmul [--size N] [--devices N,...] [--rounds N] */

#include "samples.h"

#include <CL/cl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64, TILE = 16, CHECKED = 4 };

static const char source[] =
        "#define T 16\n"
        "__kernel __attribute__((reqd_work_group_size(T, T, 1)))\n"
        "void multiply(__global const float *a, __global const float *b, __global float *c, uint n) {\n"
        "        __local float as[T][T], bs[T][T];\n"
        "        uint x = get_local_id(0), y = get_local_id(1);\n"
        "        size_t column = get_global_id(0), row = get_global_id(1);\n"
        "        float sum = 0;\n"
        "        for (uint k = 0; k < n; k += T) {\n"
        "                as[y][x] = a[row * n + k + x];\n"
        "                bs[y][x] = b[(size_t)(k + y) * n + column];\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "                for (uint i = 0; i < T; i++) sum += as[y][i] * bs[i][x];\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        }\n"
        "        c[row * n + column] = sum;\n"
        "}\n";

static size_t n = 1024;
static int rounds = 5;
static cl_context context;
static cl_device_id devices[DEVICES_MAX];
static cl_command_queue queues[DEVICES_MAX];
static cl_uint device_count;
static cl_program program;
static float *a_host, *b_host, *c_host;
static struct samples samples;

static void check(cl_int err, const char *what)
{
        if (err == CL_SUCCESS)
                return;
        fprintf(stderr, "bench_matmul: %s: error %d\n", what, err);
        exit(1);
}

static cl_mem part_of(cl_mem whole, size_t first, size_t rows)
{
        cl_int err;
        const cl_buffer_region region = { first * n * 4, rows * n * 4 };
        cl_mem m = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
        check(err, "clCreateSubBuffer");
        return m;
}

static cl_mem buffer(cl_mem_flags flags, void *data)
{
        cl_int err;
        cl_mem m = clCreateBuffer(context, flags, n * n * 4, data, &err);
        check(err, "clCreateBuffer");
        return m;
}

/* Whole tiles of rows for each of `count` devices. */
static size_t row_of(cl_uint i, cl_uint count)
{
        return n / TILE * i / count * TILE;
}

static void check_rows(void)
{
        for (size_t k = 0; k < CHECKED; k++) {
                size_t row = k * (n - 1) / (CHECKED - 1);
                for (size_t column = 0; column < n; column += 37) {
                        float sum = 0;
                        for (size_t i = 0; i < n; i++)
                                sum += a_host[row * n + i] * b_host[i * n + column];
                        if (sum != c_host[row * n + column]) { /* small integers: exact */
                                fprintf(stderr, "bench_matmul: row %zu is wrong\n", row);
                                exit(1);
                        }
                }
        }
}

static void run(cl_uint count)
{
        cl_mem a = buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, a_host);
        cl_mem b = buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, b_host);
        cl_mem c = buffer(CL_MEM_READ_WRITE, NULL);
        cl_mem a_part[DEVICES_MAX], c_part[DEVICES_MAX];
        cl_kernel kernels[DEVICES_MAX];
        cl_event done[DEVICES_MAX];
        cl_uint size = (cl_uint)n;
        cl_int err;
        for (cl_uint i = 0; i < count; i++) {
                size_t first = row_of(i, count), rows = row_of(i + 1, count) - first;
                a_part[i] = part_of(a, first, rows);
                c_part[i] = part_of(c, first, rows);
                const cl_mem needed[] = { a_part[i], b };
                check(clEnqueueMigrateMemObjects(queues[i], 2, needed, 0, 0, NULL, NULL),
                      "migrate");
                check(clEnqueueMigrateMemObjects(queues[i], 1, &c_part[i],
                                                 CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL,
                                                 NULL),
                      "migrate");
                check(clFinish(queues[i]), "clFinish");
                kernels[i] = clCreateKernel(program, "multiply", &err);
                check(err, "clCreateKernel");
                check(clSetKernelArg(kernels[i], 0, sizeof(cl_mem), &a_part[i]), "clSetKernelArg");
                check(clSetKernelArg(kernels[i], 1, sizeof(cl_mem), &b), "clSetKernelArg");
                check(clSetKernelArg(kernels[i], 2, sizeof(cl_mem), &c_part[i]), "clSetKernelArg");
                check(clSetKernelArg(kernels[i], 3, sizeof(size), &size), "clSetKernelArg");
        }
        for (int round = 0; round < rounds + 1; round++) {
                double begin = now_us();
                for (cl_uint i = 0; i < count; i++) {
                        const size_t global[] = { n, row_of(i + 1, count) - row_of(i, count) };
                        const size_t local[] = { TILE, TILE };
                        check(clEnqueueNDRangeKernel(queues[i], kernels[i], 2, NULL, global, local,
                                                     0, NULL, &done[i]),
                              "clEnqueueNDRangeKernel");
                        check(clFlush(queues[i]), "clFlush");
                }
                check(clEnqueueMigrateMemObjects(queues[0], 1, &c, 0, count, done, NULL), "gather");
                check(clFinish(queues[0]), "clFinish");
                if (round)
                        samples_add(&samples, (now_us() - begin) * 1e-3);
                for (cl_uint i = 0; i < count; i++)
                        clReleaseEvent(done[i]);
        }
        check(clEnqueueReadBuffer(queues[0], c, CL_TRUE, 0, n * n * 4, c_host, 0, NULL, NULL),
              "clEnqueueReadBuffer");
        check_rows();
        char name[64];
        snprintf(name, sizeof(name), "matmul_%zu_on_%u", n, count);
        samples_print(&samples, name, "ms");
        for (cl_uint i = 0; i < count; i++) {
                clReleaseKernel(kernels[i]);
                clReleaseMemObject(a_part[i]);
                clReleaseMemObject(c_part[i]);
        }
        clReleaseMemObject(a);
        clReleaseMemObject(b);
        clReleaseMemObject(c);
}

static void start(void)
{
        cl_platform_id platform;
        cl_int err;
        const char *text = source;
        check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &device_count),
              "clGetDeviceIDs");
        device_count = device_count < DEVICES_MAX ? device_count : DEVICES_MAX;
        context = clCreateContext(NULL, device_count, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        for (cl_uint i = 0; i < device_count; i++) {
                queues[i] = clCreateCommandQueue(context, devices[i], 0, &err);
                check(err, "clCreateCommandQueue");
        }
        program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        check(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
        a_host = malloc(n * n * 4);
        b_host = malloc(n * n * 4);
        c_host = malloc(n * n * 4);
        if (!a_host || !b_host || !c_host)
                exit(1);
        for (size_t i = 0; i < n * n; i++) {
                a_host[i] = (float)(i * 7 % 5);
                b_host[i] = (float)(i * 3 % 7);
        }
}

int main(int argc, char **argv)
{
        static const struct option names[] = {
                { "size", required_argument, NULL, 's' },
                { "devices", required_argument, NULL, 'd' },
                { "rounds", required_argument, NULL, 'r' },
                { 0 },
        };
        char *list = NULL;
        for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                if (c == 's')
                        n = (size_t)atol(optarg) / TILE * TILE;
                else if (c == 'd')
                        list = optarg;
                else if (c == 'r')
                        rounds = atoi(optarg);
                else
                        return 2;
        }
        start();
        for (cl_uint count = 1; !list && count <= device_count; count *= 2)
                run(count);
        for (char *word = list ? strtok(list, ",") : NULL; word; word = strtok(NULL, ",")) {
                cl_uint count = (cl_uint)atoi(word);
                if (count >= 1 && count <= device_count)
                        run(count);
        }
        printf("\n}\n");
        for (cl_uint i = 0; i < device_count; i++)
                clReleaseCommandQueue(queues[i]);
        clReleaseProgram(program);
        clReleaseContext(context);
        free(a_host);
        free(b_host);
        free(c_host);
        return 0;
}
