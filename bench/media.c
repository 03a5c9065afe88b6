/* media CODEC PACKETS ROUNDS [FLAGS]: decodes a stream on the first media device, over and over, with these
 * flags (docs/MEDIA.md). Prints the seconds of each round, and those of this process's processors. Pictures
 * go to a few buffers in turn; nothing reads them. PACKETS: access units, each behind its size (32 bits).
 * bench/media.py compares with ffmpeg. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "opencl.h"
#include "packets.h"

enum { PACKETS_MAX = 4096, PICTURES = 4, ROOM = 16 << 20, RESET = 1, FLUSH = 2 };

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static cl_mem buffer_of(size_t size, void *bytes)
{
        cl_int err;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE | (bytes ? CL_MEM_COPY_HOST_PTR : 0),
                                  size, bytes, &err);
        check(err, "clCreateBuffer");
        return m;
}

static void open_device(const char *codec)
{
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        char name[64];
        CHECK(clGetPlatformIDs(1, &platform, NULL));
        CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, NULL));
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        snprintf(name, sizeof(name), "org.spancl.decode.%s", codec);
        cl_program program = clCreateProgramWithBuiltInKernels(context, 1, &device, name, &err);
        check(err, "clCreateProgramWithBuiltInKernels");
        kernel = clCreateKernel(program, name, &err);
        check(err, "clCreateKernel");
}

static void decode(cl_mem packet, cl_mem picture, cl_uint flags)
{
        size_t one = 1;
        CHECK(clSetKernelArg(kernel, 0, sizeof(packet), &packet));
        CHECK(clSetKernelArg(kernel, 2, sizeof(picture), &picture));
        CHECK(clSetKernelArg(kernel, 7, sizeof(flags), &flags));
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
        static cl_mem packets[PACKETS_MAX];
        cl_mem pictures[PICTURES];
        cl_int words[8];
        cl_uint format = 0;
        size_t count = 0, size;
        if (argc != 4 && argc != 5)
                return 2;
        cl_uint flags = argc == 5 ? (cl_uint)atoi(argv[4]) : 0;
        open_device(argv[1]);
        uint8_t *bytes = read_file(argv[2], &size);
        for (size_t at = 0; at < size && count < PACKETS_MAX; count++) {
                uint32_t n;
                memcpy(&n, bytes + at, 4);
                packets[count] = buffer_of(n, bytes + at + 4);
                at += 4 + n;
        }
        cl_mem none = NULL, status = buffer_of(sizeof(words), NULL), stream = buffer_of(8, NULL);
        for (size_t i = 0; i < PICTURES; i++)
                pictures[i] = buffer_of(ROOM, NULL);
        CHECK(clSetKernelArg(kernel, 1, sizeof(none), &none));
        CHECK(clSetKernelArg(kernel, 3, sizeof(none), &none));
        CHECK(clSetKernelArg(kernel, 4, sizeof(status), &status));
        CHECK(clSetKernelArg(kernel, 5, sizeof(stream), &stream));
        CHECK(clSetKernelArg(kernel, 6, sizeof(format), &format));
        for (int round = 0; round < atoi(argv[3]); round++) {
                double begin = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
                for (size_t i = 0; i < count; i++)
                        decode(packets[i], pictures[i % PICTURES], flags | (i ? 0 : RESET));
                do {
                        decode(NULL, pictures[0], flags | FLUSH);
                        CHECK(clEnqueueReadBuffer(queue, status, CL_TRUE, 0, sizeof(words), words,
                                                  0, NULL, NULL));
                } while (words[0] == 0);
                double end = seconds(CLOCK_MONOTONIC);
                /* A picture for each packet; else something was not decoded. */
                if ((size_t)words[5] != count) {
                        fprintf(stderr, "%d pictures of %zu packets\n", words[5], count);
                        return 1;
                }
                printf("%.4f %.4f\n", end - begin, seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
                fflush(stdout);
        }
        return 0;
}
