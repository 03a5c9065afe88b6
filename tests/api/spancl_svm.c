/* Shared virtual memory: features of the specification that implementations at hand lack, and the
 * mixed case of server devices beside one of this process. servers: 2 */

#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void value(ulong x, __local uint *l, __global uint *p) { *p = x; }\n";

enum { N = 30000, LINE = 64, NAME_SIZE = 256 };

static cl_uint *alloc(struct api *a, size_t size)
{
        void *p = clSVMAlloc(a->context, 0, size, 0);
        CHECK(p);
        return p;
}

static void CL_CALLBACK on_free(cl_command_queue queue, cl_uint count, void *pointers[], void *user)
{
        CHECK(count == 0);
        CHECK(pointers == NULL);
        ++*(int *)user;
}

static void errors(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel k = api_kernel(program, "add"), value = api_kernel(program, "value");
        cl_uint *x = alloc(a, 4096), host[64] = { 0 };
        const cl_uint one = 1;
        int calls = 0;
        void *list[] = { x };
        const void *ranges[] = { x, x + 1024 };
        const size_t sizes[] = { 4100, 4 };
        const cl_bool yes = CL_TRUE, no = CL_FALSE;

        /* Only what coarse-grained devices have. */
        CHECK(!clSVMAlloc(a->context, CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0));
        CHECK(!clSVMAlloc(a->context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0));
        CHECK(!clSVMAlloc(a->context, CL_MEM_USE_HOST_PTR, 64, 0));
        CHECK(!clSVMAlloc(a->context, 0, 64, 8192));
        for (cl_uint align = 1; align <= 128; align *= 2) {
                void *p = clSVMAlloc(a->context, 0, 1, align);
                CHECK(p && (uintptr_t)p % align == 0);
                clSVMFree(a->context, p);
        }

        OK(clEnqueueSVMFree(q, 0, NULL, on_free, &calls, 0, NULL, NULL));
        OK(clFinish(q));
        CHECK(calls == 1);
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMFree(q, 0, list, NULL, NULL, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMFree(q, 1, NULL, NULL, NULL, 0, NULL, NULL));

        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, NULL, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, &one, 3, 3, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, &one, 256, 256, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, NULL, &one, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x + 1, host, 8, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, &one, 4, 5000, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, host, &one, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemcpy(q, CL_TRUE, x, a, 5000, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, x, 5000, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, host, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMUnmap(q, x, 0, NULL, NULL)); /* not mapped */

        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMigrateMem(q, 0, ranges, NULL, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMigrateMem(q, 1, NULL, NULL, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMigrateMem(q, 1, ranges, NULL, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMigrateMem(q, 1, ranges, sizes, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueSVMMigrateMem(q, 1, ranges + 1, sizes + 1, 0, 0, NULL, NULL));

        EXPECT(CL_INVALID_ARG_INDEX, clSetKernelArgSVMPointer(k, 7, x));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArgSVMPointer(k, 0, host));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArgSVMPointer(value, 0, x));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArgSVMPointer(value, 1, x));
        OK(clSetKernelArgSVMPointer(k, 0, NULL));
        OK(clSetKernelArgSVMPointer(k, 0, x + 1024)); /* where it ends */
        EXPECT(CL_INVALID_VALUE, clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 7, list));
        EXPECT(CL_INVALID_VALUE, clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, NULL));
        EXPECT(CL_INVALID_VALUE, clSetKernelExecInfo(k, 0, 8, list));
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL));
        EXPECT(CL_INVALID_OPERATION,
               clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(yes),
                                   &yes));
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(no), &no));
        EXPECT(CL_INVALID_VALUE,
               clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 8, list));
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(value));

        /* A buffer over it is as large at most; its sub-buffers are over it, too. */
        cl_int err;
        cl_bool uses = CL_FALSE;
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE,
                     clCreateBuffer(a->context, CL_MEM_USE_HOST_PTR, 4097, x, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE,
                     clCreateBuffer(a->context, CL_MEM_COPY_HOST_PTR, 4097, x, &error));
        cl_mem m = api_buffer(a, CL_MEM_USE_HOST_PTR, 4096, x);
        cl_buffer_region half = { 2048, 2048 };
        cl_mem sub = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &err);
        OK(err);
        OK(clGetMemObjectInfo(sub, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL));
        CHECK(uses == CL_TRUE);
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT,
                     clCreateSubBuffer(sub, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
        OK(clReleaseMemObject(sub));
        OK(clReleaseMemObject(m));
        clSVMFree(a->context, x);
}

/* A failed event: nothing is freed, and nobody is called. */
static void failed_free(struct api *a)
{
        cl_int err;
        int calls = 0;
        cl_event gate = clCreateUserEvent(a->context, &err), freed;
        OK(err);
        OK(clEnqueueSVMFree(a->queues[0], 0, NULL, on_free, &calls, 1, &gate, &freed));
        OK(clFlush(a->queues[0]));
        OK(clSetUserEventStatus(gate, -5));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &freed));
        CHECK(api_status(freed) < 0);
        CHECK(calls == 0);
        OK(clReleaseEvent(freed));
        OK(clReleaseEvent(gate));
        clFinish(a->queues[0]);
}

/* From device to device and back to the host, by maps and by kernels, large enough for several
 * transfers. */
