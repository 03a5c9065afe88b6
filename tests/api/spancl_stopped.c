/* A chain of kernels over the servers, handing a buffer on, advances while this whole program is stopped.
 * servers: 2 */

#include "api.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 30000 };

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n";

static cl_ulong now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (cl_ulong)t.tv_sec * 1000000000 + (cl_ulong)t.tv_nsec;
}

/* For so long nothing of this process runs; from when, and until when. */
static void stand_still(unsigned ms, cl_ulong ret[2])
{
        cl_ulong *shared =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        pid_t self = getpid(), child = fork();
        CHECK(child >= 0);
        if (!child) {
                struct timespec t = { ms / 1000, ms % 1000 * 1000000l };
                kill(self, SIGSTOP);
                shared[0] = now_ns();
                nanosleep(&t, NULL);
                shared[1] = now_ns();
                kill(self, SIGCONT);
                _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        memcpy(ret, shared, 2 * sizeof(*ret));
        munmap(shared, 4096);
}

/* Return true if the chain completed while the program was stopped, and not when it went on. */
static int advances(struct api *a, cl_kernel k, unsigned length, unsigned ms)
{
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4 * N, NULL);
        cl_uint one = 1, zero = 0;
        size_t items = N;
        cl_int err;
        cl_event last = clCreateUserEvent(a->context, &err), gate = last;
        OK(err);
        OK(clEnqueueFillBuffer(a->queues[0], m, &zero, 4, 0, 4 * N, 0, NULL, NULL));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(one), &one));
        for (unsigned i = 0; i < length; i++) {
                cl_event next;
                OK(clEnqueueNDRangeKernel(api_queue(a, i), k, 1, NULL, &items, NULL, 1, &last,
                                          &next));
                if (last != gate)
                        OK(clReleaseEvent(last));
                last = next;
        }
        for (cl_uint i = 0; i < a->count; i++)
                OK(clFlush(a->queues[i]));
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        cl_ulong still[2], ended;
        stand_still(ms, still);
        OK(clWaitForEvents(1, &last));
        OK(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(ended), &ended, NULL));
        static cl_uint back[N];
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, 4 * N, back, 0, NULL, NULL));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == length);
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(last));
        OK(clReleaseMemObject(m));
        return ended > still[0] && ended < still[1];
}

int main(void)
{
        struct api a = api_open(CL_QUEUE_PROFILING_ENABLE);
        cl_program program = api_build(&a, source, "");
        cl_kernel k = api_kernel(program, "add");
        /* Not within any time: on a busy machine it takes longer. */
        unsigned ms = 200, length = 200;
        while (!advances(&a, k, length, ms)) {
                ms *= 2;
                length += 100;
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
