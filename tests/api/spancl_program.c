/* Programs beyond what implementations agree on: builds with callbacks and of some devices, the state
 * machine of builds, binaries that are not right, options, kernels and their arguments.
 * servers: 2 */

#include "api.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static const char source[] = "kernel void f(global uint *n, local uint *l, uint x) {"
                             " l[0] = x; n[0] = l[0]; }\n"
                             "kernel void g(global uint *n) { n[0] = 2; }\n";

static cl_program make(struct api *a, const char *text)
{
        cl_int err;
        cl_program p = clCreateProgramWithSource(a->context, 1, &text, NULL, &err);
        OK(err);
        return p;
}

static cl_build_status status(cl_program p, cl_device_id d)
{
        cl_build_status s = 99;
        OK(clGetProgramBuildInfo(p, d, CL_PROGRAM_BUILD_STATUS, sizeof(s), &s, NULL));
        return s;
}

static void sources(struct api *a)
{
        cl_int err;
        const char *parts[] = { "kernel void f(global uint *n)XX", " { n[0] = 1; }\n" };
        size_t lengths[] = { strlen(parts[0]) - 2, 0 };
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateProgramWithSource(a->context, 0, parts, NULL, &error));
        const char *missing[] = { parts[0], NULL };
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateProgramWithSource(a->context, 2, missing, NULL, &error));
        cl_program p = clCreateProgramWithSource(a->context, 2, parts, lengths, &err);
        OK(err);
        char text[128];
        size_t size;
        OK(clGetProgramInfo(p, CL_PROGRAM_SOURCE, sizeof(text), text, &size));
        CHECK(!strcmp(text, "kernel void f(global uint *n) { n[0] = 1; }\n") &&
              size == strlen(text) + 1);
        OK(clGetProgramInfo(p, CL_PROGRAM_IL, sizeof(text), text, &size));
        CHECK(size == 0);
        /* A program of source has no such constants; where no device takes IL, none has. */
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_IL_VERSION, sizeof(text), text, NULL));
        EXPECT(*text ? CL_INVALID_PROGRAM : CL_INVALID_OPERATION,
               clSetProgramSpecializationConstant(p, 0, sizeof(size), &size));
        EXPECT(CL_INVALID_PROGRAM,
               clSetProgramSpecializationConstant(NULL, 0, sizeof(size), &size));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clGetProgramInfo(p, CL_PROGRAM_NUM_KERNELS, sizeof(size), &size, NULL));
        CHECK(status(p, a->devices[0]) == CL_BUILD_NONE);
        size_t sizes[API_DEVICES_MAX];
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, &size));
        CHECK(size == a->count * sizeof(size_t) && sizes[0] == 0);
        OK(clReleaseProgram(p));
}

static atomic_int called;

static void CL_CALLBACK built(cl_program p, void *user)
{
        CHECK(user == &called);
        cl_uint n;
        OK(clGetProgramInfo(p, CL_PROGRAM_REFERENCE_COUNT, sizeof(n), &n, NULL));
        atomic_fetch_add(&called, 1);
}

