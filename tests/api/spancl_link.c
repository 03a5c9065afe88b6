/* Compiling and linking in steps: headers that are programs, libraries, several inputs, callbacks,
 * some of the devices, binaries of objects and libraries, also in another process, and what is to be
 * refused. Skipped where a device has no linker.
 * servers: 2 */

#include "api.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77 };

static cl_program make(struct api *a, const char *text)
{
        cl_int err;
        cl_program p = clCreateProgramWithSource(a->context, 1, &text, NULL, &err);
        OK(err);
        return p;
}

static cl_program compiled(struct api *a, const char *text, const char *options)
{
        cl_program p = make(a, text);
        OK(clCompileProgram(p, 0, NULL, options, 0, NULL, NULL, NULL, NULL));
        return p;
}

static cl_program_binary_type type_of(cl_program p, cl_device_id d)
{
        cl_program_binary_type type = 99;
        OK(clGetProgramBuildInfo(p, d, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, NULL));
        return type;
}

static cl_build_status status_of(cl_program p, cl_device_id d)
{
        cl_build_status s = 99;
        OK(clGetProgramBuildInfo(p, d, CL_PROGRAM_BUILD_STATUS, sizeof(s), &s, NULL));
        return s;
}

static void run_all(struct api *a, cl_program p, cl_uint expected)
{
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(api_run(a, i, p) == expected);
}

/* One header includes another, and both are in folders that there are not. */
static void headers(struct api *a)
{
        cl_program p = make(a, "#include \"one.h\"\n#include <deep/two.h>\n"
                               "kernel void f(global uint *n) { n[0] = ONE + TWO; }\n");
        cl_program parts[3] = { make(a, "#include \"deep/two.h\"\n#define ONE (TWO + 1)\n"),
                                make(a, "#ifndef TWO_H\n#define TWO_H\n#include \"three.h\"\n"
                                        "#define TWO (20 + THREE)\n#endif\n"),
                                make(a, "#define THREE 3\n") };
        const char *names[3] = { "one.h", "deep/two.h", "three.h" };
        OK(clCompileProgram(p, 0, NULL, "-DX", 3, parts, names, NULL, NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                CHECK(type_of(p, a->devices[i]) == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
                CHECK(status_of(p, a->devices[i]) == CL_BUILD_SUCCESS);
        }
        EXPECT_ERROR(CL_INVALID_PROGRAM_EXECUTABLE, clCreateKernel(p, "f", &error));
        cl_int err;
        cl_program linked = clLinkProgram(a->context, 0, NULL, NULL, 1, &p, NULL, NULL, &err);
        OK(err);
        run_all(a, linked, 47);
        OK(clReleaseProgram(linked));
        /* A program that was compiled may be compiled again, and built. */
        cl_program other = make(a, "#define THREE 4\n");
        OK(clReleaseProgram(parts[2]));
        parts[2] = other;
        OK(clCompileProgram(p, 0, NULL, NULL, 3, parts, names, NULL, NULL));
        linked = clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, NULL, &err);
        OK(err);
        run_all(a, linked, 49);
        OK(clReleaseProgram(linked));
        EXPECT(CL_COMPILE_PROGRAM_FAILURE,
               clCompileProgram(p, 0, NULL, NULL, 2, parts, names, NULL, NULL));
        CHECK(status_of(p, a->devices[0]) == CL_BUILD_ERROR);
        for (int i = 0; i < 3; i++)
                OK(clReleaseProgram(parts[i]));
        OK(clReleaseProgram(p));
}

static cl_program link_library(struct api *a, cl_program *objects, cl_uint count)
{
        cl_int err;
        cl_program library = clLinkProgram(a->context, 0, NULL, "-create-library", count, objects,
                                           NULL, NULL, &err);
        OK(err);
        return library;
}

static const char main_text[] = "uint g(uint); uint h(uint);\n"
                                "kernel void f(global uint *n) { n[0] = g(3) + h(4); }\n";

static void libraries(struct api *a)
{
        cl_int err;
        cl_program objects[2] = { compiled(a, "uint g(uint x) { return x * 10; }\n", ""),
                                  compiled(a, "uint h(uint x) { return x * K; }\n", "-DK=100") };
        cl_program inputs[2] = { compiled(a, main_text, NULL), link_library(a, objects, 2) };
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(type_of(inputs[1], a->devices[i]) == CL_PROGRAM_BINARY_TYPE_LIBRARY);
        EXPECT_ERROR(CL_INVALID_PROGRAM_EXECUTABLE, clCreateKernel(inputs[1], "f", &error));
        cl_program linked =
                clLinkProgram(a->context, a->count, a->devices, "", 2, inputs, NULL, NULL, &err);
        OK(err);
        for (int i = 0; i < 2; i++) {
                OK(clReleaseProgram(objects[i]));
                OK(clReleaseProgram(inputs[i]));
        }
        CHECK(type_of(linked, a->devices[0]) == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        run_all(a, linked, 430);
        size_t count;
        char names[16];
        OK(clGetProgramInfo(linked, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, NULL));
        OK(clGetProgramInfo(linked, CL_PROGRAM_KERNEL_NAMES, sizeof(names), names, NULL));
        CHECK(count == 1 && !strcmp(names, "f"));
        OK(clBuildProgram(linked, 0, NULL, NULL, NULL, NULL));
        run_all(a, linked, 430);
        EXPECT(CL_INVALID_OPERATION,
               clCompileProgram(linked, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseProgram(linked));
}

static atomic_int called;
static _Atomic cl_program called_with;

static void CL_CALLBACK done(cl_program p, void *user)
{
        CHECK(user == &called);
        atomic_store(&called_with, p);
        atomic_fetch_add(&called, 1);
}

static void await(int count)
{
        for (int i = 0; i < 60000 && atomic_load(&called) < count; i++)
                usleep(1000);
        CHECK(atomic_load(&called) == count);
}

static void callbacks(struct api *a)
{
        cl_int err;
        cl_program p = make(a, "kernel void f(global uint *n) { n[0] = 5; }\n");
        OK(clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, done, &called));
        await(1);
        CHECK(atomic_load(&called_with) == p && status_of(p, a->devices[0]) == CL_BUILD_SUCCESS);
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 1, &p, done, &called, &err);
        OK(err);
        CHECK(linked);
        OK(clReleaseProgram(p));
        await(2);
        CHECK(atomic_load(&called_with) == linked);
        run_all(a, linked, 5);
        OK(clReleaseProgram(linked));
}

/* A link that fails returns a program nevertheless; its log has the reason. */
static void unresolved(struct api *a)
{
        cl_int err;
        cl_program p = compiled(a, main_text, NULL);
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, NULL, &err);
        /* Some leave it to the first launch. */
        if (err != CL_SUCCESS) {
                EXPECT(CL_LINK_PROGRAM_FAILURE, err);
                CHECK(linked && status_of(linked, a->devices[0]) == CL_BUILD_ERROR);
                EXPECT_ERROR(CL_INVALID_PROGRAM_EXECUTABLE, clCreateKernel(linked, "f", &error));
        }
        if (linked)
                OK(clReleaseProgram(linked));
        OK(clReleaseProgram(p));
}

