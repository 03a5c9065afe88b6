/* Events: wait lists over devices, user events, callbacks, markers, barriers, failures, profiling, queue
 * kinds. servers: 2 */
#include <pthread.h>
#include <unistd.h>

#include "api.h"

enum { SIZE = 1000 };

static cl_int status_of(cl_event e)
{
        cl_int status;
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
        return status;
}

static cl_event user_event(const struct api *a)
{
        cl_int e;
        cl_event u = clCreateUserEvent(a->context, &e);
        OK(e);
        return u;
}

static void await(const volatile int *flag, int value)
{
        for (int i = 0; i < 20000 && __atomic_load_n(flag, __ATOMIC_SEQ_CST) < value; i++)
                usleep(1000);
        CHECK(__atomic_load_n(flag, __ATOMIC_SEQ_CST) == value);
}

/* A user event holds a chain over all devices. */
static void held_chain(struct api *a)
{
        uint8_t in[SIZE], out[SIZE];
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        api_pattern(in, SIZE, 1);
        cl_event u = user_event(a), e[9];
        cl_command_type type;
        OK(clGetEventInfo(u, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_COMMAND_USER && status_of(u) == CL_SUBMITTED);
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_FALSE, 0, SIZE, in, 1, &u, &e[0]));
        for (unsigned i = 1; i < 8; i++)
                OK(clEnqueueFillBuffer(api_queue(a, i), m, &i, 1, i, 1, 1, &e[i - 1], &e[i]));
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_FALSE, 0, SIZE, out, 1, &e[7], &e[8]));
        for (cl_uint i = 0; i < a->count; i++)
                OK(clFlush(a->queues[i]));
        usleep(30000);
        CHECK(status_of(e[0]) > CL_COMPLETE && status_of(e[8]) > CL_COMPLETE);
        OK(clSetUserEventStatus(u, CL_COMPLETE));
        EXPECT(CL_INVALID_OPERATION, clSetUserEventStatus(u, CL_COMPLETE));
        OK(clWaitForEvents(1, &e[8]));
        for (unsigned i = 1; i < 8; i++)
                in[i] = (uint8_t)i;
        CHECK(!memcmp(in, out, SIZE));
        for (int i = 0; i < 9; i++) {
                CHECK(status_of(e[i]) == CL_COMPLETE);
                OK(clReleaseEvent(e[i]));
        }
        OK(clReleaseEvent(u));
        OK(clReleaseMemObject(m));
}

static volatile int calls[3];

static void CL_CALLBACK on_event(cl_event e, cl_int status, void *user)
{
        int which = (int)(intptr_t)user;
        CHECK(status <= (which == 0 ? CL_COMPLETE : which == 1 ? CL_RUNNING : CL_SUBMITTED));
        /* Calls that do not wait are allowed. */
        cl_int now;
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(now), &now, NULL));
        __atomic_fetch_add(&calls[which], 1, __ATOMIC_SEQ_CST);
}

