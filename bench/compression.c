/* Measures blocking writes and reads over slow links, of data that gets smaller and of data
 * that does not. Everything is checked. Prints one JSON object, in MB/s of the application's
 * bytes.
 *
 *     bench_compression words|field|noise|half [COUNT]      half: words and noise in turn, 1 MiB of each */

#include "opencl.h"
#include "samples.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, LARGE = 16 * MIB };

static struct samples samples;

static uint32_t state = 1;

static uint32_t next(void)
{
        state = state * 1664525 + 1013904223;
        return state >> 8;
}

static void put_words(char *to, size_t size)
{
        static const char *const words[] = { "device ",  "buffer ", "kernel ", "of ",   "the ",
                                             "command ", "queue ",  "is ",     "when ", "which ",
                                             "memory ",  "and ",    "host ",   "a ",    "event\n" };
        for (size_t at = 0; at < size;) {
                const char *w = words[next() % (sizeof(words) / sizeof(words[0]))];
                size_t n = strlen(w) < size - at ? strlen(w) : size - at;
                memcpy(to + at, w, n);
                at += n;
        }
}

/* A float field, smooth in a third of it and zero elsewhere. */
static void put_field(char *to, size_t size)
{
        for (size_t i = 0; i < size / sizeof(float); i++) {
                float v = i / 5000 % 3 ? 0 : sinf((float)i * 0.001f);
                memcpy(to + i * sizeof(v), &v, sizeof(v));
        }
}

static void put_noise(char *to, size_t size)
{
        for (size_t i = 0; i < size; i++)
                to[i] = (char)(next() >> 9);
}

static void make(const char *kind, char *to, size_t size)
{
        if (!strcmp(kind, "words")) {
                put_words(to, size);
        } else if (!strcmp(kind, "field")) {
                put_field(to, size);
        } else if (!strcmp(kind, "noise")) {
                put_noise(to, size);
        } else {
                for (size_t at = 0; at < size; at += 2 * MIB) {
                        put_words(to + at, MIB);
                        put_noise(to + at + MIB, MIB);
                }
        }
}

int main(int argc, char **argv)
{
        const char *kind = argc > 1 ? argv[1] : "words";
        int count = argc > 2 ? atoi(argv[2]) : 10;
        char *data = malloc(LARGE), *got = malloc(LARGE);
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        if (!data || !got)
                return 1;
        make(kind, data, LARGE);
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        CHECK(err);
        cl_command_queue q = clCreateCommandQueue(context, device, 0, &err);
        CHECK(err);
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, LARGE, NULL, &err);
        CHECK(err);
        /* The connection is made, and has shown what it can do. */
        CHECK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, LARGE, data, 0, NULL, NULL));
        CHECK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, LARGE, got, 0, NULL, NULL));
        static const struct {
                const char *name;
                size_t size;
                int reads;
        } all[] = { { "write_1m", MIB, 0 },
                    { "read_1m", MIB, 1 },
                    { "write_16m", LARGE, 0 },
                    { "read_16m", LARGE, 1 } };
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
                for (int i = 0; i < count; i++) {
                        memset(got, 0xEE, LARGE);
                        double begin = now_us();
                        if (all[k].reads)
                                CHECK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, all[k].size, got, 0,
                                                          NULL, NULL));
                        else
                                CHECK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, all[k].size, data, 0,
                                                           NULL, NULL));
                        samples_add(&samples, (double)all[k].size / (now_us() - begin));
                        if (all[k].reads && memcmp(got, data, all[k].size) != 0) {
                                fprintf(stderr,
                                        "bench_compression: the bytes are not those written\n");
                                return 1;
                        }
                }
                samples_print(&samples, all[k].name, "MB/s");
        }
        printf("\n}\n");
        CHECK(clReleaseMemObject(m));
        CHECK(clReleaseCommandQueue(q));
        CHECK(clReleaseContext(context));
        free(data);
        free(got);
        return 0;
}
