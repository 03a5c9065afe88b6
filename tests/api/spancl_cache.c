/* The servers' compile cache (TEST_CACHE is its folder). A program that was built once is built
 * from it again, in this process and in others, with the same information about kernels. The same
 * goes for compiled and linked programs. Damaged entries do no harm; failures are not kept.
 * Devices of the program's own process use the user's cache.
 *
 *   servers: 1 */

#include "api.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77 };

static const char *cache;

/* Number of entries; the path of one of them. */
static int entries(char path[512])
{
        int count = 0;
        DIR *dir = opendir(cache);
        struct dirent *d;
        while (dir && (d = readdir(dir))) {
                size_t n = strlen(d->d_name);
                if (n < 8 || strcmp(d->d_name + n - 8, ".program") != 0)
                        continue;
                CHECK(snprintf(path, 512, "%s/%s", cache, d->d_name) < 512);
                count++;
        }
        if (dir)
                closedir(dir);
        return count;
}

static void await(int count)
{
        char path[512];
        for (int i = 0; i < 6000 && entries(path) < count; i++)
                usleep(10000);
        CHECK(entries(path) == count);
}

static cl_uint run(struct api *a, cl_program p)
{
        cl_kernel k = api_kernel(p, "f");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        size_t one = 1, group = 0;
        cl_uint value = 0, x = 3, args = 0;
        char name[64] = "";
        OK(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL));
        CHECK(args == 3);
        OK(clGetKernelArgInfo(k, 2, CL_KERNEL_ARG_NAME, sizeof(name), name, NULL));
        CHECK(!strcmp(name, "factor"));
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof(group),
                                    &group, NULL));
        CHECK(group > 0);
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 2, 8, &m));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, 64, NULL));
        OK(clSetKernelArg(k, 2, sizeof(x), &x));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        return value;
}

static const char text[] = "#include \"spancl-cache.h\"\n"
                           "kernel void f(global uint *n, local uint *l, uint factor)\n"
                           "{ l[0] = N; n[0] = l[0] * factor; }\n";

static void write_header(const char *folder, int n)
{
        char path[256];
        snprintf(path, sizeof(path), "%s/spancl-cache.h", folder);
        FILE *f = fopen(path, "w");
        CHECK(f);
        fprintf(f, "#define N %d\n", n);
        CHECK(!fclose(f));
}

static void build_and_run(struct api *a, const char *folder, cl_uint expected)
{
        char options[256];
        snprintf(options, sizeof(options), "-cl-kernel-arg-info -I%s", folder);
        cl_program p = api_build(a, text, options);
        CHECK(run(a, p) == expected);
        /* Again with the same program; and with another one. */
        OK(clBuildProgram(p, 0, NULL, options, NULL, NULL));
        CHECK(run(a, p) == expected);
        size_t sizes[API_DEVICES_MAX] = { 0 };
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        CHECK(sizes[0] > 0);
        OK(clReleaseProgram(p));
}

