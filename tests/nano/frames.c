/* frames [KEY@]HOST PORT COUNT WIDTH HEIGHT RETRY_MS: the edges of so many pictures by a server, compared with this
 * processor's. Every 20 pictures it prints "frame N" and waits for a byte of input, so that its caller can cut
 * connections between two pictures. At the end of the input it goes on without waiting. At the end it prints how often
 * connections were made again. COUNT 0: it only connects. Any allocation after the start ends it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "connect.h"
#include "edges.h"

enum { SIZE_MAX_BYTES = 192 * 144 };

static unsigned W, H;

static bool forbidden;

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
        !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
void *__libc_malloc(size_t size);
void *malloc(size_t size);
void *malloc(size_t size)
{
        if (forbidden)
                abort();
        return __libc_malloc(size);
}
#endif

static uint64_t arena[24 << 7];
static uint8_t in[2][SIZE_MAX_BYTES], out[2][SIZE_MAX_BYTES];
static char line[4096];

#define check(call)                                                                    \
        do {                                                                           \
                cl_int status_ = (call);                                               \
                if (status_) {                                                         \
                        fprintf(stderr, "%d: status %d: %s\n", __LINE__, (int)status_, \
                                spancl_nano_error());                                  \
                        exit(1);                                                       \
                }                                                                      \
        } while (0)

struct work {
        cl_command_queue queue;
        cl_kernel kernel;
        cl_mem in, out;
        cl_program program;
        cl_context context;
};

static void set_up(struct work *w)
{
        const char *source = EDGES_SOURCE;
        const cl_uint width = W, height = H;
        cl_platform_id platform;
        cl_device_id device;
        cl_int status;
        check(clGetPlatformIDs(1, &platform, NULL));
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        w->context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        check(status);
        w->queue = clCreateCommandQueue(w->context, device, 0, &status);
        check(status);
        w->in = clCreateBuffer(w->context, CL_MEM_READ_ONLY, (size_t)W * H, NULL, &status);
        check(status);
        w->out = clCreateBuffer(w->context, CL_MEM_WRITE_ONLY, (size_t)W * H, NULL, &status);
        check(status);
        w->program = clCreateProgramWithSource(w->context, 1, &source, NULL, &status);
        check(status);
        check(clBuildProgram(w->program, 0, NULL, "-cl-std=CL1.2", NULL, NULL));
        w->kernel = clCreateKernel(w->program, "edges", &status);
        check(status);
        check(clSetKernelArg(w->kernel, 0, sizeof(cl_mem), &w->in));
        check(clSetKernelArg(w->kernel, 1, sizeof(cl_mem), &w->out));
        check(clSetKernelArg(w->kernel, 2, sizeof(width), &width));
        check(clSetKernelArg(w->kernel, 3, sizeof(height), &height));
}

static void frame(const struct work *w, unsigned n)
{
        const size_t size[2] = { W, H };
        uint8_t *from = in[n % 2], *to = out[n % 2];
        cl_event done;
        edges_picture(from, W, H, n);
        check(clEnqueueWriteBuffer(w->queue, w->in, n % 3 == 0, 0, (size_t)W * H, from, 0, NULL,
                                   NULL));
        check(clEnqueueNDRangeKernel(w->queue, w->kernel, 2, NULL, size, NULL, 0, NULL, NULL));
        check(clEnqueueReadBuffer(w->queue, w->out, CL_FALSE, 0, (size_t)W * H, to, 0, NULL,
                                  &done));
        if (n % 16) {
                check(clWaitForEvents(1, &done));
        } else {
                cl_int status = CL_QUEUED;
                while (status > 0)
                        check(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                             sizeof(status), &status, NULL));
                check(status);
        }
        check(clReleaseEvent(done));
        unsigned wrong = edges_wrong(from, to, W, H);
        if (wrong) {
                fprintf(stderr, "frame %u: %u bytes differ\n", n, wrong);
                exit(1);
        }
}

int main(int argc, char **argv)
{
        static struct connect c;
        uint8_t random[32], tls_random[32];
        struct work w;
        FILE *f = fopen("/dev/urandom", "r");
        if (argc != 7 || !f || fread(random, sizeof(random), 1, f) != 1 ||
            fread(tls_random, sizeof(tls_random), 1, f) != 1)
                return 2;
        W = (unsigned)atoi(argv[4]);
        H = (unsigned)atoi(argv[5]);
        if (W * H > SIZE_MAX_BYTES)
                return 2;
        fclose(f);
        setvbuf(stdout, line, _IOLBF, sizeof(line));
        const struct spancl_nano_transport *t = connect_by(&c, argv[1], argv[2], tls_random);
        const cl_int status = spancl_nano_start(
                &(struct spancl_nano_config){ .transport = t,
                                              .arena = arena,
                                              .arena_size = sizeof(arena),
                                              .random = random,
                                              .retry_ms = (unsigned)atoi(argv[6]) });
        if (status)
                connect_explain(&c);
        check(status);
        forbidden = true;
        if (!atoi(argv[3])) {
                printf("resumed %u used %zu\n", spancl_nano_resumed(), spancl_nano_used());
                spancl_nano_stop();
                return 0;
        }
        set_up(&w);
        for (unsigned n = 0; n < (unsigned)atoi(argv[3]); n++) {
                frame(&w, n);
                if (n % 20)
                        continue;
                char go;
                printf("frame %u\n", n);
                if (read(STDIN_FILENO, &go, 1) < 0)
                        return 2;
        }
        check(clFinish(w.queue));
        check(clReleaseKernel(w.kernel));
        check(clReleaseProgram(w.program));
        check(clReleaseMemObject(w.in));
        check(clReleaseMemObject(w.out));
        check(clReleaseCommandQueue(w.queue));
        check(clReleaseContext(w.context));
        printf("resumed %u used %zu\n", spancl_nano_resumed(), spancl_nano_used());
        spancl_nano_stop();
        posix_transport_close(&c.tcp);
        return 0;
}
