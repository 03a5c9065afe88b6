/* recorded HOW LAUNCHES: programs for claims in system/trace.py. `timed`: the program runs LAUNCHES launches and
 * command buffers in a queue with profiling, and prints the begin and the end of each. The others are for the flight
 * recorder: the program launches a kernel LAUNCHES times, says "ready", waits for a line of its input, and launches it
 * once more.
 * `plain`: it does no more than that. `fails`: then a command fails, because the event that it waits for fails.
 * `handles`: the program has its own handler of SIGUSR2, which says "handled". `forks`: then it makes a child, which
 * SIGUSR2 ends as always. */
#include "../api/api.h"
#include "../api/command_buffer.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int number)
{
        (void)number;
        (void)!write(STDOUT_FILENO, "handled\n", 8);
}

static void fail(struct api *a, cl_mem m)
{
        cl_int err, zero = 0;
        cl_event user = clCreateUserEvent(a->context, &err), event;
        OK(err);
        OK(clEnqueueFillBuffer(a->queues[0], m, &zero, sizeof(zero), 0, 4096, 1, &user, &event));
        OK(clSetUserEventStatus(user, -5));
        CHECK(clWaitForEvents(1, &event) != CL_SUCCESS);
        OK(clReleaseEvent(event));
        OK(clReleaseEvent(user));
}

static void make_child(void)
{
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child)
                for (;;)
                        pause();
        CHECK(kill(child, SIGUSR2) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
}

static void tell(const char *name, cl_event event)
{
        cl_ulong start, end;
        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, NULL));
        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL));
        OK(clReleaseEvent(event));
        printf("%s %llu %llu\n", name, (unsigned long long)start, (unsigned long long)end);
}

static void run_timed(struct api *a, cl_kernel tick, int count)
{
        enum { MOST = 100 };
        cl_int err;
        size_t one = 1;
        cl_event launches[MOST], buffers[MOST];
        cl_command_queue q =
                clCreateCommandQueue(a->context, a->devices[0], CL_QUEUE_PROFILING_ENABLE, &err);
        OK(err);
        CHECK(count <= MOST);
        cb_load(a->platform);
        void *b = cb_create(1, &q, 0);
        for (int i = 0; i < 3; i++)
                OK(cb.kernel(b, NULL, NULL, tick, 1, NULL, &one, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        for (int i = 0; i < count; i++) {
                OK(clEnqueueNDRangeKernel(q, tick, 1, NULL, &one, NULL, 0, NULL, &launches[i]));
                OK(cb.enqueue(0, NULL, b, 0, NULL, &buffers[i]));
        }
        OK(clFinish(q));
        for (int i = 0; i < count; i++) {
                tell("tick", launches[i]);
                tell("command buffer", buffers[i]);
        }
        OK(cb.release(b));
        OK(clReleaseCommandQueue(q));
}

int main(int argc, char **argv)
{
        char line[80];
        CHECK(argc == 3);
        if (!strcmp(argv[1], "handles"))
                CHECK(sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = handler }, NULL) == 0);
        struct api a = api_open(0);
        cl_program program = api_build(&a, "__kernel void tick(__global uint *x) { x[0]++; }", "");
        cl_kernel tick = api_kernel(program, "tick");
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, 4096, NULL);
        size_t one = 1;
        OK(clSetKernelArg(tick, 0, sizeof(m), &m));
        bool timed = !strcmp(argv[1], "timed");
        if (timed)
                run_timed(&a, tick, atoi(argv[2]));
        for (int i = 0; i < atoi(argv[2]) && !timed; i++) {
                OK(clEnqueueNDRangeKernel(a.queues[0], tick, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clFinish(a.queues[0]));
        }
        puts("ready");
        fflush(stdout);
        if (!strcmp(argv[1], "forks"))
                make_child();
        if (!strcmp(argv[1], "fails"))
                fail(&a, m);
        else if (!timed)
                while (!fgets(line, sizeof(line), stdin) && ferror(stdin)) /* a signal */
                        clearerr(stdin);
        OK(clEnqueueNDRangeKernel(a.queues[0], tick, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clFinish(a.queues[0]));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(tick));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
