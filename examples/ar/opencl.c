#include "opencl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared.h"

#define TRAFFIC_STATS_POCL 0x4501 /* CL_DEVICE_REMOTE_TRAFFIC_STATS_POCL */
#define SERVER_IP_POCL     0x4503
#define SERVER_PORT_POCL   0x4504

void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fprintf(stderr, "ar: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
        exit(1);
}

static _Thread_local struct {
        bool noted; /* not ended: errors */
        cl_int first;
} errors;

void errors_note(void)
{
        errors.noted = true;
        errors.first = CL_SUCCESS;
}

cl_int errors_noted(void)
{
        errors.noted = false;
        return errors.first;
}

void check(cl_int err, const char *what)
{
        if (err == CL_SUCCESS)
                return;
        if (!errors.noted)
                die("%s: error %d", what, err);
        if (errors.first == CL_SUCCESS)
                errors.first = err;
}

void *allocate(size_t count, size_t size)
{
        void *p = calloc(count ? count : 1, size);
        if (!p)
                die("out of memory");
        return p;
}

void *read_file(const char *path, size_t *ret_size)
{
        FILE *f = fopen(path, "rb");
        if (!f || fseek(f, 0, SEEK_END))
                die("%s: %s", path, strerror(errno));
        long size = ftell(f);
        rewind(f);
        if (size < 0)
                die("%s: %s", path, strerror(errno));
        char *bytes = allocate((size_t)size + 1, 1);
        if (fread(bytes, 1, (size_t)size, f) != (size_t)size)
                die("%s: cannot read", path);
        fclose(f);
        *ret_size = (size_t)size;
        return bytes;
}

/* ---- devices --------------------------------------------------------------------------------- */

static cl_uint all_devices(cl_platform_id platform, cl_uint count, cl_device_id *ids)
{
        cl_uint found = 0, custom = 0;
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, &found) != CL_SUCCESS)
                found = 0;
        if (found > count)
                found = count;
        /* CL_DEVICE_TYPE_ALL leaves out devices of built-in kernels. */
        if (found < count && clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, count - found,
                                            ids + found, &custom) != CL_SUCCESS)
                custom = 0;
        return found + (custom < count - found ? custom : count - found);
}

static void device_open(struct machine *m, struct device *d)
{
        cl_int err;
        size_t size = 0;
        cl_uint units = 1;
        check(clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof(d->name), d->name, NULL),
              "CL_DEVICE_NAME");
        check(clGetDeviceInfo(d->id, CL_DEVICE_TYPE, sizeof(d->type), &d->type, NULL),
              "CL_DEVICE_TYPE");
        check(clGetDeviceInfo(d->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL),
              "CL_DEVICE_MAX_COMPUTE_UNITS");
        check(clGetDeviceInfo(d->id, CL_DEVICE_BUILT_IN_KERNELS, 0, NULL, &size),
              "CL_DEVICE_BUILT_IN_KERNELS");
        if (size > 1) {
                char *names = allocate(size, 1);
                check(clGetDeviceInfo(d->id, CL_DEVICE_BUILT_IN_KERNELS, size, names, NULL),
                      "CL_DEVICE_BUILT_IN_KERNELS");
                d->built_in = names;
        }
        bool wide = m->wide || d->type & CL_DEVICE_TYPE_GPU;
        d->chunks = wide ? 512 : 4 * (size_t)units;
        d->group = wide ? GROUP : 1;
        d->queue = clCreateCommandQueue(m->context, d->id, 0, &err);
        check(err, "clCreateCommandQueue");
        d->read_queue = clCreateCommandQueue(m->context, d->id, 0, &err);
        check(err, "clCreateCommandQueue");
}

/* Open these devices of the machine's platform, in one context. */
static void machine_take(struct machine *m, const cl_device_id *ids, size_t count)
{
        cl_int err;
        m->device_count = count;
        m->context =
                clCreateContext((cl_context_properties[]){ CL_CONTEXT_PLATFORM,
                                                           (cl_context_properties)m->platform, 0 },
                                (cl_uint)count, ids, NULL, NULL, &err);
        check(err, "clCreateContext");
        for (size_t i = 0; i < count; i++) {
                m->devices[i].id = ids[i];
                device_open(m, &m->devices[i]);
        }
        *(void **)&m->set_content_size =
                clGetExtensionFunctionAddressForPlatform(m->platform, "clSetContentSizeBufferPoCL");
}

