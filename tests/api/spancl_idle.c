/* servers: 2. A session that has moved 1 MiB from one server to the other. With an argument it
 * stays until its standard input ends, so that another program can look at it meanwhile
 * (tests/run/cli). */

#include "api.h"

enum { SIZE = 1 << 20 };

static const char source[] = "kernel void add(global int *p) { p[get_global_id(0)] += 1; }";

int main(int argc, char **argv)
{
        static int host[SIZE / 4];
        struct api a = api_open(0);
        cl_program program = api_build(&a, source, "");
        cl_kernel k = api_kernel(program, "add");
        cl_mem m = api_buffer(&a, CL_MEM_COPY_HOST_PTR, SIZE, host);
        const size_t n = SIZE / 4;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        for (cl_uint i = 0; i < a.count; i++) {
                OK(clEnqueueNDRangeKernel(a.queues[i], k, 1, NULL, &n, NULL, 0, NULL, NULL));
                OK(clFinish(a.queues[i]));
        }
        printf("idle\n");
        fflush(stdout);
        (void)argv;
        while (argc > 1 && getchar() != EOF)
                ;
        OK(clEnqueueReadBuffer(a.queues[0], m, CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
        CHECK(host[0] == (int)a.count && host[SIZE / 4 - 1] == (int)a.count);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
