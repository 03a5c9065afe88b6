/* SPANCL_FINISH=optimistic, and the same as a property of a context (cl_spancl_finish): waits that nobody can tell
 * return early, and others do not. servers: 2 */
#include <spancl/finish.h>
#include <stdbool.h>
#include <string.h>

#include "api.h"
#include "stats.h"

enum { N = 1024, STEPS = 300 };

static const char source[] =
        "kernel void advance(global uint *a) { a[get_global_id(0)] = a[get_global_id(0)] * 5 + 1; }\n";
static const char printing[] = "kernel void hello(int n) { if (n) printf(\"%d\\n\", n); }\n";

static cl_uint expected(int steps)
{
        cl_uint v = 0;
        while (steps--)
                v = v * 5 + 1;
        return v;
}

/* Steps on all queues in turn, of both servers, each with a wait that the next one relies on. */
static void steps(struct api *a, int count, bool events)
{
        const size_t n = N;
        cl_uint got[N] = { 0 };
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(got), got);
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "advance");
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        for (int i = 0; i < count; i++) {
                cl_command_queue q = a->queues[(cl_uint)i % a->count];
                cl_event e;
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, events ? &e : NULL));
                if (!events) {
                        OK(clFinish(q));
                        continue;
                }
                OK(clWaitForEvents(1, &e));
                if (i % 100 == 0) /* a query shows what the wait has promised */
                        CHECK(api_status(e) == CL_COMPLETE);
                OK(clReleaseEvent(e));
        }
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
                CHECK(got[i] == expected(count));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
}

/* After the wait the bytes of reads and maps that do not block are there. */
static void bytes(struct api *a)
{
        cl_uint value = 7, got = 0;
        cl_int err;
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(value), &value);
        cl_command_queue q = a->queues[0];
        OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, sizeof(got), &got, 0, NULL, NULL));
        OK(clFinish(q));
        CHECK(got == 7);
        cl_uint *at = clEnqueueMapBuffer(q, m, CL_FALSE, CL_MAP_READ, 0, sizeof(got), 0, NULL, NULL,
                                         &err);
        OK(err);
        OK(clFinish(q));
        CHECK(*at == 7);
        OK(clEnqueueUnmapMemObject(q, m, at, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
}

/* After the wait for a later command the program has the memory of a large write again. */
static void large_write(struct api *a)
{
        const size_t n = 8 << 20, size = n * sizeof(cl_uint);
        cl_uint *host = api_alloc(size);
        cl_mem m = api_buffer(a, 0, size, NULL);
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "advance");
        cl_event e;
        memset(host, 0, size);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_FALSE, 0, size, host, 0, NULL, NULL));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &n, NULL, 0, NULL, &e));
        OK(clWaitForEvents(1, &e));
        memset(host, 0xff, size);
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, size, host, 0, NULL, NULL));
        for (size_t i = 0; i < n; i++)
                CHECK(host[i] == 1);
        free(host);
        OK(clReleaseEvent(e));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
}

/* A failed command is reported by a later clFinish. */
static void failures(struct api *a)
{
        cl_uint value = 7;
        cl_int err;
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(value), &value);
        cl_command_queue q = a->queues[0];
        cl_event gate = clCreateUserEvent(a->context, &err), e;
        OK(err);
        OK(clEnqueueFillBuffer(q, m, &value, sizeof(value), 0, sizeof(value), 1, &gate, &e));
        OK(clSetUserEventStatus(gate, -9));
        err = clWaitForEvents(1, &e);
        CHECK(err == CL_SUCCESS || err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        CHECK(api_status(e) < 0);
        if (err == CL_SUCCESS)
                EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clFinish(q));
        OK(clFinish(q));
        OK(clReleaseEvent(e));
        OK(clReleaseEvent(gate));
        OK(clReleaseMemObject(m));
}

