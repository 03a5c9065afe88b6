/* A solver that reads its residual after each step: conjugate gradient for Poisson's equation on a grid of SIDE by
 * SIDE points, with all scalars on the device. The program checks the last residual, and prints one JSON object with
 * the time of a step.
 *
 *     bench_cg STEPS [read|finish|norms [SIDE]]
 *
 * read: the step's launches, and a blocking read of 4 bytes. finish: clFinish between them. norms: two such reads, of
 * two buffers. */

#include "opencl.h"
#include "samples.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 64, KERNELS = 5 };

static const char source[] =
        "#define GROUPS 64\n"
        "float apply(global const float *v, uint i, uint side) {\n"
        "        uint x = i % side, y = i / side;\n"
        "        float sum = 4 * v[i];\n"
        "        sum -= x ? v[i - 1] : 0;\n"
        "        sum -= x + 1 < side ? v[i + 1] : 0;\n"
        "        sum -= y ? v[i - side] : 0;\n"
        "        sum -= y + 1 < side ? v[i + side] : 0;\n"
        "        return sum;\n"
        "}\n"
        "kernel void multiply(global const float *p, global float *q, global float *parts, uint side) {\n"
        "        uint part = get_global_id(0), each = side * side / GROUPS;\n"
        "        float sum = 0;\n"
        "        for (uint i = part * each; i < (part + 1) * each; i++) {\n"
        "                q[i] = apply(p, i, side);\n"
        "                sum += p[i] * q[i];\n"
        "        }\n"
        "        parts[part] = sum;\n"
        "}\n"
        "float total(global const float *parts) {\n"
        "        float sum = 0;\n"
        "        for (uint i = 0; i < GROUPS; i++)\n"
        "                sum += parts[i];\n"
        "        return sum;\n"
        "}\n"
        "kernel void divide(global const float *parts, global const float *norm, global float *alpha) {\n"
        "        *alpha = *norm / total(parts);\n"
        "}\n"
        "kernel void advance(global float *x, global float *r, global const float *p,\n"
        "                    global const float *q, global const float *alpha, global float *parts,\n"
        "                    uint side) {\n"
        "        uint part = get_global_id(0), each = side * side / GROUPS;\n"
        "        float sum = 0;\n"
        "        for (uint i = part * each; i < (part + 1) * each; i++) {\n"
        "                x[i] += *alpha * p[i];\n"
        "                r[i] -= *alpha * q[i];\n"
        "                sum += r[i] * r[i];\n"
        "        }\n"
        "        parts[part] = sum;\n"
        "}\n"
        "kernel void turn(global const float *parts, global float *norm, global float *beta) {\n"
        "        float sum = total(parts);\n"
        "        *beta = sum / *norm;\n"
        "        *norm = sum;\n"
        "}\n"
        "kernel void direct(global float *p, global const float *r, global const float *beta) {\n"
        "        size_t i = get_global_id(0);\n"
        "        p[i] = r[i] + *beta * p[i];\n"
        "}\n";

static const struct {
        const char *name;
        const char *args; /* the first letters of buffers; '#': the grid's side */
} kernels[KERNELS] = { { "multiply", "pqs#" },
                       { "divide", "sna" },
                       { "advance", "xrpqas#" },
                       { "turn", "snb" },
                       { "direct", "prb" } };

/* By their letters: x, r, p, q, partial sums, norm of r, alpha, beta. */
static const char letters[] = "xrpqsnab";

static float point(const float *v, cl_uint x, cl_uint y, cl_uint side)
{
        return x < side && y < side ? v[y * side + x] : 0;
}

/* The square of the norm of b - A x, with b = 1 everywhere. */
static double residual(const float *v, cl_uint side)
{
        double sum = 0;
        for (cl_uint y = 0; y < side; y++) {
                for (cl_uint x = 0; x < side; x++) {
                        double at = 4.0 * point(v, x, y, side) - point(v, x - 1, y, side) -
                                    point(v, x + 1, y, side) - point(v, x, y - 1, side) -
                                    point(v, x, y + 1, side);
                        sum += (1 - at) * (1 - at);
                }
        }
        return sum;
}

