/* Behaviour that not every native implementation has: failed user events fail what waits for them, on every device,
 * and queues go on afterwards; clEnqueueWaitForEvents. servers: 2 */
#include <unistd.h>

#include "api.h"

enum { SIZE = 1000 };

static cl_event user_event(const struct api *a)
{
        cl_int e;
        cl_event u = clCreateUserEvent(a->context, &e);
        OK(e);
        return u;
}

/* A failed user event fails what waits for it, here and on other devices. */
static void failed_chain(struct api *a)
{
        char byte = 0;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_event u = user_event(a), e[3];
        for (int i = 0; i < 3; i++)
                OK(clEnqueueFillBuffer(api_queue(a, (unsigned)i), m, &byte, 1, 0, SIZE, 1,
                                       i ? &e[i - 1] : &u, &e[i]));
        EXPECT(CL_INVALID_VALUE, clSetUserEventStatus(u, CL_RUNNING));
        OK(clSetUserEventStatus(u, -7));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(3, e));
        CHECK(api_status(u) == -7);
        for (int i = 0; i < 3; i++)
                CHECK(api_status(e[i]) < 0);
        /* Known to have failed before it is waited for. */
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
               clEnqueueReadBuffer(api_queue(a, 1), m, CL_TRUE, 0, 1, &byte, 1, &u, NULL));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
               clEnqueueWriteBuffer(a->queues[0], m, CL_TRUE, 0, 1, &byte, 1, &e[0], NULL));
        for (int i = 0; i < 3; i++)
                OK(clReleaseEvent(e[i]));
        OK(clReleaseEvent(u));
        OK(clReleaseMemObject(m));
        /* The queues go on. */
        m = api_buffer(a, 0, SIZE, NULL);
        for (cl_uint i = 0; i < a->count; i++) {
                clFinish(a->queues[i]);
                OK(clEnqueueFillBuffer(a->queues[i], m, &byte, 1, 0, SIZE, 0, NULL, NULL));
                OK(clFinish(a->queues[i]));
        }
        OK(clReleaseMemObject(m));
}

static volatile int calls;

static void CL_CALLBACK on_event(cl_event e, cl_int status, void *user)
{
        (void)e;
        (void)user;
        CHECK(status < 0);
        __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
}

/* Every callback is called with the error. */
static void failed_callbacks(struct api *a)
{
        static const cl_int types[] = { CL_COMPLETE, CL_RUNNING, CL_COMPLETE };
        char byte = 0;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_event u = user_event(a), e;
        OK(clEnqueueFillBuffer(api_queue(a, 1), m, &byte, 1, 0, SIZE, 1, &u, &e));
        for (int i = 0; i < 3; i++)
                OK(clSetEventCallback(e, types[i], on_event, NULL));
        OK(clReleaseEvent(e));
        OK(clSetUserEventStatus(u, -1));
        for (int i = 0; i < 20000 && __atomic_load_n(&calls, __ATOMIC_SEQ_CST) < 3; i++)
                usleep(1000);
        CHECK(__atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 3);
        OK(clReleaseEvent(u));
        for (cl_uint i = 0; i < a->count; i++)
                OK(clFinish(a->queues[i]));
        OK(clReleaseMemObject(m));
}

/* A command that clFinish waited for is complete at the first query, although nobody asked for it
 * before. This holds also when it is queried while it waits for something, and when it was
 * released long before. */
