/* Handles that are not what they should be: the named error, never a crash. servers: 2 */
#include "api.h"

static const char source[] = "kernel void set(global int *p, int v) { p[get_global_id(0)] = v; }\n";

/* Releasing an object once too often gives its named error, whether the object is gone or other
 * objects still need it. */
static void released(struct api *a)
{
        cl_int e;
        cl_mem m = api_buffer(a, 0, 4096, NULL);
        OK(clReleaseMemObject(m));
        EXPECT(CL_INVALID_MEM_OBJECT, clReleaseMemObject(m));
        EXPECT(CL_INVALID_MEM_OBJECT, clRetainMemObject(m));
        EXPECT(CL_INVALID_MEM_OBJECT, clGetMemObjectInfo(m, CL_MEM_SIZE, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, 1, &e, 0, NULL, NULL));

        m = api_buffer(a, 0, 8192, NULL);
        const cl_buffer_region region = { 0, 4096 };
        cl_mem sub = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        OK(clReleaseMemObject(m));
        EXPECT(CL_INVALID_MEM_OBJECT, clReleaseMemObject(m));
        OK(clReleaseMemObject(sub));
        EXPECT(CL_INVALID_MEM_OBJECT, clReleaseMemObject(sub));

        cl_event u = clCreateUserEvent(a->context, &e);
        OK(e);
        OK(clReleaseEvent(u));
        EXPECT(CL_INVALID_EVENT, clReleaseEvent(u));
        EXPECT(CL_INVALID_EVENT, clSetUserEventStatus(u, CL_COMPLETE));
        EXPECT(CL_INVALID_EVENT, clWaitForEvents(1, &u));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, clEnqueueMarkerWithWaitList(a->queues[0], 1, &u, NULL));

        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "set");
        OK(clReleaseKernel(k));
        EXPECT(CL_INVALID_KERNEL, clReleaseKernel(k));
        EXPECT(CL_INVALID_KERNEL, clSetKernelArg(k, 0, sizeof(cl_mem), &m));
        OK(clReleaseProgram(p));
        EXPECT(CL_INVALID_PROGRAM, clReleaseProgram(p));
        EXPECT_ERROR(CL_INVALID_PROGRAM, clCreateKernel(p, "set", &error));

        cl_command_queue q = clCreateCommandQueue(a->context, a->devices[0], 0, &e);
        OK(e);
        OK(clReleaseCommandQueue(q));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clReleaseCommandQueue(q));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clFinish(q));

        cl_context x = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        OK(clReleaseContext(x));
        EXPECT(CL_INVALID_CONTEXT, clReleaseContext(x));
        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreateUserEvent(x, &error));
}

/* A handle of another kind. */
static void other_kinds(struct api *a)
{
        cl_mem m = api_buffer(a, 0, 64, NULL);
        EXPECT(CL_INVALID_EVENT, clReleaseEvent((cl_event)m));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clRetainCommandQueue((cl_command_queue)m));
        EXPECT(CL_INVALID_CONTEXT, clReleaseContext((cl_context)m));
        EXPECT(CL_INVALID_KERNEL, clRetainKernel((cl_kernel)m));
        EXPECT(CL_INVALID_PROGRAM, clReleaseProgram((cl_program)m));
        EXPECT(CL_INVALID_SAMPLER, clReleaseSampler((cl_sampler)m));
        EXPECT(CL_INVALID_MEM_OBJECT, clReleaseMemObject((cl_mem)a->queues[0]));
        EXPECT(CL_INVALID_MEM_OBJECT, clRetainMemObject(NULL));
        EXPECT(CL_INVALID_EVENT, clReleaseEvent(NULL));
        OK(clReleaseMemObject(m));
}

/* An object from a query may be retained and released, though the application's own reference is
 * gone. */
