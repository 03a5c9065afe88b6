/* Programs: from source with options, -D and the program's own header files; with errors in them;
 * from their binary; compiled and linked; and the errors of wrong arguments, at once.
 * servers: 2 */

#include "api.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *folder, const char *name, const char *text)
{
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static cl_uint run(struct api *a, cl_uint device, cl_program program, const char *name)
{
        cl_uint n = 0;
        cl_kernel k = api_kernel(program, name);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, sizeof(n), NULL);
        size_t one = 1;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[device], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[device], m, CL_TRUE, 0, sizeof(n), &n, 0, NULL, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseMemObject(m));
        return n;
}

static void includes(struct api *a)
{
        char folder[] = "/tmp/spancl-program-XXXXXX";
        CHECK(mkdtemp(folder));
        char inner[512];
        snprintf(inner, sizeof(inner), "%s/inner", folder);
        CHECK(mkdir(inner, 0700) == 0);
        write_file(folder, "one.h", "#include \"inner/two.h\"\n#define ONE (1 + TWO)\n");
        write_file(inner, "two.h", "#define TWO 20\n");
        write_file(inner, "three.h", "#define THREE 300\n");
        char options[1200];
        snprintf(options, sizeof(options), "-I %s -DX=4000 -D NAME=inner/three.h", folder);
        cl_program program = api_build(a,
                                       "#include \"one.h\"\n"
                                       "#define STRING(x) #x\n#define TEXT(x) STRING(x)\n"
                                       "#include TEXT(NAME)\n"
                                       "__kernel void f(__global uint *n) {"
                                       " n[0] = ONE + THREE + X; }\n",
                                       options);
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(run(a, i, program, "f") == 4321);
        OK(clReleaseProgram(program));
        char command[600];
        snprintf(command, sizeof(command), "rm -r %s", folder);
        CHECK(system(command) == 0);
}

static void errors(struct api *a)
{
        cl_int err;
        const char *text = "__kernel void f(__global uint *n) { n[0] = no_such_name; }\n";
        cl_program program = clCreateProgramWithSource(a->context, 1, &text, NULL, &err);
        OK(err);
        EXPECT(CL_BUILD_PROGRAM_FAILURE, clBuildProgram(program, 0, NULL, "", NULL, NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                cl_build_status status;
                OK(clGetProgramBuildInfo(program, a->devices[i], CL_PROGRAM_BUILD_STATUS,
                                         sizeof(status), &status, NULL));
                CHECK(status == CL_BUILD_ERROR);
                char log[16384] = "";
                size_t size = 0;
                OK(clGetProgramBuildInfo(program, a->devices[i], CL_PROGRAM_BUILD_LOG, 0, NULL,
                                         &size));
                CHECK(size <= sizeof(log));
                OK(clGetProgramBuildInfo(program, a->devices[i], CL_PROGRAM_BUILD_LOG, sizeof(log),
                                         log, NULL));
                CHECK(strstr(log, "no_such_name"));
        }
        clCreateKernel(program, "f", &err);
        CHECK(err == CL_INVALID_PROGRAM_EXECUTABLE);
        OK(clReleaseProgram(program));
}

static void arguments(struct api *a)
{
        cl_int err;
        cl_program program =
                api_build(a,
                          "typedef struct { int a; float b[3]; } s;\n"
                          "__kernel void f(__global uint *n, __local uint *l, int x, s y,"
                          " float4 z, __constant uint *c) { l[0] = x;"
                          " n[0] = l[0] + y.a + (uint)z.w + c[0]; }\n"
                          "__kernel void g(__global uint *n) { n[0] = 1; }\n",
                          "-cl-kernel-arg-info");
        clCreateKernel(program, "h", &err);
        CHECK(err == CL_INVALID_KERNEL_NAME);
        cl_kernel all[2];
        cl_uint count = 0;
        OK(clCreateKernelsInProgram(program, 2, all, &count));
        CHECK(count == 2);
        OK(clReleaseKernel(all[0]));
        OK(clReleaseKernel(all[1]));

        cl_kernel k = api_kernel(program, "f");
        cl_uint args = 0;
        OK(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL));
        CHECK(args == 6);
        cl_uint n = 0;
        cl_uint c = 1000;
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(n), &n);
        cl_mem mc = api_buffer(a, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(c), &c);
        cl_int x = 1;
        struct {
                cl_int a;
                cl_float b[3];
        } y = { 20, { 0 } };
        cl_float4 z = { { 0, 0, 0, 300 } };
        size_t one = 1;
        EXPECT(CL_INVALID_ARG_INDEX, clSetKernelArg(k, 6, sizeof(x), &x));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 2, 8, &x));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, sizeof(m) / 2, &m));
        EXPECT(CL_INVALID_KERNEL_ARGS,
               clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, 16, NULL));
        OK(clSetKernelArg(k, 2, sizeof(x), &x));
        OK(clSetKernelArg(k, 3, sizeof(y), &y));
        OK(clSetKernelArg(k, 4, sizeof(z), &z));
        OK(clSetKernelArg(k, 5, sizeof(mc), &mc));
        for (cl_uint i = 0; i < a->count; i++) {
                n = 0;
                OK(clEnqueueNDRangeKernel(a->queues[i], k, 1, NULL, &one, NULL, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, sizeof(n), &n, 0, NULL, NULL));
                CHECK(n == 1321);
        }
        char name[64] = "";
        OK(clGetKernelArgInfo(k, 2, CL_KERNEL_ARG_NAME, sizeof(name), name, NULL));
        CHECK(strcmp(name, "x") == 0);
        OK(clGetKernelArgInfo(k, 4, CL_KERNEL_ARG_TYPE_NAME, sizeof(name), name, NULL));
        CHECK(strcmp(name, "float4") == 0);
        size_t group = 0;
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof(group),
                                    &group, NULL));
        CHECK(group > 0);
        size_t two[1] = { 2 };
        size_t three[1] = { 3 };
        EXPECT(CL_INVALID_WORK_DIMENSION,
               clEnqueueNDRangeKernel(a->queues[0], k, 4, NULL, two, NULL, 0, NULL, NULL));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE,
               clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, three, two, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(mc));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
}

