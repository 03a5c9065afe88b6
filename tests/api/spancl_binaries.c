/* A program's binary is the native implementation's. A binary from a native run works here, and
 * the other way round. The program runs itself without SpanCL for the native part.
 *
 *   servers: 1 */
#include "api.h"

#include <sys/wait.h>

enum { MAX = 1 << 20, EXPECTED = 42 };

static const char source[] = "kernel void f(global uint *n) { n[0] = 42; }\n";

/* The first device that is not SpanCL's; with `spancl` the first that is. */
static struct api open_one(int spancl)
{
        struct api a = { .count = 1 };
        cl_platform_id all[8];
        cl_uint count = 0;
        cl_int err;
        OK(clGetPlatformIDs(8, all, &count));
        for (cl_uint i = 0; i < count && i < 8 && !a.devices[0]; i++) {
                char name[64] = "";
                OK(clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(name), name, NULL));
                if ((strcmp(name, "SpanCL") == 0) == spancl)
                        OK(clGetDeviceIDs(all[i], CL_DEVICE_TYPE_ALL, 1, a.devices, NULL));
        }
        CHECK(a.devices[0]);
        a.context = clCreateContext(NULL, 1, a.devices, NULL, NULL, &err);
        OK(err);
        a.queues[0] = clCreateCommandQueue(a.context, a.devices[0], 0, &err);
        OK(err);
        return a;
}

static void make(struct api *a, const char *path)
{
        size_t size = 0;
        cl_program p = api_build(a, source, "");
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
        CHECK(size && size <= MAX);
        unsigned char *binary = malloc(size);
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(binary, 1, size, f) == size && !fclose(f));
        free(binary);
        OK(clReleaseProgram(p));
}

static void use(struct api *a, const char *path)
{
        unsigned char *binary = malloc(MAX);
        const unsigned char *given = binary;
        FILE *f = fopen(path, "rb");
        CHECK(f);
        size_t size = fread(binary, 1, MAX, f);
        fclose(f);
        cl_int err, status = 1;
        cl_program p =
                clCreateProgramWithBinary(a->context, 1, a->devices, &size, &given, &status, &err);
        OK(err);
        OK(status);
        cl_program_binary_type type = 0;
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                 NULL));
        CHECK(type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        OK(clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
        CHECK(api_run(a, 0, p) == EXPECTED);
        OK(clReleaseProgram(p));
        free(binary);
}

/* This program, without SpanCL. */
static void natively(char *self, const char *what, const char *path)
{
        /* PoCL's processes disturb each other in a cache that they share. */
        char cache[] = "/tmp/spancl-pocl-XXXXXX", command[64];
        CHECK(mkdtemp(cache));
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
                setenv("POCL_CACHE_DIR", cache, 1);
                unsetenv("OCL_ICD_VENDORS");
                unsetenv("SPANCL_SERVERS");
                unsetenv("TEST_LEAKS");
                execl(self, self, what, path, (char *)NULL);
                _exit(1);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child);
        snprintf(command, sizeof(command), "rm -rf %s", cache);
        CHECK(system(command) == 0);
        CHECK(status == 0);
}

int main(int argc, char **argv)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return 77; /* sanitizers do not know native implementations */
#endif
        struct api a;
        char path[] = "/tmp/spancl-binary-XXXXXX";
        if (argc == 3) {
                a = open_one(0);
                (!strcmp(argv[1], "make") ? make : use)(&a, argv[2]);
                api_close(&a);
                return 0;
        }
        int fd = mkstemp(path);
        CHECK(fd >= 0 && !close(fd));
        natively(argv[0], "make", path);
        a = open_one(1);
        use(&a, path);
        make(&a, path);
        api_close(&a);
        natively(argv[0], "use", path);
        CHECK(!unlink(path));
        return 0;
}
