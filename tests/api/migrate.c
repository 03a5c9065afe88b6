/* One context over the devices of several servers: data follows the commands that use it.
 * servers: 3 */

#include "api.h"

enum { N = 40000 };

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void sum(__global const uint *a, __global const uint *b, __global uint *c) {\n"
        "        size_t i = get_global_id(0);\n"
        "        c[i] = a[i] + b[i];\n"
        "}\n";

static uint32_t host[N];
static uint32_t back[N];

static void add(cl_command_queue q, cl_kernel k, cl_mem m, cl_uint x, size_t from, size_t count,
                cl_uint waits, const cl_event *list, cl_event *ret)
{
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(x), &x));
        OK(clEnqueueNDRangeKernel(q, k, 1, &from, &count, NULL, waits, list, ret));
}

/* A buffer goes round the devices; each adds; events order the queues, nobody waits between. */
static void round_robin(struct api *a, cl_program program)
{
        cl_kernel k = api_kernel(program, "add");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, sizeof(host), NULL);
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
        cl_event last = NULL;
        cl_uint expected = 0;
        for (cl_uint i = 0; i < 60; i++) {
                cl_event next;
                expected += i + 1;
                add(a->queues[i % a->count], k, m, i + 1, 0, N, last ? 1 : 0, last ? &last : NULL,
                    &next);
                OK(clFlush(a->queues[i % a->count]));
                if (last)
                        OK(clReleaseEvent(last));
                last = next;
        }
        OK(clEnqueueReadBuffer(a->queues[1 % a->count], m, CL_TRUE, 0, sizeof(back), back, 1, &last,
                               NULL));
        OK(clReleaseEvent(last));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == host[i] + expected);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

/* Parts of a buffer written in different places come together where they are read. */
static void parts(struct api *a, cl_program program)
{
        cl_kernel k = api_kernel(program, "add");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(host), host);
        cl_uint x = 1000;
        for (cl_uint i = 0; i < a->count; i++) {
                size_t first = (size_t)N * i / a->count;
                size_t end = (size_t)N * (i + 1) / a->count;
                cl_event done;
                /* Sub-buffers need an alignment; a write and a fill need none. */
                OK(clEnqueueWriteBuffer(a->queues[i], m, CL_TRUE, 4 * first, 4 * (end - first),
                                        host + first, 0, NULL, NULL));
                add(a->queues[i], k, m, x + i, first, end - first, 0, NULL, &done);
                OK(clWaitForEvents(1, &done));
                OK(clReleaseEvent(done));
        }
        for (cl_uint reader = 0; reader < a->count; reader++) {
                memset(back, 0, sizeof(back));
                OK(clEnqueueReadBuffer(a->queues[reader], m, CL_TRUE, 0, sizeof(back), back, 0,
                                       NULL, NULL));
                for (cl_uint i = 0; i < a->count; i++)
                        for (size_t j = (size_t)N * i / a->count;
                             j < (size_t)N * (i + 1) / a->count; j++)
                                CHECK(back[j] == host[j] + x + i);
        }
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

/* Sub-buffers are parts of their buffer, wherever they were written. */
static void sub_buffers(struct api *a, cl_program program)
{
        cl_int err;
        cl_kernel k = api_kernel(program, "add");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(host), host);
        cl_buffer_region halves[2] = { { 0, 65536 }, { 65536, 65536 } };
        for (cl_uint i = 0; i < 2; i++) {
                cl_mem sub = clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                               &halves[i], &err);
                OK(err);
                cl_command_queue q = a->queues[i % a->count];
                add(q, k, sub, 7 + i, 0, 65536 / 4, 0, NULL, NULL);
                OK(clFinish(q));
                OK(clReleaseMemObject(sub));
        }
        OK(clEnqueueReadBuffer(a->queues[a->count - 1], m, CL_TRUE, 0, sizeof(back), back, 0, NULL,
                               NULL));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == host[i] + (i < 16384 ? 7u : i < 32768 ? 8u : 0u));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

/* Two devices compute, a third adds up, and read-only uses leave every copy good. */
static void gather(struct api *a, cl_program program)
{
        cl_kernel k = api_kernel(program, "add");
        cl_kernel s = api_kernel(program, "sum");
        cl_command_queue q0 = a->queues[0];
        cl_command_queue q1 = a->queues[1 % a->count];
        cl_command_queue q2 = a->queues[2 % a->count];
        cl_mem x = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(host), host);
        cl_mem y = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(host), host);
        cl_mem z = api_buffer(a, CL_MEM_READ_WRITE, sizeof(host), NULL);
        cl_event e[3];
        add(q0, k, x, 3, 0, N, 0, NULL, &e[0]);
        add(q1, k, y, 4, 0, N, 0, NULL, &e[1]);
        OK(clFlush(q0));
        OK(clFlush(q1));
        OK(clEnqueueMigrateMemObjects(q2, 1, &x, 0, 1, &e[0], NULL));
        OK(clSetKernelArg(s, 0, sizeof(x), &x));
        OK(clSetKernelArg(s, 1, sizeof(y), &y));
        OK(clSetKernelArg(s, 2, sizeof(z), &z));
        size_t n = N;
        OK(clEnqueueNDRangeKernel(q2, s, 1, NULL, &n, NULL, 2, e, &e[2]));
        OK(clFlush(q2));
        OK(clEnqueueReadBuffer(q0, z, CL_TRUE, 0, sizeof(back), back, 1, &e[2], NULL));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == 2 * host[i] + 7);
        OK(clEnqueueReadBuffer(q0, x, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
        CHECK(back[N - 1] == host[N - 1] + 3);
        OK(clEnqueueCopyBuffer(q1, x, y, 0, 4, 4 * 100, 0, NULL, NULL));
        OK(clFinish(q1));
        OK(clEnqueueReadBuffer(q2, y, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
        CHECK(back[0] == host[0] + 4);
        CHECK(back[1] == host[0] + 3);
        CHECK(back[100] == host[99] + 3);
        CHECK(back[101] == host[101] + 4);
        for (int i = 0; i < 3; i++)
                OK(clReleaseEvent(e[i]));
        OK(clReleaseMemObject(x));
        OK(clReleaseMemObject(y));
        OK(clReleaseMemObject(z));
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(s));
}

/* More than one chunk of a transfer. */
static void large(struct api *a, cl_program program)
{
        size_t n = (size_t)5 << 20; /* 20 MiB and some */
        n += 3;
        uint32_t *data = malloc(4 * n);
        CHECK(data);
        for (size_t i = 0; i < n; i++)
                data[i] = (uint32_t)i * 2654435761u;
        cl_kernel k = api_kernel(program, "add");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4 * n, NULL);
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_FALSE, 0, 4 * n, data, 0, NULL, NULL));
        add(a->queues[0], k, m, 1, 0, n, 0, NULL, NULL);
        OK(clFinish(a->queues[0]));
        add(a->queues[a->count - 1], k, m, 1, 0, n, 0, NULL, NULL);
        OK(clFinish(a->queues[a->count - 1]));
        memset(data, 0, 4 * n);
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, 4 * n, data, 0, NULL, NULL));
        for (size_t i = 0; i < n; i++)
                CHECK(data[i] == (uint32_t)i * 2654435761u + 2);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        free(data);
}

int main(void)
{
        struct api a = api_open(0);
        cl_program program = api_build(&a, source, "");
        for (size_t i = 0; i < N; i++)
                host[i] = (uint32_t)(i * 31 + 7);
        round_robin(&a, program);
        parts(&a, program);
        sub_buffers(&a, program);
        gather(&a, program);
        large(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
