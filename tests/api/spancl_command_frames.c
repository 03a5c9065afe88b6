/* servers: 1. The messages of a command buffer's run. A run is one message, whatever its size and
 * its wait list. Each change is one more message. The program runs itself with few and with many
 * runs, and compares how many messages were sent (SPANCL_STATS). */

#include "command_buffer.h"
#include "stats.h"

enum { COMMANDS = 50, MANY = 400, MORE_MAX = 20 }; /* clock queries, acknowledgements */

static const char source[] =
        "kernel void add(global int *p, int by) { p[get_global_id(0)] += by; }";

static int work(int runs)
{
        struct api a = api_open(CL_QUEUE_PROFILING_ENABLE);
        cb_load(a.platform);
        cl_program program = api_build(&a, source, "");
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(&a, 0, 64, NULL);
        void *b = cb_create(1, a.queues, MUTABLE), *first = NULL;
        const size_t items = 16;
        int by = 0, got = 0, zero = 0, expected = 0;
        OK(clSetKernelArg(add, 0, sizeof(m), &m));
        OK(clSetKernelArg(add, 1, sizeof(by), &by));
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, &first));
        by = 1;
        OK(clSetKernelArg(add, 1, sizeof(by), &by));
        for (int i = 1; i < COMMANDS; i++)
                OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        OK(clEnqueueFillBuffer(a.queues[0], m, &zero, 4, 0, 64, 0, NULL, NULL));
        for (int i = 0; i < runs; i++) {
                struct dispatch_arg arg = { 1, sizeof(i), &i };
                struct dispatch_config change = { .command = first, .num_args = 1, .args = &arg };
                cl_event event;
                OK(cb_update(b, &change));
                OK(cb.enqueue(0, NULL, b, 0, NULL, &event));
                OK(clReleaseEvent(event));
                expected += i + COMMANDS - 1;
        }
        OK(clEnqueueReadBuffer(a.queues[0], m, CL_TRUE, 0, 4, &got, 0, NULL, NULL));
        CHECK(got == expected);
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}

/* Messages to the server, counted by a fresh process that does `runs`. */
static long messages(char *self, char *runs)
{
        return stats_of((char *[]){ self, runs, NULL }, "from", "messages");
}

int main(int argc, char **argv)
{
        if (argc == 2)
                return work(atoi(argv[1]));
        char many[16];
        snprintf(many, sizeof(many), "%d", MANY + 1);
        long one = messages(argv[0], "1"), all = messages(argv[0], many);
        printf("messages to the server: %ld for 1 run, %ld for %d\n", one, all, MANY + 1);
        CHECK(one > 0 && all - one >= 2 * MANY - MORE_MAX && all - one <= 2 * MANY + MORE_MAX);
        return 0;
}
