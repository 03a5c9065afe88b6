/* profiled LAUNCHES MOVES KERNELS: known counts for system/profile.py. On the first device: LAUNCHES of
 * `tick` with a clFinish each, 5 blocking writes and 3 blocking reads of 64 KiB, and a launch of each of
 * KERNELS further kernels. Then MOVES + 1 launches of `touch`, on the first and the second device in turn,
 * each with a clFinish: a buffer of a MiB moves MOVES times. Checks what it computes. */
#include "../api/api.h"

enum { SMALL = 64 << 10, LARGE = 1 << 20, ITEMS = 16 };

static char *make_source(int kernels)
{
        char *text = malloc(512 + (size_t)kernels * 80), *at = text;
        CHECK(text);
        at += sprintf(at, "__kernel void tick(__global uint *x) { x[0]++; }\n"
                          "__kernel void touch(__global uint *x) { x[get_global_id(0)] += 3; }\n");
        for (int i = 0; i < kernels; i++)
                at += sprintf(at, "__kernel void k%d(__global uint *x) { x[1] += %d; }\n", i, i);
        return text;
}

static void launch(cl_command_queue q, cl_kernel k, cl_mem m, size_t items)
{
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &items, NULL, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
        CHECK(argc == 4);
        int launches = atoi(argv[1]), moves = atoi(argv[2]), kernels = atoi(argv[3]);
        static cl_uint data[LARGE / 4];
        struct api a = api_open(0);
        CHECK(a.count >= 2);
        char *source = make_source(kernels);
        cl_program program = api_build(&a, source, "");
        cl_kernel tick = api_kernel(program, "tick"), touch = api_kernel(program, "touch");
        cl_mem small = api_buffer(&a, CL_MEM_READ_WRITE, SMALL, NULL);
        cl_mem large = api_buffer(&a, CL_MEM_READ_WRITE, LARGE, NULL);
        for (int i = 0; i < 5; i++)
                OK(clEnqueueWriteBuffer(a.queues[0], small, CL_TRUE, 0, SMALL, data, 0, NULL,
                                        NULL));
        for (int i = 0; i < launches; i++) {
                launch(a.queues[0], tick, small, 1);
                OK(clFinish(a.queues[0]));
        }
        for (int i = 0; i < kernels; i++) {
                char name[16];
                snprintf(name, sizeof(name), "k%d", i);
                cl_kernel k = api_kernel(program, name);
                launch(a.queues[0], k, small, 1);
                OK(clReleaseKernel(k));
        }
        for (int i = 0; i < 3; i++)
                OK(clEnqueueReadBuffer(a.queues[0], small, CL_TRUE, 0, SMALL, data, 0, NULL, NULL));
        CHECK(data[0] == (cl_uint)launches);
        CHECK(data[1] == (cl_uint)(kernels * (kernels - 1) / 2));
        memset(data, 0, sizeof(data));
        OK(clEnqueueWriteBuffer(a.queues[0], large, CL_FALSE, 0, LARGE, data, 0, NULL, NULL));
        for (int i = 0; i <= moves; i++) {
                launch(a.queues[i % 2], touch, large, ITEMS);
                OK(clFinish(a.queues[i % 2]));
        }
        OK(clEnqueueReadBuffer(a.queues[moves % 2], large, CL_TRUE, 0, LARGE, data, 0, NULL, NULL));
        for (int i = 0; i < LARGE / 4; i++)
                CHECK(data[i] == (i < ITEMS ? 3u * (cl_uint)(moves + 1) : 0));
        OK(clReleaseKernel(tick));
        OK(clReleaseKernel(touch));
        OK(clReleaseMemObject(small));
        OK(clReleaseMemObject(large));
        OK(clReleaseProgram(program));
        free(source);
        api_close(&a);
        printf("computed\n");
        return 0;
}
