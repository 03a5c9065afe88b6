/* servers: 2, each with PoCL and with an implementation whose calls block while there is the file
 * BRITTLE_SICK.0.hang (support/brittle), as Oclgrind's do while a kernel runs. Meanwhile the other
 * queues of the session, links between the servers, and calls that only note what is to be done go
 * on. If they did not, this program would wait until its test's watchdog ends it. */
#include "../api/api.h"

#include <unistd.h>

enum { N = 1 << 16, BLOCKED = 1, SERVERS = 2, OF_SERVER = 2 };

static const char source[] =
        "kernel void add(global uint *p, uint x) { p[get_global_id(0)] += x; }\n";

static void launch(const struct api *a, cl_uint device, cl_kernel k, cl_mem m, cl_uint x)
{
        const size_t global = N;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(x), &x));
        OK(clEnqueueNDRangeKernel(a->queues[device], k, 1, NULL, &global, NULL, 0, NULL, NULL));
        OK(clFlush(a->queues[device]));
}

static void check(const struct api *a, cl_uint device, cl_mem m, cl_uint expected)
{
        static cl_uint got[N];
        OK(clEnqueueReadBuffer(a->queues[device], m, CL_TRUE, 0, sizeof(got), got, 0, NULL, NULL));
        CHECK(got[0] == expected && got[N - 1] == expected);
}

int main(void)
{
        static const cl_uint zeros[N];
        char file[4096];
        CHECK(getenv("BRITTLE_SICK"));
        snprintf(file, sizeof(file), "%s.0.hang", getenv("BRITTLE_SICK"));
        (void)unlink(file);
        struct api a = api_open(0);
        CHECK(a.count == SERVERS * OF_SERVER); /* on each server PoCL's device, and the other */
        cl_program program = api_build(&a, source, "");
        cl_kernel k = api_kernel(program, "add");
        cl_mem held = api_buffer(&a, CL_MEM_COPY_HOST_PTR, sizeof(zeros), (void *)(uintptr_t)zeros);
        launch(&a, BLOCKED, k, held, 1);
        check(&a, BLOCKED, held, 1);

        FILE *f = fopen(file, "w");
        CHECK(f && !fclose(f));
        launch(&a, BLOCKED, k, held, 2);
        cl_mem m = api_buffer(&a, CL_MEM_COPY_HOST_PTR, sizeof(zeros), (void *)(uintptr_t)zeros);
        for (cl_uint i = 1; i <= 10; i++) { /* from server to server */
                launch(&a, 0, k, m, 1);
                launch(&a, OF_SERVER, k, m, 1);
                check(&a, OF_SERVER, m, 2 * i);
                /* Objects come and go there, and commands gather. */
                cl_mem other = api_buffer(&a, 0, sizeof(zeros), NULL);
                launch(&a, BLOCKED, k, other, i);
                launch(&a, BLOCKED, k, held, 1);
                OK(clReleaseMemObject(other));
        }
        cl_bool available = CL_FALSE;
        OK(clGetDeviceInfo(a.devices[BLOCKED], CL_DEVICE_AVAILABLE, sizeof(available), &available,
                           NULL));
        CHECK(available);
        /* A command there that waits for this one holds nothing up, and fails with it. */
        cl_int err, status = 1;
        cl_event user = clCreateUserEvent(a.context, &err), e;
        OK(err);
        OK(clEnqueueMarkerWithWaitList(a.queues[BLOCKED], 1, &user, &e));
        OK(clSetUserEventStatus(user, -5));
        check(&a, 0, m, 20);

        OK(unlink(file));
        check(&a, BLOCKED, held, 13);
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &e));
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
        CHECK(status < 0);
        OK(clReleaseEvent(e));
        OK(clReleaseEvent(user));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(held));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