static void rounds(struct api *a, cl_program program)
{
        cl_kernel k = api_kernel(program, "add");
        cl_uint *x = alloc(a, 4 * N), *other = alloc(a, 4 * N), expected = 0;
        const cl_uint zero = 0;
        size_t count = N;
        OK(clEnqueueSVMMemFill(a->queues[0], x, &zero, 4, 4 * N, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        for (cl_uint round = 0; round < 4 * a->count; round++) {
                cl_command_queue q = a->queues[round % a->count];
                cl_uint more = round + 1;
                OK(clSetKernelArgSVMPointer(k, 0, x));
                OK(clSetKernelArg(k, 1, sizeof(more), &more));
                OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &count, NULL, 0, NULL, NULL));
                expected += more;
                if (round % 3 == 0) {
                        OK(clEnqueueSVMMemcpy(q, CL_TRUE, other, x, 4 * N, 0, NULL, NULL));
                        OK(clEnqueueSVMMemcpy(q, CL_TRUE, x, other, 4 * N, 0, NULL, NULL));
                }
                OK(clFinish(q));
                if (round % 2)
                        continue;
                cl_command_queue mapper = a->queues[(round / 2) % a->count];
                OK(clEnqueueSVMMap(mapper, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, x, 4 * N, 0, NULL,
                                   NULL));
                for (size_t i = 0; i < N; i++) {
                        CHECK(x[i] == expected);
                        x[i]++;
                }
                expected++;
                OK(clEnqueueSVMUnmap(mapper, x, 0, NULL, NULL));
                OK(clFinish(mapper));
        }
        OK(clReleaseKernel(k));
        clSVMFree(a->context, x);
        clSVMFree(a->context, other);
}

/* Read an image whose pixels are SVM, in a buffer over it, and return the read's status. */
static cl_int read_line(cl_context x, cl_command_queue mapper, cl_command_queue reader)
{
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        const size_t origin[3] = { 0, 0, 0 }, region[3] = { LINE, 1, 1 }, size = 4 * LINE;
        cl_uint pixels[LINE], got[LINE] = { 0 };
        cl_int err;
        cl_uint *p = clSVMAlloc(x, 0, size, 0);
        CHECK(p);
        cl_mem m = clCreateBuffer(x, CL_MEM_USE_HOST_PTR, size, p, &err);
        OK(err);
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                     .image_width = LINE,
                                     .mem_object = m };
        cl_mem line = clCreateImage(x, 0, &format, &desc, NULL, &err);
        OK(err);
        OK(clEnqueueSVMMap(mapper, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, p, size, 0, NULL,
                           NULL));
        api_pattern(p, size, (unsigned)(uintptr_t)p);
        memcpy(pixels, p, size);
        OK(clEnqueueSVMUnmap(mapper, p, 0, NULL, NULL));
        OK(clFinish(mapper));
        err = clEnqueueReadImage(reader, line, CL_TRUE, origin, region, 0, 0, got, 0, NULL, NULL);
        CHECK(err != CL_SUCCESS || !memcmp(got, pixels, size));
        OK(clReleaseMemObject(line));
        OK(clReleaseMemObject(m));
        clSVMFree(x, p);
        return err;
}

static void get_name(cl_device_id d, char name[NAME_SIZE])
{
        OK(clGetDeviceInfo(d, CL_DEVICE_NAME, NAME_SIZE, name, NULL));
}

/* In a process that sees this host's own implementations: the same of the device of that name, negated. */
static int read_line_natively(const char *wanted)
{
        cl_platform_id platforms[16];
        cl_uint count = 0;
        OK(clGetPlatformIDs(16, platforms, &count));
        for (cl_uint i = 0; i < count && i < 16; i++) {
                cl_device_id all[API_DEVICES_MAX];
                cl_uint n = 0;
                char name[NAME_SIZE];
                cl_int err;
                if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, API_DEVICES_MAX, all, &n))
                        continue;
                for (cl_uint k = 0; k < n && k < API_DEVICES_MAX; k++) {
                        get_name(all[k], name);
                        if (strcmp(name, wanted) != 0)
                                continue;
                        cl_context x = clCreateContext(NULL, 1, &all[k], NULL, NULL, &err);
                        OK(err);
                        cl_command_queue q = clCreateCommandQueue(x, all[k], 0, &err);
                        OK(err);
                        return -read_line(x, q, q);
                }
        }
        return 0;
}

/* Some implementations refuse it: only then may it be refused. */
static cl_int native_answer(char *self, cl_device_id d)
{
        char name[NAME_SIZE];
        const char *vendors = getenv("NATIVE_VENDORS");
        int status;
        get_name(d, name);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                unsetenv("OCL_ICD_VENDORS");
                if (vendors)
                        setenv("OCL_ICD_VENDORS", vendors, 1);
                execv(self, (char *[]){ self, name, NULL });
                _exit(127);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        return -WEXITSTATUS(status);
}

static void image(struct api *a, char *self)
{
        cl_bool images = CL_FALSE;
        for (cl_uint i = 0; i < a->count; i++) {
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images,
                                   NULL));
                if (!images)
                        return;
        }
        for (cl_uint i = 0; i < a->count; i++) {
                cl_int err = read_line(a->context, a->queues[i], api_queue(a, i + 1));
                if (err != CL_SUCCESS)
                        EXPECT(native_answer(self, a->devices[(i + 1) % a->count]), err);
        }
}

int main(int argc, char **argv)
{
        if (argc > 1)
                return read_line_natively(argv[1]);
        char servers[1024];
        snprintf(servers, sizeof(servers), "%s in-process:native", getenv("SPANCL_SERVERS"));
        setenv("SPANCL_SERVERS", servers, 1);
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_device_svm_capabilities caps = 0;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps,
                                   NULL));
                CHECK(!(caps & ~(cl_device_svm_capabilities)CL_DEVICE_SVM_COARSE_GRAIN_BUFFER));
                if (!caps)
                        return 77;
        }
        cl_program program = api_build(&a, source, "");
        errors(&a, program);
        failed_free(&a);
        rounds(&a, program);
        image(&a, argv[0]);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
