/* SpanCL's limits of cl_intel_unified_shared_memory: kinds that are not offered, pointers of each
 * kind, and devices that can't have it beside others.
 *
 *   servers: 2 */

#include <CL/cl_ext.h>
#include <signal.h>
#include <sys/wait.h>

#include "usm.h"

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void through(__global const ulong *where, uint x) {\n"
        "        ((__global uint *)where[0])[1] += x;\n"
        "}\n"
        "__kernel void value(ulong x, __local uint *l, __global uint *p) { *p = x; }\n";

static const char name[] = "cl_intel_unified_shared_memory";

static void *alloc(cl_context x, cl_device_id d, size_t size)
{
        cl_int err = 1;
        void *p = device_alloc(x, d, NULL, size, 0, &err);
        OK(err);
        return p;
}

static int names_it(cl_device_id d)
{
        char text[8192];
        cl_name_version list[128];
        size_t size;
        int found = 0;
        OK(clGetDeviceInfo(d, CL_DEVICE_EXTENSIONS, sizeof(text), text, &size));
        CHECK(size && !text[size - 1] && text[0] != ' ');
        OK(clGetDeviceInfo(d, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list, &size));
        for (size_t i = 0; i < size / sizeof(list[0]); i++)
                found += !strcmp(list[i].name, name);
        CHECK(found == (strstr(text, name) != NULL));
        CHECK(strstr(text, "cl_khr_command_buffer"));
        return found;
}

/* Where it is not offered nothing of it is answered; true: it is. */
static int look(cl_device_id d)
{
        const struct {
                cl_device_info name;
                cl_bitfield value;
        } others[] = {
                { CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
                  CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
                  CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL, 0 },
        };
        cl_device_svm_capabilities svm;
        OK(clGetDeviceInfo(d, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
        int has = names_it(d);
        CHECK(has == (svm != 0));
        cl_bitfield can = 1;
        EXPECT(has ? CL_SUCCESS : CL_INVALID_VALUE,
               clGetDeviceInfo(d, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, sizeof(can), &can,
                               NULL));
        CHECK(!has || can == (CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
                              CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL));
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                EXPECT(has ? CL_SUCCESS : CL_INVALID_VALUE,
                       clGetDeviceInfo(d, others[i].name, sizeof(can), &can, NULL));
                CHECK(!has || can == others[i].value);
        }
        return has;
}

/* The context has devices of this process and of servers. */
static void not_offered(struct api *a, cl_kernel k)
{
        cl_context x = a->context;
        const cl_bool yes = CL_TRUE;
        EXPECT_ERROR(CL_INVALID_CONTEXT, host_alloc(NULL, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_OPERATION, host_alloc(x, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_CONTEXT, shared_alloc(NULL, NULL, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_DEVICE,
                     shared_alloc(x, (cl_device_id)(void *)a, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_OPERATION, shared_alloc(x, NULL, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_OPERATION, shared_alloc(x, a->devices[0], NULL, 64, 0, &error));
        /* Which some say of every kernel. */
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof(yes),
                               &yes));
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL, sizeof(yes),
                               &yes));
        EXPECT(CL_INVALID_VALUE,
               clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL, 1, &yes));
        EXPECT(CL_INVALID_VALUE,
               clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 7, a->devices));
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, 0, NULL));
}

/* A child of fork() that uses the parent's memory gets SIGSEGV. The parent sees a device's bytes, as
 * libraries need that take a CPU device's memory for their own. */