static void from_queries(struct api *a)
{
        cl_int e;
        cl_context x = clCreateContext(NULL, a->count, a->devices, NULL, NULL, &e), found;
        OK(e);
        cl_command_queue q = clCreateCommandQueue(x, a->devices[0], 0, &e), of_event;
        OK(e);
        cl_mem m = clCreateBuffer(x, 0, 8192, NULL, &e), parent;
        OK(e);
        const cl_buffer_region region = { 0, 4096 };
        cl_mem sub = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        cl_event event;
        OK(clEnqueueMarkerWithWaitList(q, 0, NULL, &event));
        OK(clReleaseContext(x));
        OK(clReleaseMemObject(m));
        for (int i = 0; i < 3; i++) {
                OK(clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(found), &found, NULL));
                CHECK(found == x);
                OK(clRetainContext(found));
                OK(clReleaseContext(found));
                OK(clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent,
                                      NULL));
                CHECK(parent == m);
                OK(clRetainMemObject(parent));
                OK(clReleaseMemObject(parent));
        }
        OK(clFinish(q));
        OK(clReleaseCommandQueue(q));
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(of_event), &of_event, NULL));
        CHECK(of_event == q);
        OK(clRetainCommandQueue(of_event));
        OK(clEnqueueMarkerWithWaitList(of_event, 0, NULL, NULL));
        OK(clFinish(of_event));
        OK(clReleaseCommandQueue(of_event));
        OK(clReleaseEvent(event));
        cl_int value = 7;
        OK(clRetainMemObject(parent));
        OK(clReleaseMemObject(sub));
        OK(clGetMemObjectInfo(parent, CL_MEM_CONTEXT, sizeof(found), &found, NULL));
        q = clCreateCommandQueue(found, a->devices[0], 0, &e);
        OK(e);
        OK(clEnqueueWriteBuffer(q, parent, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
        OK(clReleaseMemObject(parent));
        OK(clReleaseCommandQueue(q));
}

/* Kernels don't retain their arguments. */
static void arguments(struct api *a)
{
        cl_int e, v = 5;
        const size_t one = 1;
        cl_context other = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        cl_mem foreign = clCreateBuffer(other, 0, 64, NULL, &e);
        OK(e);
        cl_mem m = api_buffer(a, 0, 64, NULL);
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "set");
        void *nowhere = &v;
        EXPECT(CL_INVALID_CONTEXT, clSetKernelArg(k, 0, sizeof(foreign), &foreign));
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(nowhere), &nowhere));
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(k), &k));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(v), &v));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(m), &m));
        EXPECT(CL_INVALID_KERNEL_ARGS,
               clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        m = api_buffer(a, 0, 64, NULL);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(foreign));
        OK(clReleaseContext(other));
}

static cl_mem new_image(cl_context x, cl_mem_object_type type)
{
        static const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
        const cl_image_desc desc = { .image_type = type,
                                     .image_width = 4,
                                     .image_height = 4,
                                     .image_depth = 2,
                                     .image_array_size = 2 };
        cl_int e;
        cl_mem m = clCreateImage(x, CL_MEM_READ_ONLY, &format, &desc, NULL, &e);
        OK(e);
        return m;
}

/* An image of another type than the kernel's. */
static void images(struct api *a)
{
        static const char text[] =
                "kernel void f(read_only image1d_t a, read_only image1d_array_t b,\n"
                " read_only image2d_t c, read_only image2d_array_t d,\n"
                " read_only image3d_t e) {}\n";
        static const cl_mem_object_type types[] = {
                CL_MEM_OBJECT_IMAGE1D,       CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE2D,
                CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D,
        };
        cl_program p = api_build(a, text, "-cl-kernel-arg-info");
        cl_kernel k = api_kernel(p, "f");
        for (cl_uint t = 0; t < 5; t++) {
                cl_mem m = new_image(a->context, types[t]);
                for (cl_uint i = 0; i < 5; i++)
                        EXPECT(i == t ? CL_SUCCESS : CL_INVALID_MEM_OBJECT,
                               clSetKernelArg(k, i, sizeof(m), &m));
                OK(clReleaseMemObject(m));
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* "src_row_pitch must equal dst_row_pitch and src_slice_pitch must equal dst_slice_pitch" in one buffer. */
static void pitches(struct api *a)
{
        const size_t from[3] = { 0, 0, 0 }, to[3] = { 0, 8, 0 }, box[3] = { 4, 2, 1 };
        cl_mem m = api_buffer(a, 0, 4096, NULL), n = api_buffer(a, 0, 4096, NULL);
        EXPECT(CL_INVALID_VALUE, clEnqueueCopyBufferRect(a->queues[0], m, m, from, to, box, 16, 256,
                                                         32, 256, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueCopyBufferRect(a->queues[0], m, m, from, to, box, 16, 256,
                                                         16, 512, 0, NULL, NULL));
        OK(clEnqueueCopyBufferRect(a->queues[0], m, m, from, to, box, 16, 256, 16, 256, 0, NULL,
                                   NULL));
        OK(clEnqueueCopyBufferRect(a->queues[0], m, n, from, to, box, 16, 256, 32, 512, 0, NULL,
                                   NULL));
        OK(clFinish(a->queues[0]));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
}

int main(void)
{
        struct api a = api_open(0);
        released(&a);
        other_kinds(&a);
        from_queries(&a);
        arguments(&a);
        images(&a);
        pitches(&a);
        api_close(&a);
        printf("handles: %u devices\n", a.count);
        return 0;
}
