/* servers: 2. The errors of building, compiling, linking and their queries, clause by clause.
 * Also their results while a build is in progress. */
#include "api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static const char source[] = "kernel void f(global int *p) { p[0] = 1; }\n";

static cl_program make(cl_context x, const char *text)
{
        cl_int err;
        cl_program p = clCreateProgramWithSource(x, 1, &text, NULL, &err);
        OK(err);
        return p;
}

static void compiling(struct api *a, cl_context other)
{
        cl_program p = make(a->context, "#include \"x.h\"\n"),
                   h = make(a->context, "int x(void) { return 1; }\n");
        cl_program foreign = make(other, "int x(void) { return 1; }\n"), none = NULL;
        const char *name = "x.h", *missing = NULL;
        EXPECT(CL_INVALID_PROGRAM, clCompileProgram(NULL, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 1, NULL, "", 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, a->devices, "", 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_DEVICE,
               clCompileProgram(p, 1, (cl_device_id *)&p, "", 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 0, &h, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 0, NULL, &name, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 1, NULL, &name, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 1, &h, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 1, &h, &missing, NULL, NULL));
        EXPECT(CL_INVALID_PROGRAM, clCompileProgram(p, 0, NULL, "", 1, &none, &name, NULL, NULL));
        EXPECT(CL_INVALID_CONTEXT,
               clCompileProgram(p, 0, NULL, "", 1, &foreign, &name, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, "", 1, &h, &name, NULL, a));
        EXPECT(CL_INVALID_COMPILER_OPTIONS,
               clCompileProgram(p, 0, NULL, "-D", 1, &h, &name, NULL, NULL));
        EXPECT(CL_COMPILE_PROGRAM_FAILURE,
               clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        /* The log has the compiler's words, and no note that the server's disk is full. */
        char log[4096] = "";
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL));
        CHECK(strstr(log, "x.h") && !strstr(log, "full"));
        OK(clCompileProgram(p, 0, NULL, "", 1, &h, &name, NULL, NULL));
        OK(clReleaseProgram(foreign));
        OK(clReleaseProgram(h));
        OK(clReleaseProgram(p));
}