static void some_devices(struct api *a)
{
        cl_int err;
        if (a->count < 2)
                return;
        cl_device_id last = a->devices[a->count - 1];
        cl_program p = make(a, "kernel void f(global uint *n) { n[0] = 6; }\n");
        OK(clCompileProgram(p, 1, &last, NULL, 0, NULL, NULL, NULL, NULL));
        CHECK(status_of(p, a->devices[0]) == CL_BUILD_NONE);
        CHECK(type_of(p, a->devices[0]) == CL_PROGRAM_BINARY_TYPE_NONE);
        CHECK(type_of(p, last) == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
        cl_program both[2] = { p, compiled(a, "uint g(void) { return 1; }\n", NULL) };
        /* For the first device one has an object, the other none. */
        EXPECT_ERROR(CL_INVALID_OPERATION,
                     clLinkProgram(a->context, 0, NULL, "", 2, both, NULL, NULL, &error));
        cl_program linked = clLinkProgram(a->context, 1, &last, "", 2, both, NULL, NULL, &err);
        OK(err);
        cl_uint count;
        OK(clGetProgramInfo(linked, CL_PROGRAM_NUM_DEVICES, sizeof(count), &count, NULL));
        CHECK(count == 1);
        CHECK(api_run(a, a->count - 1, linked) == 6);
        OK(clReleaseProgram(linked));
        /* For all devices: those without an object get no executable. */
        linked = clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, NULL, &err);
        OK(err);
        CHECK(status_of(linked, a->devices[0]) == CL_BUILD_NONE);
        CHECK(api_run(a, a->count - 1, linked) == 6);
        cl_kernel k = api_kernel(linked, "f");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        size_t one = 1;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
               clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(linked));
        OK(clReleaseProgram(both[1]));
        OK(clReleaseProgram(p));
}