static void unobserved(struct api *a)
{
        enum { MANY = 300 };
        for (int order = 0; order <= api_out_of_order(a, 0); order++) {
                cl_int err;
                cl_command_queue q = clCreateCommandQueue(
                        a->context, a->devices[0],
                        order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &err);
                OK(err);
                cl_mem m = api_buffer(a, 0, SIZE, NULL);
                cl_event u = user_event(a), e[MANY];
                char byte = 0;
                for (int i = 0; i < MANY; i++)
                        OK(clEnqueueFillBuffer(q, m, &byte, 1, 0, SIZE, 1, i ? &e[i - 1] : &u,
                                               &e[i]));
                cl_int status;
                OK(clGetEventInfo(e[7], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                  NULL));
                CHECK(status > CL_COMPLETE);
                for (int i = 20; i < 40; i++)
                        OK(clReleaseEvent(e[i]));
                OK(clSetUserEventStatus(u, CL_COMPLETE));
                OK(clFinish(q));
                for (int i = 0; i < MANY; i++) {
                        if (i >= 20 && i < 40)
                                continue;
                        OK(clGetEventInfo(e[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                          &status, NULL));
                        CHECK(status == CL_COMPLETE);
                        OK(clReleaseEvent(e[i]));
                }
                OK(clReleaseEvent(u));
                OK(clReleaseMemObject(m));
                OK(clReleaseCommandQueue(q));
        }
}

/* The next call that waits returns the error of a command without an event, once. */
static void without_event(struct api *a)
{
        char byte = 0;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_event u = user_event(a);
        OK(clEnqueueFillBuffer(a->queues[0], m, &byte, 1, 0, SIZE, 1, &u, NULL));
        OK(clSetUserEventStatus(u, -5));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clFinish(a->queues[0]));
        OK(clFinish(a->queues[0]));
        OK(clReleaseEvent(u));
        OK(clReleaseMemObject(m));
}

/* Commands with much data fail. Their events complete, their memory may be used again, and later
 * transfers work. */
static void large_failures(struct api *a)
{
        enum { MUCH = 5 << 20 };
        uint8_t *in = api_alloc(MUCH), *out = api_alloc(MUCH);
        cl_mem m = api_buffer(a, 0, MUCH, NULL);
        api_pattern(in, MUCH, 1);
        for (cl_uint i = 0; i < 2 * a->count; i++) {
                cl_command_queue q = api_queue(a, i);
                cl_event u = user_event(a), e[2];
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, MUCH, in, 1, &u, &e[0]));
                OK(clEnqueueReadBuffer(api_queue(a, i + 1), m, CL_FALSE, 0, MUCH, out, 1, &u,
                                       &e[1]));
                OK(clFlush(q));
                OK(clSetUserEventStatus(u, -3));
                EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(2, e));
                EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                       clEnqueueWriteBuffer(q, m, CL_TRUE, 0, MUCH, in, 1, &u, NULL));
                OK(clReleaseEvent(u));
                OK(clReleaseEvent(e[0]));
                OK(clReleaseEvent(e[1]));
                clFinish(q);
                clFinish(api_queue(a, i + 1));
                OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, MUCH, in, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(api_queue(a, i + 1), m, CL_TRUE, 0, MUCH, out, 0, NULL,
                                       NULL));
                CHECK(!memcmp(in, out, MUCH));
        }
        OK(clReleaseMemObject(m));
        free(in);
        free(out);
}

/* The markers and barriers of OpenCL 1.1. */
static void old_forms(struct api *a)
{
        char byte = 0;
        cl_int e;
        cl_event first, marker;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_command_queue ooo = clCreateCommandQueue(
                a->context, a->devices[0],
                api_out_of_order(a, 0) ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &e);
        OK(e);
        OK(clEnqueueFillBuffer(ooo, m, &byte, 1, 0, SIZE, 0, NULL, &first));
        OK(clEnqueueMarker(ooo, &marker));
        OK(clEnqueueWaitForEvents(ooo, 1, &first));
        OK(clEnqueueBarrier(ooo));
        EXPECT(CL_INVALID_VALUE, clEnqueueWaitForEvents(ooo, 0, NULL));
        OK(clWaitForEvents(1, &marker));
        OK(clFinish(ooo));
        OK(clReleaseEvent(first));
        OK(clReleaseEvent(marker));
        OK(clReleaseCommandQueue(ooo));
        OK(clReleaseMemObject(m));
}

int main(void)
{
        struct api a = api_open(0);
        failed_chain(&a);
        failed_callbacks(&a);
        for (int i = 0; i < 50; i++) /* told before clFinish asks, and after */
                without_event(&a);
        unobserved(&a);
        large_failures(&a);
        old_forms(&a);
        api_close(&a);
        printf("spancl_events: %u devices\n", a.count);
        return 0;
}