static void in_another_process(const char *self, const char *folder, const char *expected)
{
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                execl(self, self, folder, expected, (char *)NULL);
                _exit(1);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A number that changes when an entry is made anew. */
static uint64_t files(void)
{
        uint64_t sum = 0;
        struct dirent *d;
        DIR *dir = opendir(cache);
        while (dir && (d = readdir(dir)))
                if (d->d_name[0] != '.')
                        sum += d->d_ino * d->d_ino;
        if (dir)
                closedir(dir);
        return sum;
}

static cl_program compiled(struct api *a, const char *source, const char *options)
{
        cl_int err;
        cl_program p = clCreateProgramWithSource(a->context, 1, &source, NULL, &err);
        OK(err);
        OK(clCompileProgram(p, 0, NULL, options, 0, NULL, NULL, NULL, NULL));
        return p;
}

static cl_uint type_of(struct api *a, cl_program p)
{
        cl_uint type = 0;
        OK(clGetProgramBuildInfo(p, a->devices[0], CL_PROGRAM_BINARY_TYPE, sizeof(type), &type,
                                 NULL));
        return type;
}

/* Two compiles, a library of the one, an executable of both: four entries. */
static void link_and_run(struct api *a, const char *options, cl_uint expected)
{
        static const char object[] = "uint times(uint x) { return x * TIMES; }\n";
        static const char whole[] = "uint times(uint);\n"
                                    "kernel void f(global uint *n) { n[0] = times(7); }\n";
        cl_int err;
        cl_program part = compiled(a, object, options), inputs[2] = { compiled(a, whole, "") };
        CHECK(type_of(a, part) == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
        inputs[1] =
                clLinkProgram(a->context, 0, NULL, "-create-library", 1, &part, NULL, NULL, &err);
        OK(err);
        CHECK(type_of(a, inputs[1]) == CL_PROGRAM_BINARY_TYPE_LIBRARY);
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 2, inputs, NULL, NULL, &err);
        OK(err);
        CHECK(type_of(a, linked) == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        cl_kernel k = api_kernel(linked, "f");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, 4, NULL);
        size_t one = 1;
        cl_uint value = 0;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        CHECK(value == expected);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(linked));
        size_t sizes[API_DEVICES_MAX] = { 0 };
        OK(clGetProgramInfo(part, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        CHECK(sizes[0] > 0);
        /* One that came from the cache can be compiled again. */
        OK(clCompileProgram(part, 0, NULL, options, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseProgram(inputs[0]));
        OK(clReleaseProgram(inputs[1]));
        OK(clReleaseProgram(part));
}

/* The devices of this process use a folder of the user's. Nothing is put there for devices that
 * keep compiled programs themselves. */
static void own_devices(const char *self)
{
        char folder[] = "/tmp/spancl-cache-XXXXXX", path[512];
        CHECK(mkdtemp(folder));
        CHECK(!setenv("SPANCL_SERVERS", "in-process", 1) && !setenv("SPANCL_CACHE", folder, 1));
        cache = folder;
        in_another_process(self, "link", "35");
        int count = entries(path);
        CHECK(!count || count == 4);
        uint64_t before = files();
        in_another_process(self, "link", "35");
        CHECK(files() == before);
        for (; count; count--) {
                CHECK(entries(path) == count);
                CHECK(!unlink(path));
        }
        CHECK(!rmdir(folder));
}

static void damage(const char *path)
{
        struct stat st;
        CHECK(!stat(path, &st));
        int fd = open(path, O_RDWR);
        char c;
        CHECK(fd >= 0 && pread(fd, &c, 1, st.st_size / 2) == 1);
        c ^= 1;
        CHECK(pwrite(fd, &c, 1, st.st_size / 2) == 1);
        close(fd);
}

int main(int argc, char **argv)
{
        cache = getenv("TEST_CACHE");
        struct api a = api_open(0);
        if (argc > 2) {
                if (!strcmp(argv[1], "link"))
                        link_and_run(&a, "-DTIMES=5", (cl_uint)atoi(argv[2]));
                else
                        build_and_run(&a, argv[1], (cl_uint)atoi(argv[2]));
                api_close(&a);
                return 0;
        }
        if (!cache || a.count != 1)
                return SKIP;
        char folder[] = "/tmp/spancl-cache-XXXXXX", path[512];
        CHECK(mkdtemp(folder));
        write_header(folder, 5);
        build_and_run(&a, folder, 15);
        await(1);
        build_and_run(&a, folder, 15);
        in_another_process(argv[0], folder, "15");
        CHECK(entries(path) == 1);

        /* Headers count. */
        write_header(folder, 6);
        build_and_run(&a, folder, 18);
        in_another_process(argv[0], folder, "18");
        await(2);
        write_header(folder, 5);
        build_and_run(&a, folder, 15);
        in_another_process(argv[0], folder, "15");

        /* Failures are built again each time, with their log. */
        for (int i = 0; i < 2; i++) {
                const char *wrong = "kernel void f(global uint *n) { n[0] = missing; }\n";
                cl_int err;
                size_t size = 0;
                cl_program p = clCreateProgramWithSource(a.context, 1, &wrong, NULL, &err);
                OK(err);
                EXPECT(CL_BUILD_PROGRAM_FAILURE, clBuildProgram(p, 0, NULL, NULL, NULL, NULL));
                OK(clGetProgramBuildInfo(p, a.devices[0], CL_PROGRAM_BUILD_LOG, 0, NULL, &size));
                CHECK(size > 1);
                OK(clReleaseProgram(p));
        }
        CHECK(entries(path) == 2);

        for (int i = 0; i < 2; i++) {
                entries(path);
                damage(path);
                in_another_process(argv[0], folder, "15");
                await(2);
                write_header(folder, 6);
                in_another_process(argv[0], folder, "18");
                await(2);
                write_header(folder, 5);
        }
        snprintf(path, sizeof(path), "%s/spancl-cache.h", folder);
        CHECK(!unlink(path));
        CHECK(!rmdir(folder));

        int before = entries(path);
        link_and_run(&a, "-DTIMES=5", 35);
        await(before + 4);
        uint64_t made = files();
        link_and_run(&a, "-DTIMES=5", 35);
        in_another_process(argv[0], "link", "35");
        CHECK(entries(path) == before + 4 && files() == made);
        link_and_run(&a, "-DTIMES=6", 42);
        await(before + 7); /* the other object is the same */
        api_close(&a);
        own_devices(argv[0]);
        return 0;
}
