/* servers: 1. A source and its headers travel to a server once, however many program objects are
 * made of them, with a callback or without. They do not travel at all to a server that has the
 * build in its cache (TEST_CACHE). The program runs itself and compares the sent bytes
 * (SPANCL_STATS). */
#include <dirent.h>
#include <unistd.h>

#include "api.h"
#include "stats.h"

enum { SKIP = 77, SOURCE_SIZE = 150 << 10, HEADER_SIZE = 200 << 10 };

static void CL_CALLBACK built(cl_program p, void *user)
{
        (void)p;
        OK(clSetUserEventStatus(user, CL_COMPLETE));
}

static void run(const struct api *a, cl_program p, cl_int expected)
{
        size_t one = 1;
        cl_int got = 0;
        cl_kernel k = api_kernel(p, "f");
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, sizeof(got), NULL);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(got), &got, 0, NULL, NULL));
        CHECK(got == expected);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

static int work(int count, const char *folder, const char *options)
{
        struct api a = api_open(0);
        static char source[SOURCE_SIZE + 1];
        memset(source, ' ', SOURCE_SIZE);
        char text[512], all[512];
        int n = snprintf(
                text, sizeof(text),
                "/* %s */\n#include \"x.h\"\nkernel void f(global int *p) { p[0] = X + Y; }\n",
                folder);
        memcpy(source, text, (size_t)n);
        snprintf(all, sizeof(all), "-I%s -DY=4 %s", folder, options);
        for (int i = 0; i < count; i++) {
                cl_int err;
                const char *strings = source;
                cl_program p = clCreateProgramWithSource(a.context, 1, &strings, NULL, &err);
                OK(err);
                if (i % 2) {
                        cl_event done = clCreateUserEvent(a.context, &err);
                        OK(err);
                        OK(clBuildProgram(p, 0, NULL, all, built, done));
                        OK(clWaitForEvents(1, &done));
                        OK(clReleaseEvent(done));
                } else {
                        OK(clBuildProgram(p, 0, NULL, all, NULL, NULL));
                }
                run(&a, p, 11);
                OK(clReleaseProgram(p));
        }
        api_close(&a);
        return 0;
}

/* Bytes to the server, counted by a fresh process that makes `count` programs. */
static long sent(char *self, char *count, char *folder, char *options)
{
        return stats_of((char *[]){ self, count, folder, options, NULL }, "from", "bytes");
}

static int entries(const char *cache)
{
        int count = 0;
        DIR *dir = opendir(cache);
        for (struct dirent *d; dir && (d = readdir(dir));)
                count += strstr(d->d_name, ".program") != NULL;
        if (dir)
                closedir(dir);
        return count;
}

/* How many entries a program's builds are: one for each kind of device. */
static int kinds(void)
{
        struct api a = api_open(0);
        char names[API_DEVICES_MAX][256];
        cl_uint vendors[API_DEVICES_MAX];
        int count = 0;
        for (cl_uint i = 0; i < a.count; i++) {
                int j = 0;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_NAME, sizeof(names[0]), names[count],
                                   NULL));
                /* PoCL counts its devices there. */
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_VENDOR_ID, sizeof(vendors[0]),
                                   &vendors[count], NULL));
                while (strcmp(names[j], names[count]) || vendors[j] != vendors[count])
                        j++;
                count += j == count;
        }
        api_close(&a);
        return count;
}

int main(int argc, char **argv)
{
        if (argc == 4)
                return work(atoi(argv[1]), argv[2], argv[3]);
        const char *cache = getenv("TEST_CACHE");
        if (!cache)
                return SKIP;
        char folder[] = "/tmp/spancl-upload-XXXXXX", path[64];
        CHECK(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/x.h", folder);
        FILE *f = fopen(path, "w");
        CHECK(f && fprintf(f, "#define X 7\n%*s\n", HEADER_SIZE, "") > 0 && !fclose(f));

        int before = entries(cache), builds = kinds();
        long all = SOURCE_SIZE + HEADER_SIZE;
        long many = sent(argv[0], "4", folder, "");
        printf("%ld bytes of sources; sent for four programs: %ld\n", all, many);
        CHECK(many >= all && many < all + all / 2);
        while (entries(cache) < before + builds)
                usleep(10000);
        long known = sent(argv[0], "2", folder, "");
        printf("sent for a build that is in the cache: %ld\n", known);
        CHECK(known < all / 2);
        long other = sent(argv[0], "1", folder, "-DZ");
        printf("sent for another build of it: %ld\n", other);
        CHECK(other >= all && other < all + all / 2);

        CHECK(!unlink(path));
        CHECK(!rmdir(folder));
        return 0;
}
