/* servers: 1. An argument that is set to its present value is not sent again. One that has
 * changed is sent, also when the new object is at the old one's address. The program runs itself
 * with and without setting all arguments before each launch, and compares how many bytes it sent
 * (SPANCL_STATS). */

#include "api.h"
#include "stats.h"

enum { LAUNCHES = 2000 };

static const char source[] = "kernel void add(global int *p, int by) { *p += by; }";

static cl_mem zeroed(const struct api *a)
{
        int zero = 0;
        cl_int err;
        cl_mem m = clCreateBuffer(a->context, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, &err);
        OK(err);
        return m;
}

static void expect(const struct api *a, cl_mem m, int expected)
{
        int got;
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(got), &got, 0, NULL, NULL));
        CHECK(got == expected);
}

static void set_all(cl_kernel k, cl_mem m, int by)
{
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(by), &by));
}

static int work(int again)
{
        struct api a = api_open(0);
        const char *text = source;
        size_t one = 1;
        cl_int err;
        cl_program program = clCreateProgramWithSource(a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        cl_kernel k = clCreateKernel(program, "add", &err);
        OK(err);
        cl_mem m = zeroed(&a);
        set_all(k, m, 2);
        for (int i = 0; i < LAUNCHES; i++) {
                if (again)
                        set_all(k, m, 2);
                OK(clEnqueueNDRangeKernel(a.queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        }
        expect(&a, m, 2 * LAUNCHES);
        for (int by = 3; by <= 4; by++) { /* what changes does count */
                OK(clReleaseMemObject(m));
                m = zeroed(&a);
                set_all(k, m, by);
                OK(clEnqueueNDRangeKernel(a.queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
                expect(&a, m, by);
        }
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}

static long bytes(char *self, char *how)
{
        return stats_of((char *[]){ self, how, NULL }, "from", "bytes");
}

int main(int argc, char **argv)
{
        if (argc == 2)
                return work(!strcmp(argv[1], "again"));
        long once = bytes(argv[0], "once"), again = bytes(argv[0], "again");
        printf("bytes to the server: %ld, and %ld with all arguments set again\n", once, again);
        CHECK(again < once + once / 10);
        return 0;
}