static void callbacks(struct api *a)
{
        static const cl_int types[] = { CL_COMPLETE, CL_RUNNING, CL_SUBMITTED };
        char byte = 0;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_event u = user_event(a), e;
        OK(clEnqueueFillBuffer(api_queue(a, 1), m, &byte, 1, 0, SIZE, 1, &u, &e));
        for (int i = 0; i < 3; i++)
                OK(clSetEventCallback(e, types[i], on_event, (void *)(intptr_t)i));
        OK(clSetEventCallback(u, CL_COMPLETE, on_event, (void *)0));
        EXPECT(CL_INVALID_VALUE, clSetEventCallback(e, CL_COMPLETE, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clSetEventCallback(e, CL_QUEUED, on_event, NULL));
        OK(clReleaseEvent(e)); /* the callback comes nevertheless */
        OK(clSetUserEventStatus(u, CL_COMPLETE));
        /* Nobody waits in OpenCL. */
        await(&calls[0], 2);
        await(&calls[1], 1);
        await(&calls[2], 1);
        OK(clSetEventCallback(u, CL_COMPLETE, on_event, (void *)0));
        await(&calls[0], 3);
        OK(clReleaseEvent(u));
        OK(clReleaseMemObject(m));
}

/* Polling without waiting makes progress. */
static void polling(struct api *a)
{
        char byte = 0;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_event e;
        OK(clEnqueueFillBuffer(a->queues[0], m, &byte, 1, 0, SIZE, 0, NULL, &e));
        OK(clFlush(a->queues[0]));
        cl_int status;
        for (int i = 0; i < 10000 && (status = status_of(e)) > CL_COMPLETE; i++)
                usleep(1000);
        OK(status);
        OK(clReleaseEvent(e));
        OK(clReleaseMemObject(m));
}

static void markers(struct api *a)
{
        if (!api_out_of_order(a, 0))
                return;
        char byte = 3, out[SIZE];
        cl_int error;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        cl_command_queue ooo = clCreateCommandQueue(a->context, a->devices[0],
                                                    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
        OK(error);
        cl_event u = user_event(a), first, marker, after, barrier;
        OK(clEnqueueFillBuffer(ooo, m, &byte, 1, 0, SIZE, 1, &u, &first));
        OK(clEnqueueMarkerWithWaitList(ooo, 0, NULL, &marker));
        /* Not held by what comes before it. */
        cl_mem n = api_buffer(a, 0, SIZE, NULL);
        OK(clEnqueueFillBuffer(ooo, n, &byte, 1, 0, SIZE, 0, NULL, &after));
        OK(clWaitForEvents(1, &after));
        CHECK(status_of(first) > CL_COMPLETE && status_of(marker) > CL_COMPLETE);
        OK(clReleaseEvent(after));
        OK(clEnqueueBarrierWithWaitList(ooo, 1, &first, &barrier));
        OK(clEnqueueReadBuffer(ooo, m, CL_FALSE, 0, SIZE, out, 0, NULL, &after));
        OK(clFlush(ooo));
        usleep(20000);
        CHECK(status_of(barrier) > CL_COMPLETE && status_of(after) > CL_COMPLETE);
        OK(clSetUserEventStatus(u, CL_COMPLETE));
        OK(clFinish(ooo));
        CHECK(status_of(marker) == CL_COMPLETE && status_of(after) == CL_COMPLETE);
        for (int i = 0; i < SIZE; i++)
                CHECK(out[i] == byte);
        cl_event all[] = { u, first, marker, after, barrier };
        for (int i = 0; i < 5; i++)
                OK(clReleaseEvent(all[i]));
        OK(clReleaseCommandQueue(ooo));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
}

static void profiling(struct api *a)
{
        static char data[200000];
        cl_int error;
        cl_mem m = api_buffer(a, 0, sizeof(data), NULL);
        for (cl_uint d = 0; d < a->count; d++) {
                const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
                                                     0 };
                cl_command_queue q =
                        clCreateCommandQueueWithProperties(a->context, a->devices[d], list, &error);
                OK(error);
                cl_queue_properties back[3];
                size_t size;
                OK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES_ARRAY, sizeof(back), back, &size));
                CHECK(size == sizeof(list) && !memcmp(back, list, size));
                cl_ulong last = 0;
                for (int i = 0; i < 5; i++) {
                        cl_event e;
                        OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, sizeof(data), data, 0, NULL,
                                                &e));
                        OK(clWaitForEvents(1, &e));
                        cl_ulong t[4];
                        for (cl_uint k = 0; k < 4; k++)
                                OK(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_QUEUED + k,
                                                           sizeof(t[k]), &t[k], NULL));
                        CHECK(t[0] <= t[1] && t[1] <= t[2] && t[2] <= t[3]);
                        CHECK(t[0] >= last);
                        CHECK(t[3] - t[0] < 20000000000u);
                        last = t[0];
                        OK(clReleaseEvent(e));
                }
                OK(clReleaseCommandQueue(q));
        }
        cl_event e;
        cl_ulong t;
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_FALSE, 0, 10, data, 0, NULL, &e));
        OK(clWaitForEvents(1, &e));
        EXPECT(CL_PROFILING_INFO_NOT_AVAILABLE,
               clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_START, sizeof(t), &t, NULL));
        OK(clReleaseEvent(e));
        e = user_event(a);
        EXPECT(CL_PROFILING_INFO_NOT_AVAILABLE,
               clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_START, sizeof(t), &t, NULL));
        OK(clSetUserEventStatus(e, CL_COMPLETE));
        OK(clReleaseEvent(e));
        OK(clReleaseMemObject(m));
}

