/* When and in which order destructor callbacks come. servers: 2 */
#include <unistd.h>

#include "api.h"

static const char source[] =
        "kernel void work(global uint *p) {\n"
        "  uint x = get_global_id(0);\n"
        "  for (uint i = 0; i < 30000000u; i++) x = x * 1664525u + 1013904223u;\n"
        "  p[get_global_id(0)] = x;\n"
        "}\n";

enum { MAX = 16 };
static int order[MAX];
static unsigned called;

static void note(void *user)
{
        unsigned i = __atomic_load_n(&called, __ATOMIC_SEQ_CST);
        CHECK(i < MAX);
        order[i] = (int)(intptr_t)user;
        __atomic_store_n(&called, i + 1, __ATOMIC_SEQ_CST);
}

static void CL_CALLBACK on_mem(cl_mem m, void *user)
{
        cl_uint refs;
        /* "When the callback function is called by the implementation, this memory object is not longer
         * valid." */
        EXPECT(CL_INVALID_MEM_OBJECT,
               clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
        note(user);
}

static void CL_CALLBACK on_context(cl_context x, void *user)
{
        EXPECT(CL_INVALID_CONTEXT, clRetainContext(x));
        note(user);
}

static void await(unsigned count)
{
        while (__atomic_load_n(&called, __ATOMIC_SEQ_CST) < count)
                usleep(1000);
}

static cl_event event;
static cl_int status_then;

static void CL_CALLBACK on_used(cl_mem m, void *user)
{
        (void)m;
        status_then = api_status(event);
        note(user);
}

/* "After the memobj reference count becomes zero and commands queued for execution on a command-queue(s)
 * that use memobj have finished, the memory object is deleted." */
static void after_commands(struct api *a, cl_command_queue_properties properties, int queue_first)
{
        const size_t one = 1;
        cl_int e;
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "work");
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue q =
                        clCreateCommandQueue(a->context, a->devices[i], properties, &e);
                OK(e);
                cl_mem m = api_buffer(a, 0, 64, NULL);
                called = 0;
                OK(clSetMemObjectDestructorCallback(m, on_used, (void *)1));
                OK(clSetKernelArg(k, 0, sizeof(m), &m));
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, &event));
                OK(clFlush(q));
                if (queue_first)
                        OK(clReleaseCommandQueue(q));
                OK(clReleaseMemObject(m));
                await(1);
                CHECK(status_then == CL_COMPLETE);
                OK(clReleaseEvent(event));
                if (!queue_first)
                        OK(clReleaseCommandQueue(q));
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* "memobj cannot be deleted until all sub-buffer objects associated with memobj are deleted", nor the context
 * before "all the objects attached to context are released". */
static void nested(struct api *a)
{
        static const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
        const cl_buffer_region region = { 0, 4096 };
        cl_int e;
        called = 0;
        cl_context x = clCreateContext(NULL, a->count, a->devices, NULL, NULL, &e);
        OK(e);
        cl_mem m = clCreateBuffer(x, 0, 8192, NULL, &e);
        OK(e);
        cl_mem s = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                     .image_width = 16,
                                     .mem_object = s };
        cl_mem image = clCreateImage(x, 0, &format, &desc, NULL, &e);
        OK(e);
        OK(clSetContextDestructorCallback(x, on_context, (void *)7));
        OK(clSetContextDestructorCallback(x, on_context, (void *)6));
        OK(clSetMemObjectDestructorCallback(m, on_mem, (void *)5));
        OK(clSetMemObjectDestructorCallback(m, on_mem, (void *)4));
        OK(clSetMemObjectDestructorCallback(s, on_mem, (void *)3));
        OK(clSetMemObjectDestructorCallback(s, on_mem, (void *)2));
        OK(clSetMemObjectDestructorCallback(image, on_mem, (void *)1));
        EXPECT(CL_INVALID_VALUE, clSetContextDestructorCallback(x, NULL, NULL));
        OK(clReleaseContext(x));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(s));
        CHECK(called == 0);
        OK(clReleaseMemObject(image));
        await(7);
        for (int i = 0; i < 7; i++)
                CHECK(order[i] == i + 1);
}

static void CL_CALLBACK on_host(cl_mem m, void *user)
{
        (void)m;
        free(user);
        note(NULL);
}

