/* uploader MIB SEED [rounds N] [later] [strided] [unchecked]: data that depends on the seed goes to the
 * first device, and comes back, unless `unchecked`. `later`: the write does not block. `strided`:
 * every second KiB of the program's memory goes. Prints the seconds of each round's write. Exit
 * status 0: all was right; 1: a call failed; 3: a byte is wrong. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <CL/cl.h>

enum { KIB = 1024 };

/* A call that fails ends the program with status 1. */
#define OK(call)                                                     \
        do {                                                         \
                cl_int status_ = (call);                             \
                if (status_) {                                       \
                        fprintf(stderr, "%s: %d\n", #call, status_); \
                        _Exit(1);                                    \
                }                                                    \
        } while (0)

struct how {
        size_t size;
        uint64_t seed;
        int rounds, later, strided;
};

/* xorshift64*: no chunk is like another. */
static void fill(uint64_t *words, size_t size, uint64_t seed)
{
        uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
        for (size_t i = 0; i < size / sizeof(*words); i++) {
                x ^= x >> 12;
                x ^= x << 25;
                x ^= x >> 27;
                words[i] = x * 0x2545f4914f6cdd1d;
        }
}

static double seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_all(cl_command_queue q, cl_mem m, const struct how *h, const void *from)
{
        const size_t none[3] = { 0 }, region[3] = { KIB, h->size / KIB, 1 };
        cl_bool blocking = h->later ? CL_FALSE : CL_TRUE;
        if (h->strided)
                OK(clEnqueueWriteBufferRect(q, m, blocking, none, none, region, KIB, 0,
                                            2 * (size_t)KIB, 0, from, 0, NULL, NULL));
        else
                OK(clEnqueueWriteBuffer(q, m, blocking, 0, h->size, from, 0, NULL, NULL));
        if (h->later)
                OK(clFinish(q));
}

static int is_right(const struct how *h, const char *sent, const char *got)
{
        size_t step = h->strided ? 2 * (size_t)KIB : KIB;
        for (size_t i = 0; i < h->size / KIB; i++)
                if (memcmp(sent + i * step, got + i * KIB, KIB) != 0)
                        return 0;
        return 1;
}

static void one_round(cl_context context, cl_command_queue q, const struct how *h, char *sent,
                      char *got)
{
        cl_int r;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, h->size, NULL, &r);
        OK(r);
        double begin = seconds();
        write_all(q, m, h, sent);
        printf("%.3f\n", seconds() - begin);
        if (got) {
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, h->size, got, 0, NULL, NULL));
                if (!is_right(h, sent, got)) {
                        fprintf(stderr, "a byte is wrong\n");
                        _Exit(3);
                }
        }
        OK(clReleaseMemObject(m));
        OK(clFinish(q));
}

int main(int argc, char **argv)
{
        struct how h = { .rounds = 1 };
        int checks = 1;
        if (argc < 3)
                return 1;
        h.size = strtoul(argv[1], NULL, 10) << 20;
        h.seed = strtoul(argv[2], NULL, 10);
        for (int i = 3; i < argc; i++) {
                h.later |= !strcmp(argv[i], "later");
                h.strided |= !strcmp(argv[i], "strided");
                checks &= strcmp(argv[i], "unchecked") != 0;
                if (!strcmp(argv[i], "rounds") && i + 1 < argc)
                        h.rounds = atoi(argv[++i]);
        }
        cl_platform_id platform;
        cl_device_id device;
        cl_int r;
        OK(clGetPlatformIDs(1, &platform, NULL));
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
                OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
        OK(r);
        cl_command_queue q = clCreateCommandQueueWithProperties(context, device, NULL, &r);
        OK(r);
        size_t sent_size = h.strided ? 2 * h.size : h.size;
        char *sent = malloc(sent_size), *got = checks ? malloc(h.size) : NULL;
        if (!sent || (checks && !got))
                return 1;
        fill((uint64_t *)(void *)sent, sent_size, h.seed);
        for (int i = 0; i < h.rounds; i++)
                one_round(context, q, &h, sent, got);
        free(sent);
        free(got);
        OK(clReleaseCommandQueue(q));
        OK(clReleaseContext(context));
        return 0;
}