static void errors(struct api *a)
{
        cl_event u = user_event(a);
        cl_uint refs;
        OK(clRetainEvent(u));
        OK(clGetEventInfo(u, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
        CHECK(refs == 2);
        OK(clReleaseEvent(u));
        cl_command_queue none = (cl_command_queue)1;
        OK(clGetEventInfo(u, CL_EVENT_COMMAND_QUEUE, sizeof(none), &none, NULL));
        CHECK(!none);
        EXPECT(CL_INVALID_VALUE, clWaitForEvents(0, NULL));
        EXPECT(CL_INVALID_EVENT, clRetainEvent(NULL));
        EXPECT(CL_INVALID_VALUE, clGetEventInfo(u, 0x9999, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, clEnqueueMarkerWithWaitList(a->queues[0], 0, &u, NULL));
        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreateUserEvent(NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateCommandQueue(a->context, a->devices[0], 1 << 20, &error));
        EXPECT_ERROR(CL_INVALID_DEVICE, clCreateCommandQueue(a->context, NULL, 0, &error));
        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreateCommandQueue(NULL, a->devices[0], 0, &error));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clFlush(NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clFinish(NULL));
        OK(clSetUserEventStatus(u, CL_COMPLETE));
        OK(clReleaseEvent(u));
}

/* Several threads enqueue and wait at the same time. */
struct worker {
        struct api *api;
        unsigned number;
};

static void *work(void *arg)
{
        struct worker *w = arg;
        uint32_t value = w->number, out = 0;
        cl_mem m = api_buffer(w->api, 0, 4 * SIZE, NULL);
        for (unsigned i = 0; i < 200; i++) {
                cl_command_queue q = api_queue(w->api, i + w->number);
                cl_event e;
                value = w->number * 1000 + i;
                OK(clEnqueueFillBuffer(q, m, &value, 4, 0, 4 * SIZE, 0, NULL, &e));
                OK(clEnqueueReadBuffer(api_queue(w->api, i), m, CL_TRUE, 4 * (i % SIZE), 4, &out, 1,
                                       &e, NULL));
                CHECK(out == value);
                OK(clReleaseEvent(e));
        }
        OK(clReleaseMemObject(m));
        return NULL;
}

static void threads(struct api *a)
{
        enum { THREADS = 4 };
        pthread_t id[THREADS];
        struct worker w[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
                w[i] = (struct worker){ a, i };
                CHECK(pthread_create(&id[i], NULL, work, &w[i]) == 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
                CHECK(pthread_join(id[i], NULL) == 0);
}

/* A thread waits for a user event that another one sets. */
static void *setter(void *arg)
{
        usleep(20000);
        OK(clSetUserEventStatus(arg, CL_COMPLETE));
        return NULL;
}

static void set_elsewhere(struct api *a)
{
        cl_event u = user_event(a);
        pthread_t id;
        CHECK(pthread_create(&id, NULL, setter, u) == 0);
        OK(clWaitForEvents(1, &u));
        CHECK(pthread_join(id, NULL) == 0);
        OK(clReleaseEvent(u));
}

/* A wait list may be as long as the application likes. */
static void long_lists(struct api *a)
{
        enum { MANY = 100000 };
        static cl_event many[MANY];
        for (cl_uint i = 0; i < a->count; i++) {
                const cl_int one = 1;
                cl_int zero = 0, seen = -1;
                cl_event gate = user_event(a), e;
                cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
                for (size_t k = 0; k < MANY; k++)
                        many[k] = gate;
                OK(clEnqueueFillBuffer(a->queues[i], m, &one, sizeof(one), 0, sizeof(one), MANY,
                                       many, &e));
                OK(clFlush(a->queues[i]));
                CHECK(api_status(e) > CL_COMPLETE);
                OK(clSetUserEventStatus(gate, CL_COMPLETE));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL,
                                       NULL));
                CHECK(seen == 1 && api_status(e) == CL_COMPLETE);
                OK(clReleaseEvent(gate));
                OK(clReleaseEvent(e));
                OK(clReleaseMemObject(m));
        }
}

int main(void)
{
        struct api a = api_open(0);
        held_chain(&a);
        callbacks(&a);
        polling(&a);
        markers(&a);
        profiling(&a);
        errors(&a);
        threads(&a);
        set_elsewhere(&a);
        long_lists(&a);
        api_close(&a);
        printf("events: %u devices\n", a.count);
        return 0;
}
