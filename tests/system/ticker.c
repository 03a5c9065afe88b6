/* A program for system/attach.py. Each line of its standard input is a number of launches of `tick`, each with a
 * clFinish; "queue N" makes a new queue first, which these launches and all later ones use. It answers with the count
 * that the kernels have made. First it prints "ready". */
#include "../api/api.h"

#include <stdbool.h>

static cl_command_queue another_queue(const struct api *a)
{
        cl_int err;
        cl_command_queue q =
                clCreateCommandQueueWithProperties(a->context, a->devices[0], NULL, &err);
        OK(err);
        return q;
}

int main(void)
{
        static const char word[] = "queue ";
        char line[80];
        cl_uint count = 0;
        struct api a = api_open(0);
        cl_program program = api_build(&a, "__kernel void tick(__global uint *x) { x[0]++; }", "");
        cl_kernel tick = api_kernel(program, "tick");
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, sizeof(count), NULL);
        cl_command_queue q = a.queues[0], more = NULL;
        size_t one = 1;
        OK(clSetKernelArg(tick, 0, sizeof(m), &m));
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, sizeof(count), &count, 0, NULL, NULL));
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                bool new = !strncmp(line, word, strlen(word));
                if (new &&more)
                        OK(clReleaseCommandQueue(more));
                if (new)
                        q = more = another_queue(&a);
                for (int i = atoi(line + (new ? strlen(word) : 0)); i > 0; i--) {
                        OK(clEnqueueNDRangeKernel(q, tick, 1, NULL, &one, NULL, 0, NULL, NULL));
                        OK(clFinish(q));
                }
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(count), &count, 0, NULL, NULL));
                printf("%u\n", count);
                fflush(stdout);
        }
        if (more)
                OK(clReleaseCommandQueue(more));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(tick));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
