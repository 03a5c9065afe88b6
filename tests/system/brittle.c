/* Programs over a server whose native implementation has the habits of NVIDIA's driver (support/brittle): they fill the
 * device, launch larger groups than the driver tells, link objects, and break the context. */
#include "../api/api.h"

#include <time.h>

enum { MIB = 1 << 20, GLOBAL = 2048 };

static const char source[] =
        "kernel void triple(global uint *n) { n[get_global_id(0)] = get_global_id(0) * 3; }\n"
        "kernel void heavy(global uint *n) { n[get_global_id(0)] = get_global_id(0) * 3; }\n"
        "kernel void wild(global uint *n) { n[get_global_id(0)] = 0; }\n";

static cl_kernel kernel_of(struct api *a, cl_program p, const char *name, cl_mem m)
{
        cl_int err;
        cl_kernel k = clCreateKernel(p, name, &err);
        OK(err);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        (void)a;
        return k;
}

static cl_int launch(struct api *a, cl_kernel k, size_t local, cl_uint n, const cl_event *waits,
                     cl_event *ret)
{
        const size_t global = GLOBAL;
        return clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &global, &local, n, waits, ret);
}

static void check_triples(struct api *a, cl_mem m)
{
        static cl_uint n[GLOBAL];
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(n), n, 0, NULL, NULL));
        for (cl_uint i = 0; i < GLOBAL; i++)
                CHECK(n[i] == i * 3);
}

static cl_mem buffer(struct api *a, size_t size)
{
        cl_int err;
        cl_mem m = clCreateBuffer(a->context, CL_MEM_READ_WRITE, size, NULL, &err);
        OK(err);
        return m;
}

/* The implementation judges a group that is larger than CL_KERNEL_WORK_GROUP_SIZE. */
static void groups(struct api *a)
{
        cl_program p = api_build(a, source, "");
        cl_mem m = buffer(a, GLOBAL * sizeof(cl_uint));
        cl_kernel k = kernel_of(a, p, "triple", m), heavy = kernel_of(a, p, "heavy", m);
        cl_uint zero = 0;
        size_t told = 0;
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof(told),
                                    &told, NULL));
        CHECK(told == 256);
        for (size_t local = 128; local <= 1024; local *= 2) {
                OK(clEnqueueFillBuffer(a->queues[0], m, &zero, sizeof(zero), 0,
                                       GLOBAL * sizeof(zero), 0, NULL, NULL));
                OK(launch(a, k, local, 0, NULL, NULL));
                check_triples(a, m);
        }
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(a, k, 2048, 0, NULL, NULL));

        /* A launch that the driver refuses leaves no trace, whatever is in the queue before it. */
        OK(launch(a, k, 128, 0, NULL, NULL));
        EXPECT(CL_OUT_OF_RESOURCES, launch(a, heavy, 512, 0, NULL, NULL));
        cl_event e = NULL;
        EXPECT(CL_OUT_OF_RESOURCES, launch(a, heavy, 1024, 0, NULL, &e));
        CHECK(!e);
        OK(clFinish(a->queues[0]));
        OK(launch(a, heavy, 256, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        check_triples(a, m);

        /* The driver has not seen a launch that waits for the program: the event tells. */
        cl_int err, status = 1;
        cl_event user = clCreateUserEvent(a->context, &err);
        OK(err);
        OK(launch(a, heavy, 512, 1, &user, &e));
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &e));
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
        CHECK(status == CL_OUT_OF_RESOURCES);
        OK(clReleaseEvent(e));
        OK(clReleaseEvent(user));
        OK(clReleaseKernel(heavy));
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(p));
}