static void linking(struct api *a, cl_context other)
{
        cl_int err;
        cl_program p = make(a->context, source), foreign = make(other, source), none = NULL;
        OK(clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
#define LINK_FAILS(code, ...) EXPECT_ERROR(code, clLinkProgram(__VA_ARGS__, &error))
        LINK_FAILS(CL_INVALID_CONTEXT, NULL, 0, NULL, "", 1, &p, NULL, NULL);
        LINK_FAILS(CL_INVALID_CONTEXT, a->context, 0, NULL, "", 1, &foreign, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 1, NULL, "", 1, &p, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 0, a->devices, "", 1, &p, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 0, NULL, "", 0, NULL, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 0, NULL, "", 0, &p, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 0, NULL, "", 1, NULL, NULL, NULL);
        LINK_FAILS(CL_INVALID_VALUE, a->context, 0, NULL, "", 1, &p, NULL, a);
        LINK_FAILS(CL_INVALID_PROGRAM, a->context, 0, NULL, "", 1, &none, NULL, NULL);
        LINK_FAILS(CL_INVALID_DEVICE, a->context, 1, (cl_device_id *)&p, "", 1, &p, NULL, NULL);
        LINK_FAILS(CL_INVALID_LINKER_OPTIONS, a->context, 0, NULL, "-enable-link-options", 1, &p,
                   NULL, NULL);
        /* One of two has nothing that can be linked. */
        cl_program two[2] = { p, make(a->context, source) };
        LINK_FAILS(CL_INVALID_OPERATION, a->context, 0, NULL, "", 2, two, NULL, NULL);
        /* None has: "no link is performed". */
        cl_program l = clLinkProgram(a->context, 0, NULL, "", 1, &two[1], NULL, NULL, &err);
        OK(err);
        cl_build_status status;
        cl_program_binary_type type;
        OK(clGetProgramBuildInfo(l, a->devices[0], CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                 NULL));
        CHECK(status == CL_BUILD_NONE);
        OK(clReleaseProgram(l));
        OK(clReleaseProgram(two[1]));

        l = clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, NULL, &err);
        OK(err);
        OK(clGetProgramBuildInfo(l, a->devices[0], CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                 NULL));
        CHECK(type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                 NULL));
        CHECK(type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
        /* A build keeps a linked program as it is, because it has no source. */
        OK(clBuildProgram(l, 0, NULL, "", NULL, NULL));
        EXPECT(CL_INVALID_OPERATION, clCompileProgram(l, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        OK(clReleaseProgram(l));
        OK(clReleaseProgram(foreign));
        OK(clReleaseProgram(p));
}

static atomic_bool called;

static void CL_CALLBACK built(cl_program p, void *user)
{
        (void)p;
        (void)user;
        atomic_store(&called, true);
}

static void building(struct api *a)
{
        cl_program p = make(a->context, source);
        cl_bool present;
        size_t size;
        char options[64];
        EXPECT(CL_INVALID_VALUE, clBuildProgram(p, 0, NULL, "", NULL, a));
        EXPECT(CL_INVALID_BUILD_OPTIONS, clBuildProgram(p, 0, NULL, "-I", NULL, NULL));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clGetProgramInfo(p, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, sizeof(present), &present,
                                NULL));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clGetProgramInfo(p, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT, sizeof(present), &present,
                                NULL));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clGetProgramInfo(p, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size));
        EXPECT(CL_INVALID_VALUE, clGetProgramInfo(p, 0x7777, 0, NULL, &size));
        EXPECT(CL_INVALID_VALUE, clGetProgramBuildInfo(p, a->devices[0], 0x7777, 0, NULL, &size));
        EXPECT(CL_INVALID_DEVICE,
               clGetProgramBuildInfo(p, NULL, CL_PROGRAM_BUILD_STATUS, 0, NULL, &size));

        /* The options of the build that goes on, and of one that has ended. A device twice is one. */
        cl_device_id twice[2] = { a->devices[0], a->devices[0] };
        OK(clBuildProgram(p, 2, twice, "-DONE", NULL, NULL));
        OK(clBuildProgram(p, 0, NULL, "-DSECOND", built, NULL));
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BUILD_OPTIONS, sizeof(options),
                                 options, NULL));
        CHECK(!strcmp(options, "-DSECOND"));
        while (!atomic_load(&called))
                usleep(1000);
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BUILD_OPTIONS, sizeof(options),
                                 options, NULL));
        CHECK(!strcmp(options, "-DSECOND"));
        OK(clGetProgramInfo(p, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, sizeof(present), &present,
                            NULL));
        CHECK(!present);

        cl_kernel k = api_kernel(p, "f");
        EXPECT(CL_INVALID_OPERATION, clBuildProgram(p, 0, NULL, "", NULL, NULL));
        EXPECT(CL_INVALID_OPERATION, clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* A kernel knows nothing of a device that its program was not built for. */
static void devices(struct api *a)
{
        if (a->count < 2)
                return;
        cl_program p = make(a->context, source);
        OK(clBuildProgram(p, 1, a->devices, "", NULL, NULL));
        cl_kernel k = api_kernel(p, "f");
        size_t size, one = 1;
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                    &size, NULL));
        EXPECT(CL_INVALID_DEVICE,
               clGetKernelWorkGroupInfo(k, a->devices[1], CL_KERNEL_WORK_GROUP_SIZE, sizeof(size),
                                        &size, NULL));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clEnqueueNDRangeKernel(a->queues[1], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

int main(void)
{
        cl_int err;
        struct api a = api_open(0);
        cl_context other = clCreateContext(NULL, 1, a.devices, NULL, NULL, &err);
        OK(err);
        compiling(&a, other);
        linking(&a, other);
        building(&a);
        devices(&a);
        OK(clReleaseContext(other));
        api_close(&a);
        return 0;
}