static int all_out_of_order(const struct api *a)
{
        int all = 1;
        for (cl_uint i = 0; i < a->count; i++)
                all &= api_out_of_order(a, i);
        return all;
}

/* The memory of CL_MEM_USE_HOST_PTR is not read or written any more. */
static void host_memory(struct api *a)
{
        enum { SIZE = 4 << 20 };
        for (unsigned i = 0; i < 4; i++) {
                cl_int e;
                called = 0;
                uint8_t *host = api_alloc(SIZE);
                cl_mem m = api_buffer(a, CL_MEM_USE_HOST_PTR, SIZE, host);
                OK(clSetMemObjectDestructorCallback(m, on_host, host));
                uint8_t *p = clEnqueueMapBuffer(api_queue(a, i), m, CL_TRUE, CL_MAP_WRITE, 0, SIZE,
                                                0, NULL, NULL, &e);
                OK(e);
                memset(p, 1, SIZE);
                OK(clEnqueueUnmapMemObject(api_queue(a, i), m, p, 0, NULL, NULL));
                OK(clReleaseMemObject(m));
                OK(clFlush(api_queue(a, i)));
                await(1);
        }
}

/* The bytes of a read have come; and commands that do not use it may still wait. */
static void after_reads(struct api *a)
{
        enum { SIZE = 4 << 20 };
        static uint8_t host[SIZE];
        for (unsigned i = 0; i < 4; i++) {
                cl_int e;
                cl_event gate = clCreateUserEvent(a->context, &e);
                OK(e);
                cl_uchar value = (cl_uchar)(i + 1);
                cl_mem m = api_buffer(a, 0, SIZE, NULL), other = api_buffer(a, 0, 4, NULL);
                cl_command_queue q = api_queue(a, i);
                called = 0;
                OK(clSetMemObjectDestructorCallback(m, on_used, (void *)1));
                OK(clEnqueueFillBuffer(q, m, &value, 1, 0, SIZE, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, SIZE, host, 0, NULL, &event));
                OK(clEnqueueFillBuffer(q, other, &value, 1, 0, 4, 1, &gate, NULL));
                OK(clReleaseMemObject(m));
                OK(clFlush(q));
                await(1);
                CHECK(status_then == CL_COMPLETE);
                for (size_t k = 0; k < SIZE; k++)
                        CHECK(host[k] == value);
                OK(clSetUserEventStatus(gate, CL_COMPLETE));
                OK(clReleaseEvent(gate));
                OK(clReleaseEvent(event));
                OK(clReleaseMemObject(other));
                OK(clFinish(q));
        }
}

/* No bytes come of a read that fails. */
static void after_failures(struct api *a, int map)
{
        enum { SIZE = 1 << 20 };
        static uint8_t host[SIZE];
        for (unsigned i = 0; i < 4; i++) {
                cl_int e;
                cl_event gate = clCreateUserEvent(a->context, &e);
                OK(e);
                cl_mem m = api_buffer(a, 0, SIZE, NULL);
                cl_command_queue q = api_queue(a, i);
                called = 0;
                OK(clSetMemObjectDestructorCallback(m, on_used, (void *)1));
                if (map)
                        CHECK(clEnqueueMapBuffer(q, m, CL_FALSE, CL_MAP_READ, 0, SIZE, 1, &gate,
                                                 &event, NULL));
                else
                        OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, SIZE, host, 1, &gate, &event));
                OK(clReleaseMemObject(m));
                OK(clSetUserEventStatus(gate, -7));
                OK(clFlush(q));
                await(1);
                CHECK(status_then < 0);
                OK(clReleaseEvent(gate));
                OK(clReleaseEvent(event));
                OK(clFinish(q));
        }
}

int main(void)
{
        struct api a = api_open(0);
        after_commands(&a, 0, 0);
        after_commands(&a, 0, 1);
        if (all_out_of_order(&a)) {
                after_commands(&a, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0);
                after_commands(&a, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1);
        }
        after_reads(&a);
        after_failures(&a, 0);
        after_failures(&a, 1);
        nested(&a);
        host_memory(&a);
        api_close(&a);
        printf("destroy: %u devices\n", a.count);
        return 0;
}