static void builds(struct api *a)
{
        cl_program p = make(a, source);
        cl_device_id last = a->devices[a->count - 1];
        EXPECT(CL_INVALID_VALUE, clBuildProgram(p, 1, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clBuildProgram(p, 0, &last, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clBuildProgram(p, 0, NULL, NULL, NULL, &called));
        EXPECT(CL_INVALID_BUILD_OPTIONS, clBuildProgram(p, 0, NULL, "-D", NULL, NULL));
        CHECK(status(p, last) == CL_BUILD_NONE);

        /* One device; then the others, with a callback. */
        OK(clBuildProgram(p, 1, &last, "-DX=1", NULL, NULL));
        CHECK(status(p, last) == CL_BUILD_SUCCESS);
        if (a->count > 1) {
                CHECK(status(p, a->devices[0]) == CL_BUILD_NONE);
                OK(clBuildProgram(p, a->count - 1, a->devices, "-DX=2", built, &called));
                EXPECT(CL_INVALID_OPERATION, clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
                for (int i = 0; i < 60000 && !atomic_load(&called); i++)
                        usleep(1000);
                CHECK(atomic_load(&called) == 1);
                CHECK(status(p, a->devices[0]) == CL_BUILD_SUCCESS);
        }
        char text[256];
        OK(clGetProgramBuildInfo(p, last, CL_PROGRAM_BUILD_OPTIONS, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "-DX=1"));
        cl_program_binary_type type;
        OK(clGetProgramBuildInfo(p, last, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        size_t n;
        OK(clGetProgramInfo(p, CL_PROGRAM_NUM_KERNELS, sizeof(n), &n, NULL));
        CHECK(n == 2);
        OK(clGetProgramInfo(p, CL_PROGRAM_KERNEL_NAMES, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "f;g") || !strcmp(text, "g;f"));

        /* No build while there are kernels; a kernel outlives the application's program. */
        cl_kernel k = api_kernel(p, "g");
        EXPECT(CL_INVALID_OPERATION, clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseProgram(p));
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        size_t one = 1;
        for (cl_uint i = 0; i < a->count; i++) {
                cl_uint value = 0;
                OK(clEnqueueNDRangeKernel(a->queues[i], k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
                CHECK(value == 2);
        }
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));

        /* Again after a failure, and again with other options. */
        p = make(a, "kernel void f(global uint *n) { n[0] = VALUE; }\n");
        EXPECT(CL_BUILD_PROGRAM_FAILURE, clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
        CHECK(status(p, last) == CL_BUILD_ERROR);
        OK(clBuildProgram(p, 0, NULL, "-D VALUE=5", NULL, NULL));
        OK(clBuildProgram(p, 0, NULL, "-D VALUE=6", NULL, NULL));
        CHECK(status(p, last) == CL_BUILD_SUCCESS);
        OK(clReleaseProgram(p));
}

/* Names by their absolute path, which mean nothing on a server, and another one at each build. */
static void absolute_includes(struct api *a)
{
        char folder[] = "/tmp/spancl-program-XXXXXX", path[256], text[1024], options[1024];
        CHECK(mkdtemp(folder));
        snprintf(text, sizeof(text),
                 "#define S(x) #x\n#define T(x) S(x)\n"
                 "#include \"%s/base0.h\"\n#include T(FOLDER/ROUND.h)\n"
                 "kernel void f(global uint *n) { n[0] = BASE + VALUE; }\n",
                 folder);
        cl_program p = make(a, text);
        for (int round = 0; round < 3; round++) {
                for (int base = 0; base < 2; base++) {
                        snprintf(path, sizeof(path), "%s/%s%d.h", folder, base ? "base" : "value",
                                 base ? 0 : round);
                        FILE *f = fopen(path, "w");
                        CHECK(f);
                        fprintf(f, "#define %s %d\n", base ? "BASE" : "VALUE",
                                base ? 100 : 10 + round);
                        CHECK(!fclose(f));
                }
                snprintf(options, sizeof(options), "-DFOLDER=%s -DROUND=value%d", folder, round);
                OK(clBuildProgram(p, 0, NULL, options, NULL, NULL));
                for (cl_uint i = 0; i < a->count; i++)
                        CHECK(api_run(a, i, p) == (cl_uint)(110 + round));
                CHECK(!unlink(path) || !round);
                snprintf(path, sizeof(path), "%s/value%d.h", folder, round);
                CHECK(!unlink(path));
        }
        OK(clReleaseProgram(p));
        CHECK(!rmdir(folder));
}

static void binaries(struct api *a)
{
        cl_int err, st[2];
        cl_program p = make(a, source);
        OK(clBuildProgram(p, 1, a->devices, NULL, NULL, NULL));
        size_t sizes[API_DEVICES_MAX];
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        CHECK(sizes[0] > 0 && (a->count == 1 || sizes[1] == 0));
        unsigned char *data[API_DEVICES_MAX] = { malloc(sizes[0]) };
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(data), data, NULL));
        OK(clReleaseProgram(p));
        const unsigned char *binary = data[0];

        const unsigned char *foreign =
                (const unsigned char *)"\177ELF and so on, and so on, and so on";
        size_t size = 36;
        EXPECT_ERROR(CL_INVALID_BINARY, clCreateProgramWithBinary(a->context, 1, a->devices, &size,
                                                                  &foreign, NULL, &error));
        size = 0;
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateProgramWithBinary(a->context, 1, a->devices, &size,
                                                                 &binary, st, &error));
        CHECK(st[0] == CL_INVALID_VALUE);

        p = clCreateProgramWithBinary(a->context, 1, a->devices, sizes, &binary, st, &err);
        OK(err);
        OK(st[0]);
        size_t same;
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(same), &same, NULL));
        CHECK(same == sizes[0]);
        EXPECT_ERROR(CL_INVALID_PROGRAM_EXECUTABLE, clCreateKernel(p, "f", &error));
        OK(clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseKernel(api_kernel(p, "f")));
        OK(clReleaseProgram(p));
        free(data[0]);

        EXPECT_ERROR(CL_INVALID_VALUE, clCreateProgramWithBuiltInKernels(a->context, 1, a->devices,
                                                                         "no.such.kernel", &error));
}

static int has_svm(const struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++) {
                cl_device_svm_capabilities caps = 0;
                if (clGetDeviceInfo(a->devices[i], CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps,
                                    NULL) == CL_SUCCESS &&
                    caps)
                        return 1;
        }
        return 0;
}

