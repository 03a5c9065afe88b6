/* A picture rendered by all devices of a platform, in one context. Bands of rows go round the
 * devices, and each device blurs the bands that it has rendered. The first device gathers the bands
 * and finishes the picture, which is written as PNG. Plain OpenCL 1.2: nothing here knows SpanCL. */

#include <CL/cl.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/picture.h"

#define DEVICES_MAX 64
#define BANDS_MAX   256
#define GLOW_RADIUS 24

struct options {
        const char *kernels; /* folder of bridge.cl */
        const char *output;
        const char *platform; /* part of a name, NULL: the first platform with devices */
        int width;
        int height;
        int samples;
        int bounces;
        int bands;
};

struct device {
        cl_device_id id;
        cl_command_queue queue;
        char name[256];
        int rows;
        double busy_ms;
};

struct band {
        int device;
        int first_row;
        int rows;
        cl_mem light;
        cl_mem glow;
        cl_event rendered;
        cl_event blurred;
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fprintf(stderr, "bridge: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
        exit(1);
}

static void check(cl_int err, const char *what)
{
        if (err != CL_SUCCESS)
                die("%s: error %d", what, err);
}

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static char *read_file(const char *folder, const char *name)
{
        char *path;
        if (asprintf(&path, "%s/%s", folder, name) < 0)
                die("out of memory");
        FILE *f = fopen(path, "rb");
        if (!f)
                die("%s: %s", path, strerror(errno));
        fseek(f, 0, SEEK_END);
        long size = ftell(f);
        rewind(f);
        char *text = calloc(1, (size_t)size + 1);
        if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
                die("%s: cannot read", path);
        fclose(f);
        free(path);
        return text;
}

static uint64_t fingerprint(const uint8_t *data, size_t size)
{
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t i = 0; i < size; i++)
                h = (h ^ data[i]) * 0x100000001b3u;
        return h;
}

static cl_platform_id choose_platform(const char *wanted, char *name, size_t name_size)
{
        cl_platform_id platforms[16];
        cl_uint count = 0;
        check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
        if (count > 16)
                count = 16;
        for (cl_uint i = 0; i < count; i++) {
                cl_uint devices = 0;
                check(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, name_size, name, NULL),
                      "clGetPlatformInfo");
                if (wanted && !strstr(name, wanted))
                        continue;
                if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &devices) ==
                            CL_SUCCESS &&
                    devices > 0)
                        return platforms[i];
        }
        die("no platform with devices");
}

static cl_program build(cl_context context, const char *folder)
{
        cl_int err;
        char *source = read_file(folder, "bridge.cl");
        cl_program program =
                clCreateProgramWithSource(context, 1, (const char *[]){ source }, NULL, &err);
        check(err, "clCreateProgramWithSource");
        char *options;
        if (asprintf(&options, "-I %s", folder) < 0)
                die("out of memory");
        err = clBuildProgram(program, 0, NULL, options, NULL, NULL);
        if (err == CL_BUILD_PROGRAM_FAILURE) {
                cl_device_id device;
                char log[8192] = "";
                clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(device), &device, NULL);
                clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log,
                                      NULL);
                die("the kernels do not build:\n%s", log);
        }
        check(err, "clBuildProgram");
        free(options);
        free(source);
        return program;
}

static void set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
        check(clSetKernelArg(kernel, index, size, value), "clSetKernelArg");
}

static void launch(cl_command_queue queue, cl_kernel kernel, int width, int rows, cl_uint waits,
                   const cl_event *wait_list, cl_event *ret_event)
{
        size_t local[2] = { 8, 8 };
        size_t global[2] = { (size_t)(width + 7) / 8 * 8, (size_t)(rows + 7) / 8 * 8 };
        check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, waits, wait_list,
                                     ret_event),
              "clEnqueueNDRangeKernel");
}

static double event_ms(cl_event event)
{
        cl_ulong start = 0;
        cl_ulong end = 0;
        check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
                                      NULL),
              "clGetEventProfilingInfo");
        check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL),
              "clGetEventProfilingInfo");
        return (double)(end - start) * 1e-6;
}

static void render_bands(const struct options *o, cl_context context, cl_program program,
                         struct device *devices, struct band *bands)
{
        cl_int err;
        size_t row_size = (size_t)o->width * 4 * sizeof(float);
        int radius = GLOW_RADIUS;
        cl_kernel render = clCreateKernel(program, "render", &err);
        check(err, "clCreateKernel render");
        cl_kernel glow = clCreateKernel(program, "glow_rows", &err);
        check(err, "clCreateKernel glow_rows");

