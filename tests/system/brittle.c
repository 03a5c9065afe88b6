/* Programs over a server whose native implementation has the habits of NVIDIA's driver
 * (support/brittle). They fill the device and launch larger groups than the driver reports. They
 * link objects, build programs anew, make calls that only this driver accepts, and break the
 * context. */
#include "../api/api.h"

#include <stdbool.h>
#include <time.h>

enum { MIB = 1 << 20, GLOBAL = 2048 };

static const char source[] =
        "kernel void triple(global uint *n) { n[get_global_id(0)] = get_global_id(0) * 3; }\n"
        "kernel void scratch(global uint *n, local uint *l) { n[get_global_id(0)] = get_global_id(0) * 3; }\n"
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

        /* The driver has not seen a launch that still waits for the program, so only its event
         * has the error. */
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

static void build_and_expect(cl_program p, const char *options, bool compile, cl_int expected)
{
        size_t size = 1;
        EXPECT(expected, compile ? clCompileProgram(p, 0, NULL, options, 0, NULL, NULL, NULL, NULL)
                                 : clBuildProgram(p, 0, NULL, options, NULL, NULL));
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
        CHECK(!size == (expected != CL_SUCCESS));
}

/* After a build that failed, the driver is not asked for binaries. Neither the program's query does
 * so, nor the server's cache, which has still to store the build before. */
static void rebuilds(struct api *a)
{
        static const char text[] =
                "#ifndef BY\n#define BY 3\n#endif\n"
                "kernel void add(global uint *n) { n[get_global_id(0)] += BY; }\n";
        const char *texts[] = { text };
        cl_int err;
        cl_program p = clCreateProgramWithSource(a->context, 1, texts, NULL, &err);
        OK(err);
        build_and_expect(p, "-DBY=4", false, CL_SUCCESS);
        OK(clBuildProgram(p, 0, NULL, "-DBY=5", NULL,
                          NULL)); /* it is to be stored, and is replaced */
        build_and_expect(p, "-DBY=;", false, CL_BUILD_PROGRAM_FAILURE);
        build_and_expect(p, "-DBY=6", true, CL_SUCCESS);
        build_and_expect(p, "-DBY=;", true, CL_COMPILE_PROGRAM_FAILURE);
        build_and_expect(p, "", false, CL_SUCCESS);
        OK(clReleaseProgram(p));
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

/* Buffers beyond CL_DEVICE_MAX_MEM_ALLOC_SIZE: what is there counts. */
static void large_buffers(struct api *a)
{
        cl_ulong most = 0, memory = 0;
        cl_int err;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL));
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory,
                           NULL));
        CHECK(most < memory / 2);
        cl_mem m = buffer(a, (size_t)memory / 2);
        cl_uint three = 3, got = 0;
        OK(clEnqueueFillBuffer(a->queues[0], m, &three, 4, 0, (size_t)memory / 2, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, (size_t)memory / 2 - 4, 4, &got, 0, NULL,
                               NULL));
        CHECK(got == 3);
        OK(clReleaseMemObject(m));

        const size_t sizes[] = { (size_t)memory + 1, SIZE_MAX };
        for (int i = 0; i < 2; i++) {
                m = buffer(a, sizes[i]);
                EXPECT(CL_MEM_OBJECT_ALLOCATION_FAILURE,
                       clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, sizes[i] - 4, 4, &got, 0, NULL,
                                           NULL));
                clEnqueueMapBuffer(a->queues[0], m, CL_TRUE, CL_MAP_READ, 0, sizes[i], 0, NULL,
                                   NULL, &err);
                CHECK(err != CL_SUCCESS);
                OK(clReleaseMemObject(m));
        }
        OK(clFinish(a->queues[0]));
}

/* A part that begins anywhere, for kernels and commands. */
static void odd_parts(struct api *a, cl_program p)
{
        static cl_uint n[GLOBAL + 2];
        const cl_buffer_region region = { 4, GLOBAL * sizeof(cl_uint) };
        const cl_uint seven = 7;
        cl_int err;
        cl_mem whole = buffer(a, sizeof(n));
        OK(clEnqueueFillBuffer(a->queues[0], whole, &seven, 4, 0, sizeof(n), 0, NULL, NULL));
        cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
        OK(err);
        cl_kernel k = kernel_of(a, p, "triple", part);
        OK(launch(a, k, 64, 0, NULL, NULL));
        check_triples(a, part);
        OK(clEnqueueReadBuffer(a->queues[0], whole, CL_TRUE, 0, sizeof(n), n, 0, NULL, NULL));
        CHECK(n[0] == 7 && n[1] == 0 && n[2] == 3 && n[GLOBAL] == 3 * (GLOBAL - 1));
        CHECK(n[GLOBAL + 1] == 7);
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(part));
        OK(clReleaseMemObject(whole));
}