static void binaries(struct api *a)
{
        cl_int err;
        cl_program program = api_build(a, "__kernel void f(__global uint *n) { n[0] = 77; }\n", "");
        size_t sizes[API_DEVICES_MAX];
        unsigned char *binaries[API_DEVICES_MAX];
        OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(sizes[0]) * a->count, sizes,
                            NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                CHECK(sizes[i] > 0);
                binaries[i] = malloc(sizes[i]);
                CHECK(binaries[i]);
        }
        OK(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binaries[0]) * a->count, binaries,
                            NULL));
        OK(clReleaseProgram(program));
        cl_int status[API_DEVICES_MAX];
        program = clCreateProgramWithBinary(a->context, a->count, a->devices, sizes,
                                            (const unsigned char **)binaries, status, &err);
        OK(err);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(run(a, i, program, "f") == 77);
        OK(clReleaseProgram(program));
        for (cl_uint i = 0; i < a->count; i++)
                free(binaries[i]);
}

static void compile_and_link(struct api *a)
{
        cl_int err;
        for (cl_uint i = 0; i < a->count; i++) {
                cl_bool linker = CL_FALSE;
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_LINKER_AVAILABLE, sizeof(linker),
                                   &linker, NULL));
                if (!linker)
                        return;
        }
        const char *main_text = "#include <value.h>\nuint g(void);\n"
                                "__kernel void f(__global uint *n) { n[0] = VALUE + g(); }\n";
        const char *lib_text = "uint g(void) { return 5; }\n";
        const char *header_text = "#define VALUE 60\n";
        cl_program parts[2];
        parts[0] = clCreateProgramWithSource(a->context, 1, &main_text, NULL, &err);
        OK(err);
        parts[1] = clCreateProgramWithSource(a->context, 1, &lib_text, NULL, &err);
        OK(err);
        cl_program header = clCreateProgramWithSource(a->context, 1, &header_text, NULL, &err);
        OK(err);
        const char *name = "value.h";
        OK(clCompileProgram(parts[0], 0, NULL, "", 1, &header, &name, NULL, NULL));
        OK(clCompileProgram(parts[1], 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 2, parts, NULL, NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(run(a, i, linked, "f") == 65);
        OK(clReleaseProgram(linked));
        OK(clReleaseProgram(header));
        OK(clReleaseProgram(parts[0]));
        OK(clReleaseProgram(parts[1]));
}

int main(void)
{
        struct api a = api_open(0);
        includes(&a);
        errors(&a);
        arguments(&a);
        binaries(&a);
        compile_and_link(&a);
        api_close(&a);
        return 0;
}
