/* Computes C = A B of N x N numbers on several devices of one context. The rows are divided once
 * over the devices and gathered on the first, without host code that moves data. Each device
 * computes its rows in pieces. A second queue of the first device brings each piece as soon as it
 * is done, while the next is computed. Uploads are not counted; some rows are checked. Prints one
 * JSON object: the time in ms for 1, 2, 4, ... devices, or for the given numbers.
 *
 *     bench_matmul [--size N] [--devices N,...] [--rounds N] */

#include "opencl.h"
#include "samples.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64, PIECES = 4, TILE = 128, GROUP = 16, CHECKED = 4 };

/* A work-group of 16 x 16 makes a tile of 128 x 128 of C, each work-item 2 x 2 blocks of 4 x 4 numbers in
 * registers. Eight columns of A (transposed) and eight rows of B at a time are in local memory, twice:
 * the next ones arrive while these are used. Rows of `left` have a gap so that banks don't collide. */
static const char source[] =
        "#define TILE 128\n"
        "#define DEPTH 8\n"
        "#define ROW(i, v) sum[i][0] = mad((float4)(v), b0, sum[i][0]); "
        "sum[i][1] = mad((float4)(v), b1, sum[i][1]);\n"
        "__kernel __attribute__((reqd_work_group_size(16, 16, 1)))\n"
        "void multiply(__global const float *a, __global const float *b, __global float *c, uint n) {\n"
        "        __local float4 left[2][DEPTH][TILE / 4 + 1], right[2][DEPTH][TILE / 4];\n"
        "        const uint x = get_local_id(0), y = get_local_id(1), me = y * 16 + x;\n"
        "        float4 sum[8][2];\n"
        "#pragma unroll\n"
        "        for (uint i = 0; i < 8; i++) sum[i][0] = sum[i][1] = (float4)(0);\n"
        "        a += ((size_t)get_group_id(1) * TILE + me / 2) * n + me % 2 * 4;\n"
        "        b += (size_t)(me / 32) * n + get_group_id(0) * TILE + me % 32 * 4;\n"
        "        c += ((size_t)get_group_id(1) * TILE + y * 4) * n + get_group_id(0) * TILE + x * 4;\n"
        "        float4 va = *(__global const float4 *)a, vb = *(__global const float4 *)b;\n"
        "        for (uint k = 0, turn = 0; k < n; k += DEPTH, turn ^= 1) {\n"
        "                __local float *to = (__local float *)left[turn][me % 2 * 4] + me / 2;\n"
        "                to[0] = va.x;\n"
        "                to[TILE + 4] = va.y;\n"
        "                to[2 * (TILE + 4)] = va.z;\n"
        "                to[3 * (TILE + 4)] = va.w;\n"
        "                right[turn][me / 32][me % 32] = vb;\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "                if (k + DEPTH < n) {\n"
        "                        va = *(__global const float4 *)(a + k + DEPTH);\n"
        "                        vb = *(__global const float4 *)(b + (size_t)(k + DEPTH) * n);\n"
        "                }\n"
        "#pragma unroll\n"
        "                for (uint i = 0; i < DEPTH; i++) {\n"
        "                        const float4 a0 = left[turn][i][y], a1 = left[turn][i][y + 16];\n"
        "                        const float4 b0 = right[turn][i][x], b1 = right[turn][i][x + 16];\n"
        "                        ROW(0, a0.x) ROW(1, a0.y) ROW(2, a0.z) ROW(3, a0.w)\n"
        "                        ROW(4, a1.x) ROW(5, a1.y) ROW(6, a1.z) ROW(7, a1.w)\n"
        "                }\n"
        "        }\n"
        "#pragma unroll\n"
        "        for (uint i = 0; i < 8; i++) {\n"
        "                __global float *row = c + (size_t)(i / 4 * 64 + i % 4) * n;\n"
        "                *(__global float4 *)row = sum[i][0];\n"
        "                *(__global float4 *)(row + 64) = sum[i][1];\n"
        "        }\n"
        "}\n";

/* Rows that one launch computes. */
struct piece {
        size_t rows; /* 0: there are more pieces than tiles */
        cl_mem a;
        cl_mem c;
        cl_kernel kernel;
        cl_event done;
};

static size_t n = 1024;
static int rounds = 5;
static cl_context context;
static cl_device_id devices[DEVICES_MAX];
static cl_command_queue queues[DEVICES_MAX];
static cl_command_queue gather; /* of the first device, so that copies don't wait for its kernels */
static cl_uint device_count;
static cl_program program;
static float *a_host, *b_host, *c_host;
static struct samples samples;

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

/* Piece `k` of `pieces`: whole tiles, on the queue's device before anything is measured. */
static struct piece piece_new(cl_command_queue queue, size_t k, size_t pieces, cl_mem a, cl_mem b,
                              cl_mem c)
{
        const size_t first = n / TILE * k / pieces * TILE;
        const cl_uint size = (cl_uint)n;
        cl_int err;
        struct piece p = { .rows = n / TILE * (k + 1) / pieces * TILE - first };
        if (!p.rows)
                return p;
        p.a = part_of(a, first, p.rows);
        p.c = part_of(c, first, p.rows);
        const cl_mem needed[] = { p.a, b };
        check(clEnqueueMigrateMemObjects(queue, 2, needed, 0, 0, NULL, NULL), "migrate");
        check(clEnqueueMigrateMemObjects(queue, 1, &p.c, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                         NULL, NULL),
              "migrate");
        check(clFinish(queue), "clFinish");
        p.kernel = clCreateKernel(program, "multiply", &err);
        check(err, "clCreateKernel");
        check(clSetKernelArg(p.kernel, 0, sizeof(cl_mem), &p.a), "clSetKernelArg");
        check(clSetKernelArg(p.kernel, 1, sizeof(cl_mem), &b), "clSetKernelArg");
        check(clSetKernelArg(p.kernel, 2, sizeof(cl_mem), &p.c), "clSetKernelArg");
        check(clSetKernelArg(p.kernel, 3, sizeof(size), &size), "clSetKernelArg");
        return p;
}

static void piece_free(struct piece *p)
{
        if (!p->rows)
                return;
        clReleaseKernel(p->kernel);
        clReleaseMemObject(p->a);
        clReleaseMemObject(p->c);
}

/* All launches first, so that every device works while the copies are enqueued. */
static void multiply(cl_uint count, struct piece pieces[][PIECES], cl_mem c)
{
        for (cl_uint k = 0; k < PIECES; k++) {
                for (cl_uint i = 0; i < count; i++) {
                        struct piece *p = &pieces[i][k];
                        const size_t global[] = { n / TILE * GROUP, p->rows / TILE * GROUP };
                        const size_t local[] = { GROUP, GROUP };
                        if (!p->rows)
                                continue;
                        check(clEnqueueNDRangeKernel(queues[i], p->kernel, 2, NULL, global, local,
                                                     0, NULL, &p->done),
                              "clEnqueueNDRangeKernel");
                        check(clFlush(queues[i]), "clFlush");
                }
        }
        cl_event computed[PIECES];
        cl_uint computed_count = 0;
        for (cl_uint k = 0; k < PIECES; k++) {
                if (pieces[0][k].rows)
                        computed[computed_count++] = pieces[0][k].done;
                for (cl_uint i = 1; i < count; i++) {
                        struct piece *p = &pieces[i][k];
                        if (p->rows)
                                check(clEnqueueMigrateMemObjects(gather, 1, &p->c, 0, 1, &p->done,
                                                                 NULL),
                                      "gather");
                }
                check(clFlush(gather), "clFlush");
        }
        check(clEnqueueMigrateMemObjects(gather, 1, &c, 0, computed_count,
                                         computed_count ? computed : NULL, NULL),
              "gather");
        check(clFinish(gather), "clFinish");
}

static void run(cl_uint count)
{
        cl_mem a = buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, a_host);
        cl_mem b = buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, b_host);
        cl_mem c = buffer(CL_MEM_READ_WRITE, NULL);
        static struct piece pieces[DEVICES_MAX][PIECES];
        for (cl_uint i = 0; i < count; i++)
                for (cl_uint k = 0; k < PIECES; k++)
                        pieces[i][k] = piece_new(queues[i], (size_t)i * PIECES + k,
                                                 (size_t)count * PIECES, a, b, c);
        for (int round = 0; round < rounds + 1; round++) {
                double begin = now_us();
                multiply(count, pieces, c);
                if (round)
                        samples_add(&samples, (now_us() - begin) * 1e-3);
                for (cl_uint i = 0; i < count; i++)
                        for (cl_uint k = 0; k < PIECES; k++)
                                if (pieces[i][k].rows)
                                        clReleaseEvent(pieces[i][k].done);
        }
        check(clEnqueueReadBuffer(gather, c, CL_TRUE, 0, n * n * 4, c_host, 0, NULL, NULL),
              "clEnqueueReadBuffer");
        check_rows();
        char name[64];
        snprintf(name, sizeof(name), "matmul_%zu_on_%u", n, count);
        samples_print(&samples, name, "ms");
        for (cl_uint i = 0; i < count; i++)
                for (cl_uint k = 0; k < PIECES; k++)
                        piece_free(&pieces[i][k]);
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
        gather = clCreateCommandQueue(context, devices[0], 0, &err);
        check(err, "clCreateCommandQueue");
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
        clReleaseCommandQueue(gather);
        for (cl_uint i = 0; i < device_count; i++)
                clReleaseCommandQueue(queues[i]);
        clReleaseProgram(program);
        clReleaseContext(context);
        free(a_host);
        free(b_host);
        free(c_host);
        return 0;
}