static void links(struct api *a)
{
        const char *texts[2] = {
                "uint three(void) { return 3; }\n",
                "uint three(void);\n"
                "kernel void thrice(global uint *n) { n[get_global_id(0)] = get_global_id(0) * three(); }\n"
        };
        cl_program parts[2], p;
        cl_int err;
        for (int i = 0; i < 2; i++) {
                parts[i] = clCreateProgramWithSource(a->context, 1, &texts[i], NULL, &err);
                OK(err);
                OK(clCompileProgram(parts[i], 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        }
        p = clLinkProgram(a->context, 0, NULL, "", 2, parts, NULL, NULL, &err);
        OK(err);
        cl_mem m = buffer(a, GLOBAL * sizeof(cl_uint));
        cl_kernel k = kernel_of(a, p, "thrice", m);
        OK(launch(a, k, 64, 0, NULL, NULL));
        check_triples(a, m);
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(p));
        for (int i = 0; i < 2; i++)
                OK(clReleaseProgram(parts[i]));
}

/* A few bytes at both ends of each, until the device is full, and then a build and a launch. */
static void fill(struct api *a)
{
        enum { ALL = 256 };
        cl_mem all[ALL];
        char bytes[8] = { 0 };
        cl_uint count = 0;
        cl_int err = CL_SUCCESS;
        while (count < ALL && err == CL_SUCCESS) {
                cl_command_queue q = a->queues[0];
                cl_mem m = clCreateBuffer(a->context, CL_MEM_READ_WRITE, MIB, NULL, &err);
                if (err != CL_SUCCESS)
                        break;
                all[count++] = m;
                err = clEnqueueReadBuffer(q, m, CL_TRUE, 0, 8, bytes, 0, NULL, NULL);
                for (int i = 0; i < 8; i++)
                        CHECK(!bytes[i]);
                if (err == CL_SUCCESS)
                        err = clEnqueueWriteBuffer(q, m, CL_TRUE, MIB - 8, 8, bytes, 0, NULL, NULL);
        }
        printf("%u buffers of a MiB, then %d\n", count, err);
        EXPECT(CL_MEM_OBJECT_ALLOCATION_FAILURE, err);
        CHECK(count > 32);
        while (count)
                OK(clReleaseMemObject(all[--count]));
        OK(clFinish(a->queues[0]));
}

/* The same with images, and with a kernel as the first command. */
static void fill_images(struct api *a)
{
        enum { ALL = 256 };
        cl_mem all[ALL];
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT32 };
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                     .image_width = 256,
                                     .image_height = 256 };
        const size_t origin[3] = { 0 }, region[3] = { 256, 256, 1 };
        const cl_uint color[4] = { 1, 2, 3, 4 };
        cl_uint count = 0;
        cl_int err = CL_SUCCESS;
        while (count < ALL && err == CL_SUCCESS) {
                cl_event e;
                cl_mem m = clCreateImage(a->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
                if (err != CL_SUCCESS)
                        break;
                all[count++] = m;
                err = clEnqueueFillImage(a->queues[0], m, color, origin, region, 0, NULL, &e);
                if (err == CL_SUCCESS) {
                        if (clWaitForEvents(1, &e) != CL_SUCCESS)
                                OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(err),
                                                  &err, NULL));
                        OK(clReleaseEvent(e));
                }
        }
        printf("%u images of a MiB, then %d\n", count, err);
        EXPECT(CL_MEM_OBJECT_ALLOCATION_FAILURE, err);
        CHECK(count > 32);
        while (count)
                OK(clReleaseMemObject(all[--count]));
        OK(clFinish(a->queues[0]));
}

static void compute(struct api *a)
{
        cl_program p = api_build(a, source, "-DANEW");
        cl_mem m = buffer(a, GLOBAL * sizeof(cl_uint));
        cl_kernel k = kernel_of(a, p, "triple", m);
        OK(launch(a, k, 64, 0, NULL, NULL));
        check_triples(a, m);
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(p));
}

static cl_int try_context(struct api *a)
{
        cl_int err;
        a->context = clCreateContext(NULL, a->count, a->devices, NULL, NULL, &err);
        if (err == CL_SUCCESS) {
                a->queues[0] = clCreateCommandQueue(a->context, a->devices[0], 0, &err);
                if (err != CL_SUCCESS)
                        OK(clReleaseContext(a->context));
        }
        return err;
}

/* A kernel breaks the context: what is in it fails, without a crash, and a new one works. */
static void breaks(struct api *a)
{
        cl_program p = api_build(a, source, "");
        cl_mem m = buffer(a, GLOBAL * sizeof(cl_uint));
        cl_kernel k = kernel_of(a, p, "wild", m);
        cl_event e;
        OK(launch(a, k, 64, 0, NULL, &e));
        CHECK(clWaitForEvents(1, &e) != CL_SUCCESS);
        OK(clReleaseEvent(e));
        CHECK(clBuildProgram(p, 0, NULL, "", NULL, NULL) != CL_SUCCESS);
        CHECK(launch(a, k, 64, 0, NULL, NULL) != CL_SUCCESS ||
              clFinish(a->queues[0]) != CL_SUCCESS);
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        OK(clReleaseProgram(p));
        OK(clReleaseCommandQueue(a->queues[0]));
        OK(clReleaseContext(a->context));
        while (try_context(a) != CL_SUCCESS)
                nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        compute(a);
}

int main(void)
{
        struct api a = api_open(0);
        groups(&a);
        links(&a);
        fill(&a);
        compute(&a);
        fill_images(&a);
        compute(&a);
        breaks(&a);
        api_close(&a);
        return 0;
}