static void kernels(struct api *a)
{
        cl_program p = make(a, source);
        OK(clBuildProgram(p, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateKernel(p, NULL, &error));
        EXPECT_ERROR(CL_INVALID_KERNEL_NAME, clCreateKernel(p, "h", &error));
        cl_kernel two[2];
        cl_uint n;
        EXPECT(CL_INVALID_VALUE, clCreateKernelsInProgram(p, 1, two, NULL));
        OK(clCreateKernelsInProgram(p, 0, NULL, &n));
        CHECK(n == 2);

        cl_kernel k = api_kernel(p, "f");
        cl_uint x = 7, value = 0;
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        EXPECT(CL_INVALID_ARG_INDEX, clSetKernelArg(k, 3, 4, &x));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 2, 8, &x));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArg(k, 2, 4, NULL));
        EXPECT(CL_INVALID_ARG_VALUE, clSetKernelArg(k, 1, 4, &x));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, sizeof(m) / 2, &m));
        cl_mem wrong = (cl_mem)k;
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(k, 0, sizeof(m), &wrong));
        EXPECT(has_svm(a) ? CL_INVALID_ARG_VALUE : CL_INVALID_OPERATION,
               clSetKernelArgSVMPointer(k, 0, &x));
        OK(clSetKernelArg(k, 0, sizeof(m), NULL));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        cl_ulong before = 0, after = 0;
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_LOCAL_MEM_SIZE, 8, &before, NULL));
        OK(clSetKernelArg(k, 1, 64, NULL));
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_LOCAL_MEM_SIZE, 8, &after, NULL));
        CHECK(after == before + 64);
        OK(clSetKernelArg(k, 2, 4, &x));

        /* A clone has the values of that moment. */
        cl_int err;
        cl_kernel clone = clCloneKernel(k, &err);
        OK(err);
        x = 8;
        OK(clSetKernelArg(k, 2, 4, &x));
        size_t one = 1;
        for (cl_uint i = 0; i < a->count; i++) {
                OK(clEnqueueNDRangeKernel(a->queues[i], clone, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
                CHECK(value == 7);
                OK(clEnqueueNDRangeKernel(a->queues[i], k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
                CHECK(value == 8);
        }
        OK(clReleaseKernel(clone));

        char text[64];
        size_t size;
        OK(clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, &size));
        CHECK(!strcmp(text, "f") && size == 2);
        cl_program owner;
        OK(clGetKernelInfo(k, CL_KERNEL_PROGRAM, sizeof(owner), &owner, NULL));
        CHECK(owner == p);
        OK(clGetKernelInfo(k, CL_KERNEL_ATTRIBUTES, sizeof(text), text, NULL));
        EXPECT(CL_INVALID_VALUE, clGetKernelInfo(k, 0x7777, sizeof(text), text, NULL));
        if (a->count > 1)
                EXPECT(CL_INVALID_DEVICE,
                       clGetKernelWorkGroupInfo(k, NULL, CL_KERNEL_WORK_GROUP_SIZE, 8, &size,
                                                NULL));
        EXPECT(CL_INVALID_VALUE,
               clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_GLOBAL_WORK_SIZE, 24, text,
                                        NULL));
        size_t group[3];
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                    sizeof(group), group, NULL));
        CHECK(!group[0] && !group[1] && !group[2]);
        cl_kernel_arg_address_qualifier address;
        OK(clGetKernelArgInfo(k, 1, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address,
                              NULL));
        CHECK(address == CL_KERNEL_ARG_ADDRESS_LOCAL);
        EXPECT(CL_INVALID_ARG_INDEX, clGetKernelArgInfo(k, 3, CL_KERNEL_ARG_NAME, 0, NULL, &size));

        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

static cl_int arg_name(cl_program p)
{
        cl_kernel k = api_kernel(p, "f");
        char name[8];
        cl_int r = clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_NAME, sizeof(name), name, NULL);
        CHECK(r || !strcmp(name, "n"));
        OK(clReleaseKernel(k));
        return r;
}

/* Information about arguments is there only if it was asked for. */
static void argument_information(struct api *a)
{
        cl_int err;
        cl_program p = make(a, "kernel void f(global uint *n) { n[0] = 1; }\n");
        OK(clBuildProgram(p, 0, NULL, "", NULL, NULL));
        EXPECT(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, arg_name(p));
        OK(clBuildProgram(p, 0, NULL, "-cl-kernel-arg-info", NULL, NULL));
        OK(arg_name(p));
        const char *options[2] = { NULL, "-cl-kernel-arg-info" };
        for (int i = 0; i < 2; i++) {
                OK(clCompileProgram(p, 0, NULL, options[i], 0, NULL, NULL, NULL, NULL));
                cl_program linked = clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, NULL, &err);
                OK(err);
                cl_int r = arg_name(linked);
                /* PoCL has none of programs that were linked. */
                CHECK(r == CL_KERNEL_ARG_INFO_NOT_AVAILABLE || (i && !r));
                OK(clReleaseProgram(linked));
        }
        OK(clReleaseProgram(p));
}

int main(void)
{
        struct api a = api_open(0);
        sources(&a);
        builds(&a);
        absolute_includes(&a);
        binaries(&a);
        kernels(&a);
        argument_information(&a);
        api_close(&a);
        return 0;
}