static void odd_args(struct api *a, cl_program p)
{
        cl_mem m = buffer(a, GLOBAL * sizeof(cl_uint));
        cl_kernel k = kernel_of(a, p, "scratch", m);
        OK(clSetKernelArg(k, 0, 0, NULL));
        OK(clSetKernelArg(k, 0, 4, NULL));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, 4, &m));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, 0, NULL));
        OK(launch(a, k, 64, 0, NULL, NULL));
        check_triples(a, m);
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
}

static void nothing(struct api *a)
{
        cl_command_queue q = a->queues[0];
        cl_mem m = buffer(a, 64), n = buffer(a, 64);
        const size_t origin[3] = { 0 };
        char bytes[64] = { 0 };
        cl_event e;
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, 64, bytes, 0, NULL, NULL));
        for (int i = 0; i < 3; i++) {
                size_t region[3] = { 4, 4, 4 };
                region[i] = 0;
                OK(clEnqueueReadBufferRect(q, m, CL_TRUE, origin, origin, region, 0, 0, 0, 0, bytes,
                                           0, NULL, NULL));
                OK(clEnqueueWriteBufferRect(q, m, CL_FALSE, origin, origin, region, 0, 0, 0, 0,
                                            bytes, 0, NULL, &e));
                OK(clWaitForEvents(1, &e));
                OK(clReleaseEvent(e));
                OK(clEnqueueCopyBufferRect(q, m, n, origin, origin, region, 0, 0, 0, 0, 0, NULL,
                                           NULL));
        }
        OK(clEnqueueUnmapMemObject(q, m, NULL, 0, NULL, &e));
        OK(clWaitForEvents(1, &e));
        OK(clReleaseEvent(e));
        OK(clFinish(q));
        OK(clReleaseMemObject(n));
        OK(clReleaseMemObject(m));
}

static void odd_images(struct api *a)
{
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                               .image_width = 4,
                               .image_height = 4,
                               .image_row_pitch = 17 };
        const size_t origin[3] = { 0 }, region[3] = { 4, 4, 1 };
        uint8_t from[17 * 4], to[64];
        cl_int err;
        for (size_t i = 0; i < sizeof(from); i++)
                from[i] = (uint8_t)i;
        cl_mem m = clCreateImage(a->context, CL_MEM_COPY_HOST_PTR, &format, &desc, from, &err);
        OK(err);
        OK(clEnqueueReadImage(a->queues[0], m, CL_TRUE, origin, region, 0, 0, to, 0, NULL, NULL));
        for (int i = 0; i < 64; i++)
                CHECK(to[i] == i / 16 * 17 + i % 16);
        cl_event e = NULL;
        void *at = clEnqueueMapImage(a->queues[0], m, CL_TRUE, CL_MAP_READ, origin, region, NULL,
                                     NULL, 0, NULL, &e, &err);
        OK(err);
        CHECK(at && *(uint8_t *)at == 0);
        OK(clReleaseEvent(e));
        OK(clEnqueueUnmapMemObject(a->queues[0], m, at, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        OK(clReleaseMemObject(m));
        desc.image_row_pitch = 16; /* of no memory */
        m = clCreateImage(a->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
        OK(err);
        OK(clReleaseMemObject(m));
}

static void pages(struct api *a)
{
        void *at[8];
        for (int i = 0; i < 8; i++) {
                cl_uint align = i % 2 ? 4096 : 256;
                at[i] = clSVMAlloc(a->context, CL_MEM_READ_WRITE, 100, align);
                CHECK(at[i] && (uintptr_t)at[i] % align == 0);
                OK(clEnqueueSVMMap(a->queues[0], CL_TRUE, CL_MAP_WRITE, at[i], 100, 0, NULL, NULL));
                memset(at[i], i, 100);
                OK(clEnqueueSVMUnmap(a->queues[0], at[i], 0, NULL, NULL));
        }
        OK(clFinish(a->queues[0]));
        for (int i = 0; i < 8; i++) {
                OK(clEnqueueSVMMap(a->queues[0], CL_TRUE, CL_MAP_READ, at[i], 100, 0, NULL, NULL));
                CHECK(((char *)at[i])[0] == i && ((char *)at[i])[99] == i);
                OK(clEnqueueSVMUnmap(a->queues[0], at[i], 0, NULL, NULL));
        }
        OK(clFinish(a->queues[0]));
        for (int i = 0; i < 8; i++)
                clSVMFree(a->context, at[i]);
        CHECK(!clSVMAlloc(a->context, CL_MEM_READ_WRITE, 100, 8192));
        CHECK(!clSVMAlloc(a->context, CL_MEM_READ_WRITE, 100, 384));
}

/* Calls that are errors by the specification, and that the driver accepts. */
static void accepted(struct api *a)
{
        cl_program p = api_build(a, source, "");
        large_buffers(a);
        odd_parts(a, p);
        odd_args(a, p);
        nothing(a);
        odd_images(a);
        pages(a);
        OK(clReleaseProgram(p));
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
        rebuilds(&a);
        accepted(&a);
        fill(&a);
        compute(&a);
        fill_images(&a);
        compute(&a);
        breaks(&a);
        api_close(&a);
        return 0;
}