        for (int i = 0; i < o->bands; i++) {
                struct band *b = &bands[i];
                struct device *d = &devices[b->device];
                size_t size = row_size * (size_t)b->rows;
                b->light = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
                check(err, "clCreateBuffer");
                b->glow = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
                check(err, "clCreateBuffer");

                set_arg(render, 0, sizeof(b->light), &b->light);
                set_arg(render, 1, sizeof(int), &o->width);
                set_arg(render, 2, sizeof(int), &o->height);
                set_arg(render, 3, sizeof(int), &b->first_row);
                set_arg(render, 4, sizeof(int), &b->rows);
                set_arg(render, 5, sizeof(int), &o->samples);
                set_arg(render, 6, sizeof(int), &o->bounces);
                launch(d->queue, render, o->width, b->rows, 0, NULL, &b->rendered);

                set_arg(glow, 0, sizeof(b->light), &b->light);
                set_arg(glow, 1, sizeof(b->glow), &b->glow);
                set_arg(glow, 2, sizeof(int), &o->width);
                set_arg(glow, 3, sizeof(int), &b->rows);
                set_arg(glow, 4, sizeof(int), &radius);
                launch(d->queue, glow, o->width, b->rows, 1, &b->rendered, &b->blurred);
                check(clFlush(d->queue), "clFlush");
                d->rows += b->rows;
        }
        clReleaseKernel(render);
        clReleaseKernel(glow);
}

/* All bands on the first device: buffers are migrated there while later bands are still rendered,
 * then copied to their places. */
static uint8_t *gather(const struct options *o, cl_context context, cl_program program,
                       struct device *first, struct band *bands)
{
        cl_int err;
        size_t row_size = (size_t)o->width * 4 * sizeof(float);
        size_t size = row_size * (size_t)o->height;
        size_t screen_size = (size_t)o->width * (size_t)o->height * 4;
        cl_mem picture = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        cl_mem glow = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        cl_mem screen = clCreateBuffer(context, CL_MEM_WRITE_ONLY, screen_size, NULL, &err);
        check(err, "clCreateBuffer");

        for (int i = 0; i < o->bands; i++) {
                struct band *b = &bands[i];
                cl_mem both[2] = { b->light, b->glow };
                size_t at = row_size * (size_t)b->first_row;
                size_t bytes = row_size * (size_t)b->rows;
                check(clEnqueueMigrateMemObjects(first->queue, 2, both, 0, 1, &b->blurred, NULL),
                      "clEnqueueMigrateMemObjects");
                check(clEnqueueCopyBuffer(first->queue, b->light, picture, 0, at, bytes, 1,
                                          &b->blurred, NULL),
                      "clEnqueueCopyBuffer");
                check(clEnqueueCopyBuffer(first->queue, b->glow, glow, 0, at, bytes, 1, &b->blurred,
                                          NULL),
                      "clEnqueueCopyBuffer");
        }

        cl_kernel compose = clCreateKernel(program, "compose", &err);
        check(err, "clCreateKernel compose");
        int radius = GLOW_RADIUS;
        set_arg(compose, 0, sizeof(picture), &picture);
        set_arg(compose, 1, sizeof(glow), &glow);
        set_arg(compose, 2, sizeof(screen), &screen);
        set_arg(compose, 3, sizeof(int), &o->width);
        set_arg(compose, 4, sizeof(int), &o->height);
        set_arg(compose, 5, sizeof(int), &radius);
        launch(first->queue, compose, o->width, o->height, 0, NULL, NULL);

        uint8_t *rgba = malloc(screen_size);
        if (!rgba)
                die("out of memory");
        check(clEnqueueReadBuffer(first->queue, screen, CL_TRUE, 0, screen_size, rgba, 0, NULL,
                                  NULL),
              "clEnqueueReadBuffer");

        clReleaseKernel(compose);
        clReleaseMemObject(picture);
        clReleaseMemObject(glow);
        clReleaseMemObject(screen);
        return rgba;
}

