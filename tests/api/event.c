/* Events within a device and across devices: user events hold commands back, failures travel,
 * callbacks come once, times are in order. */

#include "api.h"

#include <pthread.h>
#include <unistd.h>

static const char source[] = "__kernel void tick(__global uint *n) { n[0]++; }\n";

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int calls;
        cl_int status;
} seen = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1 };

static void CL_CALLBACK called(cl_event event, cl_int status, void *user)
{
        CHECK(user == &seen);
        pthread_mutex_lock(&seen.lock);
        seen.calls++;
        seen.status = status;
        pthread_cond_broadcast(&seen.changed);
        pthread_mutex_unlock(&seen.lock);
}

static void wait_for_call(void)
{
        pthread_mutex_lock(&seen.lock);
        while (!seen.calls)
                pthread_cond_wait(&seen.changed, &seen.lock);
        CHECK(seen.calls == 1);
        seen.calls = 0;
        pthread_mutex_unlock(&seen.lock);
}

static void tick(cl_command_queue q, cl_kernel k, cl_uint waits, const cl_event *list,
                 cl_event *ret)
{
        size_t one = 1;
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, &one, waits, list, ret));
}

static cl_uint value(cl_command_queue q, cl_mem m)
{
        cl_uint n = 0;
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(n), &n, 0, NULL, NULL));
        return n;
}

int main(void)
{
        struct api a = api_open(CL_QUEUE_PROFILING_ENABLE);
        cl_int err;
        cl_program program = api_build(&a, source, "");
        cl_kernel k = api_kernel(program, "tick");
        cl_uint zero = 0;
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        cl_command_queue q0 = a.queues[0];
        cl_command_queue q1 = a.queues[a.count - 1];

        /* A user event holds back a chain over two devices. */
        cl_event gate = clCreateUserEvent(a.context, &err);
        OK(err);
        cl_event e0, e1;
        tick(q0, k, 1, &gate, &e0);
        tick(q1, k, 1, &e0, &e1);
        OK(clFlush(q0));
        OK(clFlush(q1));
        OK(clSetEventCallback(e1, CL_COMPLETE, called, &seen));
        usleep(50000);
        CHECK(api_status(e0) > CL_COMPLETE && api_status(e1) > CL_COMPLETE);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        EXPECT(CL_INVALID_OPERATION, clSetUserEventStatus(gate, CL_COMPLETE));
        wait_for_call();
        CHECK(seen.status == CL_COMPLETE);
        CHECK(api_status(e1) == CL_COMPLETE);
        CHECK(value(q1, m) == 2);

        /* queued <= submitted <= started <= ended. */
        cl_ulong t[4];
        for (int i = 0; i < 4; i++)
                OK(clGetEventProfilingInfo(e1, CL_PROFILING_COMMAND_QUEUED + (cl_uint)i,
                                           sizeof(t[i]), &t[i], NULL));
        CHECK(t[0] <= t[1] && t[1] <= t[2] && t[2] <= t[3] && t[0] != 0);
        cl_ulong before;
        OK(clGetEventProfilingInfo(e0, CL_PROFILING_COMMAND_END, sizeof(before), &before, NULL));
        CHECK(before <= t[3]);
        cl_command_type type;
        OK(clGetEventInfo(e1, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_COMMAND_NDRANGE_KERNEL);
        cl_command_queue of;
        OK(clGetEventInfo(e1, CL_EVENT_COMMAND_QUEUE, sizeof(of), &of, NULL));
        CHECK(of == q1);
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(e0));
        OK(clReleaseEvent(e1));

        /* A callback on what is complete already comes too. */
        tick(q0, k, 0, NULL, &e0);
        OK(clWaitForEvents(1, &e0));
        OK(clSetEventCallback(e0, CL_COMPLETE, called, &seen));
        wait_for_call();
        OK(clReleaseEvent(e0));

        /* A failed user event fails what waits for it, across devices, and nothing else. */
        cl_command_queue f0 = clCreateCommandQueue(a.context, a.devices[0], 0, &err);
        OK(err);
        cl_command_queue f1 = clCreateCommandQueue(a.context, a.devices[a.count - 1], 0, &err);
        OK(err);
        gate = clCreateUserEvent(a.context, &err);
        OK(err);
        tick(f0, k, 1, &gate, &e0);
        tick(f1, k, 1, &e0, &e1);
        OK(clFlush(f0));
        OK(clFlush(f1));
        OK(clSetUserEventStatus(gate, -5));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &e1));
        CHECK(api_status(e1) < 0);
        CHECK(api_status(e0) < 0);
        OK(clSetEventCallback(e1, CL_COMPLETE, called, &seen));
        wait_for_call();
        CHECK(seen.status <= 0); /* PoCL says 0 for one that failed before */
        OK(clReleaseEvent(gate));
        OK(clReleaseEvent(e0));
        OK(clReleaseEvent(e1));
        OK(clReleaseCommandQueue(f0));
        OK(clReleaseCommandQueue(f1));
        CHECK(value(q0, m) == 3);

        /* Markers and barriers. */
        cl_event list[2];
        tick(q0, k, 0, NULL, &list[0]);
        OK(clEnqueueMarkerWithWaitList(q1, 1, &list[0], &list[1]));
        OK(clEnqueueBarrierWithWaitList(q0, 2, list, NULL));
        tick(q0, k, 0, NULL, NULL);
        OK(clFinish(q0));
        OK(clWaitForEvents(2, list));
        CHECK(value(q0, m) == 5);
        OK(clReleaseEvent(list[0]));
        OK(clReleaseEvent(list[1]));

        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