int main(int argc, char **argv)
{
        const int steps = argc > 1 ? atoi(argv[1]) : 100;
        const char *how = argc > 2 ? argv[2] : "read", *text = source;
        const cl_uint side = argc > 3 ? (cl_uint)atoi(argv[3]) : 128;
        const size_t points = (size_t)side * side,
                     sizes[] = { points, points, points, points, GROUPS, 1, 1, 1 };
        struct launcher l;
        cl_mem buffers[8];
        cl_kernel k[KERNELS];
        cl_int err;
        if (steps < 1 || side < 8 || points % GROUPS || points > 1 << 22 ||
            (strcmp(how, "read") && strcmp(how, "finish") && strcmp(how, "norms"))) {
                fprintf(stderr, "usage: bench_cg STEPS [read|finish|norms [SIDE]]; SIDE is a "
                                "multiple of 8, at most 2048\n");
                return 2;
        }
        launcher_init(&l);
        cl_program program = clCreateProgramWithSource(l.context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
        float *host = malloc(points * sizeof(*host));
        if (!host)
                return 1;
        for (int i = 0; i < 8; i++) {
                bool ones = letters[i] == 'r' || letters[i] == 'p';
                for (size_t n = 0; n < sizes[i]; n++)
                        host[n] = ones ? 1 : letters[i] == 'n' ? (float)points : 0;
                buffers[i] = clCreateBuffer(l.context, CL_MEM_COPY_HOST_PTR,
                                            sizes[i] * sizeof(*host), host, &err);
                check(err, "clCreateBuffer");
        }
        for (int i = 0; i < KERNELS; i++) {
                k[i] = clCreateKernel(program, kernels[i].name, &err);
                check(err, "clCreateKernel");
                for (cl_uint n = 0; kernels[i].args[n]; n++) {
                        const char *at = strchr(letters, kernels[i].args[n]);
                        if (at)
                                CHECK(clSetKernelArg(k[i], n, sizeof(cl_mem),
                                                     &buffers[at - letters]));
                        else
                                CHECK(clSetKernelArg(k[i], n, sizeof(side), &side));
                }
        }
        const size_t items[KERNELS] = { GROUPS, 1, GROUPS, 1, points };
        cl_mem norm = buffers[strchr(letters, 'n') - letters],
               alpha = buffers[strchr(letters, 'a') - letters];
        float got = 0, other = 0;
        double begin = now_us();
        for (int i = -10; i < steps; i++) { /* the driver's first launches are slow */
                if (i == 0)
                        begin = now_us();
                for (int n = 0; n < KERNELS; n++)
                        CHECK(clEnqueueNDRangeKernel(l.queue, k[n], 1, NULL, &items[n], NULL, 0,
                                                     NULL, NULL));
                if (!strcmp(how, "finish"))
                        CHECK(clFinish(l.queue));
                CHECK(clEnqueueReadBuffer(l.queue, norm, CL_TRUE, 0, sizeof(got), &got, 0, NULL,
                                          NULL));
                if (!strcmp(how, "norms"))
                        CHECK(clEnqueueReadBuffer(l.queue, alpha, CL_TRUE, 0, sizeof(other), &other,
                                                  0, NULL, NULL));
        }
        double took = now_us() - begin;
        CHECK(clEnqueueReadBuffer(l.queue, buffers[0], CL_TRUE, 0, points * sizeof(*host), host, 0,
                                  NULL, NULL));
        double real = residual(host, side);
        free(host);
        /* Both differ by rounding, the more the smaller the residual is. */
        if (!(fabs(sqrt(real) - sqrt((double)got)) < 1e-4 * (double)points)) {
                fprintf(stderr, "the residual is %g, not %g\n", real, (double)got);
                return 1;
        }
        printf("{\"step\": %.3f, \"steps\": %d, \"residual\": %g}\n", took / steps, steps,
               (double)got);
        return 0;
}