/* Waits behind a kernel that may print. */
static void prints(struct api *a, int count)
{
        const size_t one = 1;
        cl_program p = api_build(a, printing, NULL);
        cl_kernel k = api_kernel(p, "hello");
        const cl_int none = 0;
        OK(clSetKernelArg(k, 0, sizeof(none), &none));
        for (int i = 0; i < count; i++) {
                OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clFinish(a->queues[0]));
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* A context like the first one, with another value of the property. Its queues take the place of the first one's. */
static void choose(struct api *a, cl_context_properties how)
{
        const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
                                                     (cl_context_properties)a->platform,
                                                     CL_CONTEXT_FINISH_SPANCL, how, 0 };
        cl_context_properties got[8] = { 0 };
        size_t size = 0;
        cl_int err;
        api_close(a);
        a->context = clCreateContext(properties, a->count, a->devices, NULL, NULL, &err);
        OK(err);
        OK(clGetContextInfo(a->context, CL_CONTEXT_PROPERTIES, sizeof(got), got, &size));
        CHECK(size == sizeof(properties) && !memcmp(got, properties, size));
        for (cl_uint i = 0; i < a->count; i++) {
                a->queues[i] = clCreateCommandQueue(a->context, a->devices[i], 0, &err);
                OK(err);
        }
}

static void bad_properties(const struct api *a)
{
        const cl_context_properties platform = (cl_context_properties)a->platform;
        const cl_context_properties wrong[] = { CL_CONTEXT_PLATFORM, platform,
                                                CL_CONTEXT_FINISH_SPANCL, 2, 0 };
        const cl_context_properties twice[] = { CL_CONTEXT_PLATFORM,
                                                platform,
                                                CL_CONTEXT_FINISH_SPANCL,
                                                CL_FINISH_WAIT_SPANCL,
                                                CL_CONTEXT_FINISH_SPANCL,
                                                CL_FINISH_WAIT_SPANCL,
                                                0 };
        char extensions[4096];
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContext(wrong, a->count, a->devices, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContextFromType(twice, CL_DEVICE_TYPE_ALL, NULL, NULL, &error));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_EXTENSIONS, sizeof(extensions), extensions,
                             NULL));
        CHECK(strstr(extensions, CL_SPANCL_FINISH_EXTENSION_NAME));
}

static long waits(char *program, const char *what)
{
        char *argv[] = { program, (char *)(uintptr_t)what, NULL };
        return stats_waits(argv);
}

int main(int argc, char **argv)
{
        struct api a;
        bool chosen = argc > 1 && !strcmp(argv[1], "chosen");
        CHECK(!setenv("SPANCL_FINISH", chosen ? "wait" : "optimistic", 1));
        CHECK(!setenv("SPANCL_FINISH_AHEAD", "60000", 1)); /* only the count is a limit */
        if (argc > 1) {
                a = api_open(0);
                if (!strcmp(argv[1], "finish"))
                        steps(&a, STEPS, false);
                else if (!strcmp(argv[1], "events"))
                        steps(&a, STEPS, true);
                else if (!strcmp(argv[1], "print"))
                        prints(&a, STEPS);
                else if (chosen)
                        choose(&a, CL_FINISH_OPTIMISTIC_SPANCL), steps(&a, STEPS, false);
                else if (!strcmp(argv[1], "refused"))
                        choose(&a, CL_FINISH_WAIT_SPANCL), steps(&a, STEPS, false);
                api_close(&a);
                return 0;
        }
        long nothing = waits(argv[0], "nothing");
        CHECK(waits(argv[0], "finish") < nothing + 50);
        CHECK(waits(argv[0], "events") < nothing + 50);
        CHECK(waits(argv[0], "print") >= nothing + STEPS / 2);
        CHECK(waits(argv[0], "chosen") < nothing + 50);
        CHECK(waits(argv[0], "refused") >= nothing + STEPS / 2);
        a = api_open(0);
        bad_properties(&a);
        steps(&a, 3000, false);
        bytes(&a);
        large_write(&a);
        failures(&a);
        steps(&a, 10, true);
        api_close(&a);
        return 0;
}
