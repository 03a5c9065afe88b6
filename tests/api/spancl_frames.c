/* servers: 1. Calls that cost no round trip: creating, setting arguments, enqueuing and
 * releasing. The program runs itself twice, with few and with many of them between two clFinish,
 * and compares how many frames came back (SPANCL_STATS). The server does not notify the client of
 * events that the program does not look at, nor of a chain of them. */

#include "api.h"
#include "stats.h"

enum { MUCH = 1000, MORE_MAX = 16 }; /* acknowledgements: one for each 64 KiB of commands */

static const char source[] =
        "kernel void add(global int *p, int by) { p[get_global_id(0)] += by; }";

static int work(int count)
{
        struct api a = api_open(0);
        const char *text = source;
        cl_int err;
        cl_program program = clCreateProgramWithSource(a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        cl_event last = NULL;
        int zeros[64] = { 0 }, got[64], expected = 0;
        cl_mem kept = clCreateBuffer(a.context, CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros, &err);
        OK(err);
        OK(clFinish(a.queues[0]));
        for (int i = 0; i < count; i++) {
                size_t items = 64;
                cl_mem m = clCreateBuffer(a.context, CL_MEM_READ_WRITE, 4096, NULL, &err);
                OK(err);
                cl_kernel k = clCreateKernel(program, "add", &err);
                OK(err);
                OK(clSetKernelArg(k, 0, sizeof(kept), &kept));
                OK(clSetKernelArg(k, 1, sizeof(i), &i));
                OK(clEnqueueNDRangeKernel(a.queues[0], k, 1, NULL, &items, NULL, 0, NULL, NULL));
                OK(clEnqueueFillBuffer(a.queues[0], m, &i, sizeof(i), 0, 4096, 0, NULL, NULL));
                OK(clEnqueueWriteBuffer(a.queues[0], m, CL_FALSE, 0, 4, zeros, 0, NULL, NULL));
                cl_event next;
                OK(clEnqueueMarkerWithWaitList(a.queues[0], last != NULL, last ? &last : NULL,
                                               &next));
                if (last)
                        OK(clReleaseEvent(last));
                last = next;
                OK(clReleaseKernel(k));
                OK(clReleaseMemObject(m));
                expected += i;
        }
        OK(clFinish(a.queues[0]));
        OK(clEnqueueReadBuffer(a.queues[0], kept, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
        CHECK(got[0] == expected && got[63] == expected);
        if (last)
                OK(clReleaseEvent(last));
        OK(clReleaseMemObject(kept));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}

/* Frames from the server, counted by a fresh process that does `count` rounds. */
static long frames(char *self, char *count)
{
        return stats_of((char *[]){ self, count, NULL }, "to", "frames");
}

int main(int argc, char **argv)
{
        if (argc == 2)
                return work(atoi(argv[1]));
        char much[16];
        snprintf(much, sizeof(much), "%d", MUCH);
        long few = frames(argv[0], "1"), many = frames(argv[0], much);
        printf("frames from the server: %ld for 1 round, %ld for %d\n", few, many, MUCH);
        CHECK(few > 0 && many - few <= MORE_MAX);
        return 0;
}
