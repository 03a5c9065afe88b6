/* SPANCL_PREFETCH=1: a program in steps reads the same small result after each step. The reads cost no further round
 * trip, and give the right result. servers: 1 */
#include <stdbool.h>
#include <string.h>

#include "api.h"
#include "stats.h"

enum { N = 1024, STEPS = 200 };

static const char source[] =
        "kernel void advance(global uint *a) { a[get_global_id(0)] = a[get_global_id(0)] * 5 + 1; }\n"
        "kernel void total(global const uint *a, global uint *sum) {\n"
        "        *sum = 0;\n"
        "        for (uint i = 0; i < 1024; i++)\n"
        "                *sum += a[i];\n"
        "}\n";

/* Run steps with a clFinish and then two reads, which would each be a wait. Every `other` steps another command writes
 * the result before the reads (0: never). */
static void steps(struct api *a, unsigned other, bool events)
{
        const size_t n = N, one = 1;
        cl_uint zeros[N] = { 0 }, value = 0;
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
        cl_mem sum = api_buffer(a, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL);
        cl_program p = api_build(a, source, NULL);
        cl_kernel advance = api_kernel(p, "advance"), total = api_kernel(p, "total");
        cl_command_queue q = a->queues[0];
        OK(clSetKernelArg(advance, 0, sizeof(m), &m));
        OK(clSetKernelArg(total, 0, sizeof(m), &m));
        OK(clSetKernelArg(total, 1, sizeof(sum), &sum));
        for (unsigned i = 1; i <= STEPS; i++) {
                cl_uint got[2] = { 0 };
                cl_event e = NULL, *want = events ? &e : NULL;
                OK(clEnqueueNDRangeKernel(q, advance, 1, NULL, &n, NULL, 0, NULL, NULL));
                value = value * 5 + 1;
                OK(clEnqueueNDRangeKernel(q, total, 1, NULL, &one, NULL, 0, NULL, want));
                OK(events ? clWaitForEvents(1, &e) : clFinish(q));
                cl_uint expected = value * N;
                if (other && i % other == 0) {
                        expected = 7 * i;
                        OK(clEnqueueFillBuffer(q, sum, &expected, sizeof(expected), 0,
                                               sizeof(expected), 0, NULL, NULL));
                }
                OK(clEnqueueReadBuffer(q, sum, CL_TRUE, 0, sizeof(got[0]), &got[0], events, want,
                                       NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 400, sizeof(got[1]), &got[1], 0, NULL, NULL));
                CHECK(got[0] == expected && got[1] == value);
                if (e)
                        OK(clReleaseEvent(e));
        }
        OK(clReleaseKernel(advance));
        OK(clReleaseKernel(total));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(sum));
        OK(clReleaseMemObject(m));
}

static long waits(char *program, const char *what)
{
        char *argv[] = { program, (char *)(uintptr_t)what, NULL };
        return stats_waits(argv);
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";
        CHECK(!setenv("SPANCL_PREFETCH", strcmp(what, "off") ? "1" : "0", 1));
        if (*what) {
                struct api a = api_open(0);
                if (!strcmp(what, "steps") || !strcmp(what, "off"))
                        steps(&a, 0, false);
                api_close(&a);
                return 0;
        }
        long nothing = waits(argv[0], "nothing");
        CHECK(waits(argv[0], "off") > nothing + 2 * STEPS);
        CHECK(waits(argv[0], "steps") < nothing + STEPS + STEPS / 4);
        struct api a = api_open(0);
        steps(&a, 3, false);
        steps(&a, 7, true);
        api_close(&a);
        return 0;
}