void machine_open(struct machine *m, const char *wanted, const char *kernels, bool wide)
{
        cl_platform_id platforms[16];
        cl_device_id ids[DEVICES_MAX];
        cl_uint count = 0;
        size_t device_count = 0;
        *m = (struct machine){ .kernels = kernels, .wide = wide };
        check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
        for (cl_uint i = 0; i < count && i < 16 && !device_count; i++) {
                check(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(m->platform_name),
                                        m->platform_name, NULL),
                      "CL_PLATFORM_NAME");
                if (wanted && !strstr(m->platform_name, wanted))
                        continue;
                m->platform = platforms[i];
                device_count = all_devices(platforms[i], DEVICES_MAX, ids);
        }
        if (!device_count)
                die("no platform with devices");
        machine_take(m, ids, device_count);
}

void machine_open_some(struct machine *m, const struct machine *all, const cl_device_id *ids,
                       size_t count)
{
        *m = (struct machine){ .kernels = all->kernels,
                               .wide = all->wide,
                               .platform = all->platform };
        memcpy(m->platform_name, all->platform_name, sizeof(m->platform_name));
        machine_take(m, ids, count);
}

void machine_close(struct machine *m)
{
        for (size_t i = 0; i < m->device_count; i++) {
                struct device *d = &m->devices[i];
                clReleaseCommandQueue(d->queue);
                clReleaseCommandQueue(d->read_queue);
                if (d->program)
                        clReleaseProgram(d->program);
                if (d->media)
                        clReleaseProgram(d->media);
                free((void *)(uintptr_t)d->built_in);
        }
        clReleaseContext(m->context);
}

void machine_finish(struct machine *m)
{
        for (size_t i = 0; i < m->device_count; i++) {
                check(clFinish(m->devices[i].queue), "clFinish");
                check(clFinish(m->devices[i].read_queue), "clFinish");
        }
}

bool device_computes(const struct device *d)
{
        return d->type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR);
}

static char *read_text(const char *folder, const char *name)
{
        char *path;
        size_t size;
        if (asprintf(&path, "%s/%s", folder, name) < 0)
                die("out of memory");
        char *text = read_file(path, &size);
        free(path);
        return text;
}

void device_build(struct machine *m, struct device *d)
{
        static const char *const files[] = { "figure.cl",    "points.cl",    "track.cl",
                                             "scan.cl",      "sort.cl",      "draw.cl",
                                             "scan_wide.cl", "sort_wide.cl", "draw_wide.cl" };
        enum { FILES = sizeof(files) / sizeof(files[0]), WIDE = 3 };
        bool wide = d->group > 1;
        cl_uint count = wide ? FILES : FILES - WIDE;
        char *texts[FILES], *options;
        cl_int err;
        if (d->program)
                return;
        for (size_t i = 0; i < FILES; i++)
                texts[i] = read_text(m->kernels, files[i]);
        d->program = clCreateProgramWithSource(m->context, count, (const char **)texts, NULL, &err);
        check(err, "clCreateProgramWithSource");
        if (asprintf(&options, "-D WIDE=%d -I %s", wide, m->kernels) < 0)
                die("out of memory");
        err = clBuildProgram(d->program, 1, &d->id, options, NULL, NULL);
        if (err == CL_BUILD_PROGRAM_FAILURE) {
                char log[8192] = "";
                clGetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, sizeof(log), log,
                                      NULL);
                die("the kernels do not build:\n%s", log);
        }
        check(err, "clBuildProgram");
        free(options);
        for (size_t i = 0; i < FILES; i++)
                free(texts[i]);
}

static bool has_built_in(const struct device *d, const char *kernel)
{
        const char *at = d->built_in ? strstr(d->built_in, kernel) : NULL;
        return at && (at[strlen(kernel)] == '\0' || at[strlen(kernel)] == ';');
}

struct device *media_device(struct machine *m, const char *kernel, bool last)
{
        struct device *found = NULL;
        for (size_t i = 0; i < m->device_count; i++)
                if (has_built_in(&m->devices[i], kernel) && (last || !found))
                        found = &m->devices[i];
        if (!found)
                die("no media device has %s (docs/MEDIA.md)", kernel);
        return found;
}

cl_kernel media_kernel(struct machine *m, struct device *d, const char *name)
{
        cl_int err;
        if (!d->media) {
                d->media =
                        clCreateProgramWithBuiltInKernels(m->context, 1, &d->id, d->built_in, &err);
                check(err, "clCreateProgramWithBuiltInKernels");
        }
        cl_kernel k = clCreateKernel(d->media, name, &err);
        check(err, name);
        return k;
}

/* ---- commands -------------------------------------------------------------------------------- */

cl_mem new_buffer(struct machine *m, size_t size, const void *data)
{
        cl_int err;
        cl_mem b = clCreateBuffer(m->context, CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0),
                                  size, (void *)(uintptr_t)data, &err);
        check(err, "clCreateBuffer");
        return b;
}

cl_kernel new_kernel(struct device *d, const char *name)
{
        cl_int err;
        cl_kernel k = clCreateKernel(d->program, name, &err);
        check(err, name);
        return k;
}

