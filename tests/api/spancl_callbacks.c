/* Event callbacks: their arguments, and threads whose callbacks enqueue more. servers: 2 */
#include <pthread.h>
#include <unistd.h>

#include "api.h"

enum { SIZE = 4096, THREADS = 4, CHAIN = 40 };

static void await(const unsigned *count, unsigned n)
{
        while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < n)
                usleep(1000);
}

/* ---- what they are told --------------------------------------------------------------------- */

static unsigned told;
static cl_int statuses[3];

static void CL_CALLBACK on_status(cl_event e, cl_int status, void *user)
{
        (void)e;
        statuses[(intptr_t)user] = status;
        __atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST);
}

static void ask(cl_event e)
{
        static const cl_int types[] = { CL_COMPLETE, CL_RUNNING, CL_SUBMITTED };
        told = 0;
        for (intptr_t i = 0; i < 3; i++)
                OK(clSetEventCallback(e, types[i], on_status, (void *)i));
}

/* "[...] equal to the command_exec_callback_type used while registering the callback. If the callback is called as
 * the result of the command associated with event being abnormally terminated, an appropriate error code [...]
 * will be passed [...] instead." */
static void values(struct api *a)
{
        static const cl_int ends[] = { CL_COMPLETE, -9 };
        char byte = 0;
        cl_int error;
        cl_mem m = api_buffer(a, 0, SIZE, NULL);
        for (unsigned i = 0; i < 2 * a->count; i++) {
                cl_int end = ends[i % 2];
                cl_event u = clCreateUserEvent(a->context, &error), e;
                OK(error);
                OK(clEnqueueFillBuffer(api_queue(a, i / 2), m, &byte, 1, 0, SIZE, 1, &u, &e));
                ask(e);
                OK(clSetUserEventStatus(u, end));
                await(&told, 3);
                cl_int failed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
                CHECK(statuses[0] == (end < 0 ? failed : CL_COMPLETE));
                CHECK(statuses[1] == (end < 0 ? failed : CL_RUNNING));
                CHECK(statuses[2] == CL_SUBMITTED || (end < 0 && statuses[2] == failed));
                /* A callback that is registered after the completion is called, too. */
                ask(e);
                await(&told, 3);
                CHECK(statuses[0] == (end < 0 ? failed : CL_COMPLETE));
                CHECK(statuses[2] == (end < 0 ? failed : CL_SUBMITTED));
                ask(u);
                await(&told, 3);
                CHECK(statuses[0] == end);
                OK(clReleaseEvent(e));
                OK(clReleaseEvent(u));
                clFinish(api_queue(a, i / 2));
        }
        OK(clReleaseMemObject(m));
}

static unsigned next_number;

static void CL_CALLBACK in_turn(cl_event e, cl_int status, void *user)
{
        (void)e;
        CHECK(status == CL_COMPLETE);
        CHECK((uintptr_t)user == __atomic_load_n(&next_number, __ATOMIC_SEQ_CST));
        __atomic_fetch_add(&next_number, 1, __ATOMIC_SEQ_CST);
}

/* Many on one event come, in order of registration. */
static void many(const struct api *a)
{
        enum { MANY = 50000 };
        cl_int error;
        cl_event u = clCreateUserEvent(a->context, &error);
        OK(error);
        for (uintptr_t i = 0; i < MANY; i++)
                OK(clSetEventCallback(u, CL_COMPLETE, in_turn, (void *)i));
        OK(clSetUserEventStatus(u, CL_COMPLETE));
        await(&next_number, MANY);
        OK(clReleaseEvent(u));
}

/* ---- callbacks that go on ------------------------------------------------------------------- */

struct chain {
        const struct api *api;
        cl_mem m;
        unsigned number, links;
        cl_event done; /* a user event that the last callback sets */
};

static void go_on(struct chain *c);

static void CL_CALLBACK on_link(cl_event e, cl_int status, void *user)
{
        struct chain *c = user;
        CHECK(status == CL_COMPLETE);
        OK(clReleaseEvent(e));
        if (++c->links < CHAIN)
                go_on(c);
        else
                OK(clSetUserEventStatus(c->done, CL_COMPLETE));
}