static void parse(int argc, char **argv, struct options *o)
{
        static const struct option names[] = {
                { "kernels", required_argument, NULL, 'k' },
                { "output", required_argument, NULL, 'o' },
                { "platform", required_argument, NULL, 'p' },
                { "size", required_argument, NULL, 's' },
                { "samples", required_argument, NULL, 'n' },
                { "bounces", required_argument, NULL, 'b' },
                { "bands", required_argument, NULL, 'B' },
                { "help", no_argument, NULL, 'h' },
                { 0 },
        };
        int c;
        while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
                switch (c) {
                case 'k':
                        o->kernels = optarg;
                        break;
                case 'o':
                        o->output = optarg;
                        break;
                case 'p':
                        o->platform = optarg;
                        break;
                case 's':
                        if (sscanf(optarg, "%dx%d", &o->width, &o->height) != 2)
                                die("--size takes WIDTHxHEIGHT");
                        break;
                case 'n':
                        o->samples = atoi(optarg);
                        break;
                case 'b':
                        o->bounces = atoi(optarg);
                        break;
                case 'B':
                        o->bands = atoi(optarg);
                        break;
                default:
                        printf("bridge [--size WxH] [--samples N] [--bounces N] [--bands N]\n"
                               "       [--platform NAME] [--kernels FOLDER] [--output FILE.png]\n");
                        exit(c != 'h');
                }
        }
        if (o->width < 16 || o->height < 16 || o->width > 16384 || o->height > 16384)
                die("a size between 16 and 16384");
        if (o->samples < 1 || o->bounces < 0 || o->bands < 1 || o->bands > BANDS_MAX ||
            o->bands > o->height)
                die("samples, bounces or bands out of range");
}

int main(int argc, char **argv)
{
        struct options o = {
                .kernels = BRIDGE_KERNELS,
                .output = "bridge.png",
                .width = 960,
                .height = 540,
                .samples = 8,
                .bounces = 2,
                .bands = 12,
        };
        parse(argc, argv, &o);

        double start_ms = now_ms();
        char platform_name[256] = "";
        cl_platform_id platform = choose_platform(o.platform, platform_name, sizeof(platform_name));
        cl_device_id ids[DEVICES_MAX];
        cl_uint count = 0;
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &count),
              "clGetDeviceIDs");
        if (count > DEVICES_MAX)
                count = DEVICES_MAX;

        cl_int err;
        cl_context context = clCreateContext(NULL, count, ids, NULL, NULL, &err);
        check(err, "clCreateContext");
        struct device devices[DEVICES_MAX] = { 0 };
        for (cl_uint i = 0; i < count; i++) {
                struct device *d = &devices[i];
                d->id = ids[i];
                check(clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof(d->name), d->name, NULL),
                      "clGetDeviceInfo");
                d->queue = clCreateCommandQueue(context, d->id, CL_QUEUE_PROFILING_ENABLE, &err);
                check(err, "clCreateCommandQueue");
        }
        cl_program program = build(context, o.kernels);
        double built_ms = now_ms();

        struct band bands[BANDS_MAX] = { 0 };
        for (int i = 0; i < o.bands; i++) {
                bands[i].device = i % (int)count;
                bands[i].first_row = (int)((int64_t)o.height * i / o.bands);
                bands[i].rows = (int)((int64_t)o.height * (i + 1) / o.bands) - bands[i].first_row;
        }
        render_bands(&o, context, program, devices, bands);
        uint8_t *rgba = gather(&o, context, program, &devices[0], bands);
        double done_ms = now_ms();
        const char *error = picture_write(o.output, rgba, o.width, o.height);
        if (error)
                die("%s: %s", o.output, error);

        for (int i = 0; i < o.bands; i++)
                devices[bands[i].device].busy_ms +=
                        event_ms(bands[i].rendered) + event_ms(bands[i].blurred);

        printf("platform %s, %u device%s, %dx%d, %d samples\n", platform_name, count,
               count == 1 ? "" : "s", o.width, o.height, o.samples);
        for (cl_uint i = 0; i < count; i++)
                printf("  device %u: %4d rows, kernels %8.1f ms, %s\n", i, devices[i].rows,
                       devices[i].busy_ms, devices[i].name);
        printf("start and build %.0f ms, picture %.0f ms\n", built_ms - start_ms,
               done_ms - built_ms);
        printf("%s fingerprint %016llx\n", o.output,
               (unsigned long long)fingerprint(rgba, (size_t)o.width * (size_t)o.height * 4));

        free(rgba);
        for (int i = 0; i < o.bands; i++) {
                clReleaseEvent(bands[i].rendered);
                clReleaseEvent(bands[i].blurred);
                clReleaseMemObject(bands[i].light);
                clReleaseMemObject(bands[i].glow);
        }
        for (cl_uint i = 0; i < count; i++)
                clReleaseCommandQueue(devices[i].queue);
        clReleaseProgram(program);
        clReleaseContext(context);
        return 0;
}