void set_buffers(cl_kernel k, cl_uint first, const cl_mem *buffers, size_t count)
{
        for (size_t i = 0; i < count; i++)
                check(clSetKernelArg(k, first + (cl_uint)i, sizeof(cl_mem), &buffers[i]),
                      "clSetKernelArg");
}

void set_int(cl_kernel k, cl_uint index, int32_t value)
{
        check(clSetKernelArg(k, index, sizeof(value), &value), "clSetKernelArg");
}

/* Return where the device's next command puts its event. NULL: nowhere. */
static cl_event *next_event(struct device *d)
{
        struct watch *w = d->watch;
        if (!w || w->count == sizeof(w->events) / sizeof(w->events[0]))
                return NULL;
        w->events[w->count] = NULL;
        return &w->events[w->count++];
}

void watch_end(struct watch *w, bool checked)
{
        for (size_t i = 0; i < w->count; i++) {
                cl_int status = CL_COMPLETE;
                if (checked)
                        check(clGetEventInfo(w->events[i], CL_EVENT_COMMAND_EXECUTION_STATUS,
                                             sizeof(status), &status, NULL),
                              "CL_EVENT_COMMAND_EXECUTION_STATUS");
                if (status < 0)
                        check(status, "a command");
                if (w->events[i])
                        clReleaseEvent(w->events[i]);
        }
        w->count = 0;
}

void launch(struct device *d, cl_kernel k, size_t global, size_t local)
{
        check(clEnqueueNDRangeKernel(d->queue, k, 1, NULL, &global, local ? &local : NULL, 0, NULL,
                                     next_event(d)),
              "clEnqueueNDRangeKernel");
}

void launch_chunks(struct device *d, cl_kernel k)
{
        launch(d, k, d->chunks * d->group, d->group > 1 ? d->group : 0);
}

void launch_2d(struct device *d, cl_kernel k, size_t width, size_t height)
{
        check(clEnqueueNDRangeKernel(d->queue, k, 2, NULL, (size_t[]){ width, height }, NULL, 0,
                                     NULL, next_event(d)),
              "clEnqueueNDRangeKernel");
}

void read_buffer(struct device *d, cl_mem b, size_t size, void *data)
{
        check(clEnqueueReadBuffer(d->queue, b, CL_TRUE, 0, size, data, 0, NULL, NULL),
              "clEnqueueReadBuffer");
}

void write_buffer(struct device *d, cl_mem b, size_t size, const void *data)
{
        check(clEnqueueWriteBuffer(d->queue, b, CL_TRUE, 0, size, data, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

void read_behind(struct device *d, cl_event done, cl_mem b, size_t size, void *data)
{
        check(clEnqueueReadBuffer(d->read_queue, b, CL_TRUE, 0, size, data, 1, &done, NULL),
              "clEnqueueReadBuffer");
}

cl_event device_mark(struct device *d)
{
        cl_event done = NULL;
        check(clEnqueueMarkerWithWaitList(d->queue, 0, NULL, &done), "clEnqueueMarkerWithWaitList");
        check(clFlush(d->queue), "clFlush");
        return done;
}

void device_follow(struct device *d, struct device *before)
{
        if (d == before)
                return;
        cl_event done = device_mark(before);
        check(clEnqueueBarrierWithWaitList(d->queue, 1, &done, next_event(d)),
              "clEnqueueBarrierWithWaitList");
        clReleaseEvent(done);
}

/* ---- traffic --------------------------------------------------------------------------------- */

static bool same_server(const struct device *a, const struct device *b)
{
        char ip[2][128];
        cl_uint port[2];
        const struct device *both[2] = { a, b };
        for (int i = 0; i < 2; i++)
                if (clGetDeviceInfo(both[i]->id, SERVER_IP_POCL, sizeof(ip[i]), ip[i], NULL) !=
                            CL_SUCCESS ||
                    clGetDeviceInfo(both[i]->id, SERVER_PORT_POCL, sizeof(port[i]), &port[i],
                                    NULL) != CL_SUCCESS)
                        return false;
        return strcmp(ip[0], ip[1]) == 0 && port[0] == port[1];
}

bool machine_traffic(const struct machine *m, uint64_t *ret_sent, uint64_t *ret_received)
{
        bool any = false;
        uint64_t sent = 0, received = 0;
        for (size_t i = 0; i < m->device_count; i++) {
                cl_ulong counters[6];
                bool counted = false;
                for (size_t k = 0; k < i; k++)
                        counted |= same_server(&m->devices[i], &m->devices[k]);
                if (counted || clGetDeviceInfo(m->devices[i].id, TRAFFIC_STATS_POCL,
                                               sizeof(counters), counters, NULL) != CL_SUCCESS)
                        continue;
                any = true;
                received += counters[3];
                sent += counters[5];
        }
        *ret_sent = sent;
        *ret_received = received;
        return any;
}