static void errors(struct api *a)
{
        cl_program p = make(a, main_text), header = make(a, "");
        const char *name = "h.h";
        EXPECT(CL_INVALID_PROGRAM,
               clCompileProgram(NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, NULL, 1, NULL, &name, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, NULL, 1, &header, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, NULL, 0, &header, &name, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 1, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clCompileProgram(p, 0, a->devices, NULL, 0, NULL, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, NULL, &called));
        EXPECT_ERROR(CL_INVALID_CONTEXT,
                     clLinkProgram(NULL, 0, NULL, "", 1, &p, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clLinkProgram(a->context, 0, NULL, "", 0, NULL, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clLinkProgram(a->context, 1, NULL, "", 1, &p, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clLinkProgram(a->context, 0, NULL, "", 1, &p, NULL, &called, &error));
        cl_program broken = make(a, "kernel void f(global uint *n) { n[0] = NOTHING; }\n");
        EXPECT(CL_COMPILE_PROGRAM_FAILURE,
               clCompileProgram(broken, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        size_t size = 0;
        OK(clGetProgramBuildInfo(broken, a->devices[0], CL_PROGRAM_BUILD_LOG, 0, NULL, &size));
        CHECK(size > 1);
        OK(clReleaseProgram(broken));
        cl_program built = make(a, "kernel void f(global uint *n) { n[0] = 1; }\n");
        OK(clBuildProgram(built, 0, NULL, NULL, NULL, NULL));
        cl_kernel k = api_kernel(built, "f");
        EXPECT(CL_INVALID_OPERATION,
               clCompileProgram(built, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(built));
        OK(clReleaseProgram(header));
        OK(clReleaseProgram(p));
}

/* ---- binaries ------------------------------------------------------------------------------- */

static cl_program from_binaries(struct api *a, size_t *sizes, unsigned char **data,
                                cl_program_binary_type type)
{
        cl_int err, status[API_DEVICES_MAX];
        cl_program p = clCreateProgramWithBinary(a->context, a->count, a->devices, sizes,
                                                 (const unsigned char **)data, status, &err);
        OK(err);
        for (cl_uint i = 0; i < a->count; i++)
                CHECK(type_of(p, a->devices[i]) == type);
        return p;
}

static void save(struct api *a, cl_program p, FILE *f)
{
        size_t sizes[API_DEVICES_MAX];
        unsigned char *data[API_DEVICES_MAX];
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                CHECK(sizes[i] > 0);
                data[i] = malloc(sizes[i]);
                CHECK(data[i]);
        }
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(data), data, NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                CHECK(fwrite(&sizes[i], sizeof(sizes[i]), 1, f) == 1);
                CHECK(fwrite(data[i], 1, sizes[i], f) == sizes[i]);
                free(data[i]);
        }
}

static cl_program load(struct api *a, FILE *f, cl_program_binary_type type)
{
        size_t sizes[API_DEVICES_MAX];
        unsigned char *data[API_DEVICES_MAX];
        for (cl_uint i = 0; i < a->count; i++) {
                CHECK(fread(&sizes[i], sizeof(sizes[i]), 1, f) == 1);
                data[i] = malloc(sizes[i]);
                CHECK(data[i] && fread(data[i], 1, sizes[i], f) == sizes[i]);
        }
        cl_program p = from_binaries(a, sizes, data, type);
        for (cl_uint i = 0; i < a->count; i++)
                free(data[i]);
        return p;
}

/* An object and a library of this process; another one links and runs them. */
static void binaries_write(struct api *a, const char *path)
{
        cl_program objects[2] = { compiled(a, "uint g(uint x) { return x * 2; }\n", ""),
                                  compiled(a, "uint h(uint x) { return x * 3; }\n", "") };
        cl_program library = link_library(a, objects, 2), object = compiled(a, main_text, NULL);
        FILE *f = fopen(path, "wb");
        CHECK(f);
        save(a, object, f);
        save(a, library, f);
        CHECK(!fclose(f));
        OK(clReleaseProgram(objects[0]));
        OK(clReleaseProgram(objects[1]));
        OK(clReleaseProgram(library));
        OK(clReleaseProgram(object));
}

static void binaries_read(struct api *a, const char *path)
{
        cl_int err;
        FILE *f = fopen(path, "rb");
        CHECK(f);
        cl_program inputs[2];
        inputs[0] = load(a, f, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
        inputs[1] = load(a, f, CL_PROGRAM_BINARY_TYPE_LIBRARY);
        CHECK(!fclose(f));
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 2, inputs, NULL, NULL, &err);
        OK(err);
        run_all(a, linked, 18);
        OK(clReleaseProgram(linked));
        OK(clReleaseProgram(inputs[0]));
        OK(clReleaseProgram(inputs[1]));
}

static void binaries(struct api *a, const char *self)
{
        char path[] = "/tmp/spancl-link-XXXXXX";
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        close(fd);
        binaries_write(a, path);
        binaries_read(a, path);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                execl(self, self, path, (char *)NULL);
                _exit(1);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(!unlink(path));
}

int main(int argc, char **argv)
{
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_bool linker = CL_FALSE;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_LINKER_AVAILABLE, sizeof(linker),
                                   &linker, NULL));
                if (!linker)
                        return SKIP;
        }
        if (argc > 1) {
                binaries_read(&a, argv[1]);
                api_close(&a);
                return 0;
        }
        headers(&a);
        libraries(&a);
        callbacks(&a);
        unresolved(&a);
        some_devices(&a);
        errors(&a);
        binaries(&a, argv[0]);
        api_close(&a);
        return 0;
}