static void touched(struct api *a)
{
        int status;
        volatile cl_uint *p = alloc(a->context, a->devices[0], 64);
        const cl_uint three = 3;
        OK(mem_fill(a->queues[0], (void *)(uintptr_t)p, &three, 4, 64, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        CHECK(p[1] == 3);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid)
                _exit(p[1] == 0);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        OK(free_now(a->context, (void *)(uintptr_t)p));
}

/* An allocation can't be freed as another kind than it was made, and it is no host memory. */
static void kinds(struct api *a, cl_kernel k, cl_kernel value)
{
        cl_context x = a->context;
        cl_command_queue q = a->queues[0];
        cl_uint *usm = alloc(x, a->devices[0], 4096), *svm = clSVMAlloc(x, 0, 4096, 0), got;
        cl_uint one = 1, type, here[2] = { 0 };
        CHECK(svm);
        OK(mem_fill(q, usm, &one, 4, 4096, 0, NULL, NULL));
        clSVMFree(x, usm);
        EXPECT(CL_INVALID_VALUE, free_now(x, svm));
        EXPECT(CL_INVALID_VALUE, free_now(x, usm + 1));
        OK(alloc_info(x, svm, CL_MEM_ALLOC_TYPE_INTEL, sizeof(type), &type, NULL));
        CHECK(type == CL_MEM_TYPE_UNKNOWN_INTEL);
        OK(alloc_info(x, usm, CL_MEM_ALLOC_TYPE_INTEL, sizeof(type), &type, NULL));
        CHECK(type == CL_MEM_TYPE_DEVICE_INTEL);
        EXPECT(CL_INVALID_VALUE,
               clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, usm, 4096, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_HOST_PTR, clCreateBuffer(x, CL_MEM_USE_HOST_PTR, 64, usm, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR, clCreateBuffer(x, CL_MEM_COPY_HOST_PTR, 64, usm, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, device_alloc(x, a->devices[0], NULL, 64, 131072, &error));
        EXPECT(CL_INVALID_VALUE, mem_copy(q, CL_TRUE, usm + 1000, a, 4096, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_fill(q, here, &one, 4, 4, 0, NULL, NULL));

        /* Copies go between the kinds. */
        OK(mem_copy(q, CL_TRUE, svm, usm + 8, 64, 0, NULL, NULL));
        OK(clEnqueueSVMMemcpy(q, CL_TRUE, &got, svm + 15, 4, 0, NULL, NULL));
        CHECK(got == 1);

        /* Images are written from the host. */
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        const cl_image_desc line = { .image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = 16 };
        const size_t origin[3] = { 0, 0, 0 }, region[3] = { 16, 1, 1 };
        cl_int made;
        cl_mem image = clCreateImage(x, 0, &format, &line, NULL, &made);
        if (made == CL_SUCCESS) {
                EXPECT(CL_INVALID_VALUE, clEnqueueWriteImage(q, image, CL_TRUE, origin, region, 0,
                                                             0, usm, 0, NULL, NULL));
                OK(clReleaseMemObject(image));
        }

        /* As an argument any value is one, but not for any argument. */
        OK(set_pointer(k, 0, here));
        OK(set_pointer(k, 0, usm));
        EXPECT(CL_INVALID_ARG_VALUE, set_pointer(value, 0, usm));
        EXPECT(CL_INVALID_ARG_VALUE, set_pointer(value, 1, usm));

        /* Of another context. */
        cl_int err;
        cl_context y = clCreateContext(NULL, 1, a->devices, NULL, NULL, &err);
        OK(err);
        cl_uint *other = alloc(y, a->devices[0], 64);
        EXPECT(CL_INVALID_VALUE, mem_copy(q, CL_TRUE, usm, other, 64, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_copy(q, CL_TRUE, other, here, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, free_now(x, other));
        cl_mem buffer = api_buffer(a, 0, 64, NULL);
        cl_int can_share;
        void *shared = shared_alloc(y, NULL, NULL, 64, 0, &can_share);
        OK(can_share);
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemcpy(q, CL_TRUE, here, shared, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueReadBuffer(q, buffer, CL_TRUE, 0, 64, shared, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueWriteBuffer(q, buffer, CL_TRUE, 0, 64, shared, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_HOST_PTR,
                     clCreateBuffer(x, CL_MEM_COPY_HOST_PTR, 64, shared, &error));
        OK(free_now(y, shared));
        OK(clReleaseMemObject(buffer));
        OK(free_now(y, other));
        OK(clReleaseContext(y));
        OK(free_now(x, usm));
        EXPECT(CL_INVALID_VALUE, free_now(x, usm));
        clSVMFree(x, svm);
}

/* A device without such memory takes it as host memory. Its launches reach none of it. */
static void beside_one_without(struct api *a, cl_uint none)
{
        cl_int err;
        struct api two = { .platform = a->platform,
                           .devices = { a->devices[0], a->devices[none] },
                           .count = 2 };
        const cl_bool yes = CL_TRUE;
        const size_t one = 1;
        cl_uint x = 5, n[2] = { 0, 32 };
        two.context = clCreateContext(NULL, 2, two.devices, NULL, NULL, &err);
        OK(err);
        for (int i = 0; i < 2; i++) {
                two.queues[i] = clCreateCommandQueue(two.context, two.devices[i], 0, &err);
                OK(err);
        }
        cl_program program = api_build(&two, source, "");
        cl_kernel add = api_kernel(program, "add"), through = api_kernel(program, "through");
        cl_kernel both[2] = { add, through };
        cl_mem buffer = api_buffer(&two, CL_MEM_COPY_HOST_PTR, sizeof(n), n);
        cl_uint *p = shared_alloc(two.context, two.devices[0], NULL, sizeof(n), 0, &err);
        OK(err);
        cl_ulong *where = shared_alloc(two.context, two.devices[0], NULL, 64, 0, &err);
        OK(err);
        where[0] = (cl_ulong)(uintptr_t)p;
        for (int i = 0; i < 2; i++) {
                OK(clSetKernelExecInfo(both[i], CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                                       sizeof(yes), &yes));
                OK(clSetKernelArg(both[i], 1, sizeof(x), &x));
        }
        OK(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
        OK(set_pointer(through, 0, where));
        for (cl_uint i = 0; i < 3; i++) {
                /* All of it is where no kernel finds it by a pointer. */
                OK(clEnqueueReadBuffer(two.queues[1], buffer, CL_TRUE, 0, sizeof(n), p, 0, NULL,
                                       NULL));
                OK(clEnqueueNDRangeKernel(two.queues[0], through, 1, NULL, &one, NULL, 0, NULL,
                                          NULL));
                OK(clFinish(two.queues[0]));
                OK(clEnqueueNDRangeKernel(two.queues[1], add, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueWriteBuffer(two.queues[1], buffer, CL_TRUE, 4, 4, p + 1, 0, NULL,
                                        NULL));
                CHECK(p[0] == i * x && p[1] == n[1] + (i + 1) * x);
        }
        OK(free_now(two.context, p));
        OK(free_now(two.context, where));
        OK(clReleaseMemObject(buffer));
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(through));
        OK(clReleaseProgram(program));
        api_close(&two);
}

int main(void)
{
        /* Sanitizers have handlers, which end a process in another way than by the signal. */
        signal(SIGSEGV, SIG_DFL);
        /* Of two entries in this process the second one's devices have no shared virtual memory. */
        char servers[1024];
        snprintf(servers, sizeof(servers), "%s in-process:native in-process:native",
                 getenv("SPANCL_SERVERS"));
        setenv("SPANCL_SERVERS", servers, 1);
        struct api a = api_open(0);
        cl_uint with = 0;
        for (cl_uint i = 0; i < a.count; i++)
                with += look(a.devices[i]) != 0;
        CHECK(with < a.count);
        usm_find(&a);
        cl_program program = api_build(&a, source, "");
        cl_kernel k = api_kernel(program, "add"), value = api_kernel(program, "value");
        if (look(a.devices[0])) {
                not_offered(&a, k);
                kinds(&a, k, value);
        }

        /* Devices of this process, which the context has, too, work on the same bytes; a server's does not. */
        struct api one = api_open_first(&a);
        if (look(one.devices[0]))
                touched(&one);
        api_close(&one);

        /* One without. */
        cl_uint none = 0;
        while (look(a.devices[none]))
                none++;
        EXPECT_ERROR(CL_INVALID_OPERATION,
                     device_alloc(a.context, a.devices[none], NULL, 64, 0, &error));
        EXPECT(CL_INVALID_OPERATION,
               mem_copy(a.queues[none], CL_TRUE, &with, &none, 4, 0, NULL, NULL));
        if (look(a.devices[0]))
                beside_one_without(&a, none);
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(value));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