/* One more command, with the same callback. */
static void go_on(struct chain *c)
{
        cl_command_queue q = api_queue(c->api, c->number + c->links);
        cl_event e;
        OK(clEnqueueFillBuffer(q, c->m, &c->links, sizeof(c->links), 0, SIZE, 0, NULL, &e));
        OK(clSetEventCallback(e, CL_COMPLETE, on_link, c));
        OK(clFlush(q));
}

static void *run_chain(void *arg)
{
        struct chain *c = arg;
        unsigned out[SIZE / sizeof(unsigned)];
        go_on(c);
        OK(clWaitForEvents(1, &c->done));
        OK(clEnqueueReadBuffer(c->api->queues[0], c->m, CL_TRUE, 0, SIZE, out, 0, NULL, NULL));
        for (size_t i = 0; i < SIZE / sizeof(unsigned); i++)
                CHECK(out[i] == CHAIN - 1);
        return NULL;
}

static void chains(const struct api *a)
{
        struct chain c[THREADS];
        pthread_t id[THREADS];
        cl_int e;
        for (unsigned i = 0; i < THREADS; i++) {
                c[i] = (struct chain){ a, api_buffer(a, 0, SIZE, NULL), i, 0,
                                       clCreateUserEvent(a->context, &e) };
                OK(e);
                CHECK(pthread_create(&id[i], NULL, run_chain, &c[i]) == 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
                CHECK(pthread_join(id[i], NULL) == 0);
                OK(clReleaseEvent(c[i].done));
                OK(clReleaseMemObject(c[i].m));
        }
}

/* ---- arguments ------------------------------------------------------------------------------ */

struct setter {
        const struct api *api;
        cl_program program;
        unsigned number;
};

/* "clSetKernelArg is safe to call from any host thread [...] so long as concurrent calls operate on different
 * kernel objects." */
static void *set_args(void *arg)
{
        struct setter *s = arg;
        cl_kernel k = api_kernel(s->program, "set");
        const size_t one = 1;
        for (cl_int i = 0; i < 100; i++) {
                cl_mem m = api_buffer(s->api, 0, 64, NULL);
                cl_int value = (cl_int)s->number * 1000 + i, out = 0;
                cl_command_queue q = api_queue(s->api, s->number);
                OK(clSetKernelArg(k, 0, sizeof(m), &m));
                OK(clSetKernelArg(k, 1, sizeof(value), &value));
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(out), &out, 0, NULL, NULL));
                CHECK(out == value);
                OK(clReleaseMemObject(m));
        }
        OK(clReleaseKernel(k));
        return NULL;
}

static void arguments(const struct api *a)
{
        cl_program p = api_build(a, "kernel void set(global int *p, int v) { *p = v; }\n", NULL);
        struct setter s[THREADS];
        pthread_t id[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
                s[i] = (struct setter){ a, p, i };
                CHECK(pthread_create(&id[i], NULL, set_args, &s[i]) == 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
                CHECK(pthread_join(id[i], NULL) == 0);
        OK(clReleaseProgram(p));
}

/* ---- the end of the process ----------------------------------------------------------------- */

static unsigned begun;

static void CL_CALLBACK dally(cl_event e, cl_int status, void *user)
{
        (void)e, (void)status, (void)user;
        __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
        usleep(50000);
}

/* The process may end while a callback runs; its thread is left without being leaked (ThreadSanitizer looks). */
static void end_while_called(const struct api *a)
{
        cl_int e;
        cl_event event = clCreateUserEvent(a->context, &e);
        OK(e);
        OK(clSetEventCallback(event, CL_COMPLETE, dally, NULL));
        OK(clSetUserEventStatus(event, CL_COMPLETE));
        await(&begun, 1);
        printf("callbacks: %u devices\n", a->count);
        exit(0);
}

int main(void)
{
        struct api a = api_open(0);
        values(&a);
        many(&a);
        chains(&a);
        arguments(&a);
        end_while_called(&a);
}
