/* outage: frames at full quality on a server, at lower quality on a device of this host while the server is away;
 * no frame is left out (docs/FALLBACK.md tells the pattern).
 *
 *   SPANCL_SERVERS="server in-process" outage [--frames N] [--size WxH]
 *
 * The first device of the platform is the far one, the last one the near one. Each frame is a part of the Mandelbrot
 * set in whole numbers, so that the program can compare it, bit by bit, with what the host computes. A line for
 * each tells who computed it. --frames 0: until standard input ends. */
#include <CL/cl.h>
#include <poll.h>
#include <spancl/availability.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(...)                                                                   \
        do {                                                                       \
                cl_int try_err_ = (__VA_ARGS__);                                   \
                if (try_err_ != CL_SUCCESS) {                                      \
                        fprintf(stderr, "%s: error %d\n", #__VA_ARGS__, try_err_); \
                        exit(1);                                                   \
                }                                                                  \
        } while (0)

/* 12 bits behind the point. */
static const char source[] =
        "kernel void frame(global uint *pixels, int zoom, int depth) {\n"
        "    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);\n"
        "    int cx = -5400 + (x - w / 2) * zoom / w, cy = (y - h / 2) * zoom / h, a = 0, b = 0, n = 0;\n"
        "    for (; n < depth && a * a + b * b < 4 << 24; n++) {\n"
        "        int t = (a * a - b * b) / 4096 + cx;\n"
        "        b = 2 * a * b / 4096 + cy;\n"
        "        a = t;\n"
        "    }\n"
        "    pixels[y * w + x] = n;\n"
        "}\n";

/* The same on the host. */
static uint32_t pixel(int x, int y, int w, int h, int zoom, int depth)
{
        int cx = -5400 + (x - w / 2) * zoom / w, cy = (y - h / 2) * zoom / h, a = 0, b = 0, n = 0;
        for (; n < depth && a * a + b * b < 4 << 24; n++) {
                int t = (a * a - b * b) / 4096 + cx;
                b = 2 * a * b / 4096 + cy;
                a = t;
        }
        return (uint32_t)n;
}

/* A device, how well it computes, and all that is needed for it. */
struct worker {
        const char *name;
        cl_device_id device;
        int depth, scale; /* iterations; a pixel stands for scale x scale */
        cl_context context;
        cl_command_queue queue;
        cl_program program;
        cl_kernel kernel;
        cl_mem pixels;
};

static int width = 320, height = 200;
static atomic_bool far_changed; /* the far device has gone or come */

/* ---- what is made for a device --------------------------------------------------------------- */

static void drop(struct worker *w)
{
        if (w->pixels)
                clReleaseMemObject(w->pixels);
        if (w->kernel)
                clReleaseKernel(w->kernel);
        if (w->program)
                clReleaseProgram(w->program);
        if (w->queue)
                clReleaseCommandQueue(w->queue);
        if (w->context)
                clReleaseContext(w->context);
        w->pixels = NULL;
        w->kernel = NULL;
        w->program = NULL;
        w->queue = NULL;
        w->context = NULL;
}

/* The device may go at any of these. */
static cl_int make(struct worker *w)
{
        const char *text = source;
        cl_int err;
        w->context = clCreateContext(NULL, 1, &w->device, NULL, NULL, &err);
        if (err == CL_SUCCESS)
                w->queue = clCreateCommandQueue(w->context, w->device, 0, &err);
        if (err == CL_SUCCESS)
                w->program = clCreateProgramWithSource(w->context, 1, &text, NULL, &err);
        if (err == CL_SUCCESS)
                err = clBuildProgram(w->program, 1, &w->device, NULL, NULL, NULL);
        if (err == CL_SUCCESS)
                w->kernel = clCreateKernel(w->program, "frame", &err);
        if (err == CL_SUCCESS)
                w->pixels = clCreateBuffer(w->context, CL_MEM_WRITE_ONLY,
                                           (size_t)width * (size_t)height * 4, NULL, &err);
        if (err != CL_SUCCESS)
                drop(w);
        return err;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int zoom_of(unsigned frame)
{
        return 12000 - (int)(frame % 100) * 100;
}

/* The read is a blocking one: when it returns, with an error too, nobody writes to `out` any more. */
static cl_int compute(struct worker *w, unsigned frame, uint32_t *out)
{
        size_t size[2] = { (size_t)(width / w->scale), (size_t)(height / w->scale) };
        int zoom = zoom_of(frame);
        cl_int err = w->context ? CL_SUCCESS : make(w);
        if (err == CL_SUCCESS)
                err = clSetKernelArg(w->kernel, 0, sizeof(w->pixels), &w->pixels);
        if (err == CL_SUCCESS)
                err = clSetKernelArg(w->kernel, 1, sizeof(zoom), &zoom);
        if (err == CL_SUCCESS)
                err = clSetKernelArg(w->kernel, 2, sizeof(w->depth), &w->depth);
        if (err == CL_SUCCESS)
                err = clEnqueueNDRangeKernel(w->queue, w->kernel, 2, NULL, size, NULL, 0, NULL,
                                             NULL);
        if (err == CL_SUCCESS)
                err = clEnqueueReadBuffer(w->queue, w->pixels, CL_TRUE, 0, size[0] * size[1] * 4,
                                          out, 0, NULL, NULL);
        return err;
}

static bool is_right(const struct worker *w, unsigned frame, const uint32_t *got)
{
        int cols = width / w->scale, rows = height / w->scale, zoom = zoom_of(frame);
        for (int y = 0; y < rows; y++)
                for (int x = 0; x < cols; x++)
                        if (got[y * cols + x] != pixel(x, y, cols, rows, zoom, w->depth))
                                return false;
        return true;
}

static bool is_available(cl_device_id d)
{
        cl_bool available = CL_FALSE;
        return clGetDeviceInfo(d, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL) ==
                       CL_SUCCESS &&
               available;
}

/* Which of the two computed it. */
static struct worker *next_frame(struct worker *far, struct worker *near, bool *far_is_there,
                                 unsigned frame, uint32_t *out)
{
        /* One call, when something has changed, not one for each frame. */
        if (atomic_exchange(&far_changed, false))
                *far_is_there = is_available(far->device);
        if (*far_is_there) {
                cl_int err = compute(far, frame, out);
                if (err == CL_SUCCESS)
                        return far;
                /* Available, and what we have does not work any more: it was started anew. */
                if (is_available(far->device))
                        drop(far);
                else
                        *far_is_there = false;
        }
        TRY(compute(near, frame, out));
        return near;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void CL_CALLBACK on_change(cl_device_id d, cl_bool available, void *user)
{
        (void)d;
        (void)available;
        (void)user;
        atomic_store(&far_changed, true);
}

static cl_platform_id find_platform(void)
{
        cl_platform_id all[16];
        cl_uint count;
        char name[64];
        TRY(clGetPlatformIDs(16, all, &count));
        for (cl_uint i = 0; i < count && i < 16; i++)
                if (clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) ==
                            CL_SUCCESS &&
                    !strcmp(name, "SpanCL"))
                        return all[i];
        fprintf(stderr, "outage: there is no platform SpanCL\n");
        exit(1);
}

static bool input_has_ended(void)
{
        struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
        char c;
        return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

int main(int argc, char **argv)
{
        unsigned frames = 300, by_far = 0;
        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--frames") && i + 1 < argc)
                        frames = (unsigned)atoi(argv[++i]);
                else if (!strcmp(argv[i], "--size") && i + 1 < argc &&
                         sscanf(argv[++i], "%dx%d", &width, &height) == 2 && width >= 4 &&
                         width <= 8192 && height >= 4 && height <= 8192)
                        continue;
                else {
                        fprintf(stderr, "usage: outage [--frames N] [--size WxH]\n");
                        return 2;
                }
        }
        cl_platform_id platform = find_platform();
        cl_device_id devices[64];
        cl_uint count;
        TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, devices, &count));
        if (count < 2 || count > 64) {
                fprintf(stderr, "outage: a far device and a near one are needed: "
                                "SPANCL_SERVERS=\"server in-process\"\n");
                return 1;
        }
        struct worker far = { .name = "full", .device = devices[0], .depth = 500, .scale = 1 };
        struct worker near = {
                .name = "lower", .device = devices[count - 1], .depth = 50, .scale = 4
        };
        spancl_set_availability_callback_fn set =
                (spancl_set_availability_callback_fn)clGetExtensionFunctionAddressForPlatform(
                        platform, "clSetDeviceAvailabilityCallbackSPANCL");
        TRY(set ? set(far.device, on_change, &far) : CL_INVALID_OPERATION);

        uint32_t *out = malloc((size_t)width * (size_t)height * 4);
        if (!out)
                return 1;
        bool far_is_there = true;
        unsigned frame = 0;
        for (; frames ? frame < frames : !input_has_ended(); frame++) {
                const struct worker *w = next_frame(&far, &near, &far_is_there, frame, out);
                if (!is_right(w, frame, out)) {
                        fprintf(stderr, "outage: frame %u is wrong (%s quality)\n", frame, w->name);
                        return 1;
                }
                by_far += w == &far;
                printf("frame %u: %s quality\n", frame, w->name);
                fflush(stdout);
        }
        printf("%u frames, %u of full quality, %u of lower quality\n", frame, by_far,
               frame - by_far);
        TRY(set(far.device, NULL, NULL));
        drop(&far);
        drop(&near);
        free(out);
        return 0;
}
