/* actor [builtin]: a client that obeys standard input, a word per line, and answers each with a
 * line: "ok" and a result. It compares the results of its computations. A call that does not do
 * as it should ends it with a message. `builtin`: on custom devices, with built-in kernels.
 *
 *   begin     a context with a callback over the devices that are available, and all kinds of objects in it
 *   compute   write, run, read, compare, on each device
 *   enqueue   a launch on each device with an event, not waited for
 *   settled   each of these events has completed; prints how many with an error
 *   refused   every call that needs a device returns CL_DEVICE_NOT_AVAILABLE
 *   end       release everything
 *   devices   a digit for each device: is it available?
 *   until D.. the same, when it is so
 *   notices   calls of the context's callback so far
 *   watch     have calls of the availability callback counted, for each device
 *   told N    how often that was, when it is at least N; each call told the other value
 *   hold      from now on a call returns only after `go`
 *   go        calls return, and do so at once
 *   unwatch   no more calls
 *   reads D.. from the last device, one after the other, until `devices` prints this
 *   gap MS    small commands, one after the other, for so long; prints how many microseconds the longest took
 *   leave     end without releasing anything */
#include "../api/command_buffer.h"

#include <spancl/availability.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 50000 };

static const char source[] =
        "kernel void add(global int *p, int by) { p[get_global_id(0)] += by; }\n";

static cl_platform_id platform;
static cl_device_id devices[API_DEVICES_MAX];
static cl_uint device_count;
static bool builtin;
static atomic_uint notices;
static int values[ITEMS], got[ITEMS];

static struct act {
        cl_context context;
        cl_uint count;
        cl_device_id devices[API_DEVICES_MAX];
        cl_command_queue queues[API_DEVICES_MAX];
        cl_event events[API_DEVICES_MAX];
        cl_program program;
        cl_kernel kernel;
        cl_mem buffer, other;
        /* On devices with a compiler. */
        cl_program object; /* compiled */
        cl_mem image;
        void *svm, *map, *commands;
} a;

static struct watch {
        atomic_uint calls;
        cl_bool told;
        cl_device_id device;
} watches[API_DEVICES_MAX];

static atomic_bool held;

static void CL_CALLBACK on_change(cl_device_id d, cl_bool available, void *user)
{
        struct watch *w = user;
        CHECK(w->device == d && available != w->told);
        w->told = available;
        atomic_fetch_add(&w->calls, 1);
        while (atomic_load(&held))
                usleep(1000);
}

static void watch(bool on)
{
        spancl_set_availability_callback_fn set =
                (spancl_set_availability_callback_fn)clGetExtensionFunctionAddressForPlatform(
                        platform, "clSetDeviceAvailabilityCallbackSPANCL");
        CHECK(set);
        EXPECT(CL_INVALID_DEVICE, set((cl_device_id)(void *)platform, on_change, NULL));
        EXPECT(CL_INVALID_VALUE, set(devices[0], NULL, watches));
        for (cl_uint i = 0; i < device_count; i++) {
                watches[i].device = devices[i];
                watches[i].told = CL_TRUE;
                OK(set(devices[i], on ? on_change : NULL, on ? &watches[i] : NULL));
        }
}

static unsigned told(unsigned least)
{
        for (;;) {
                unsigned n = 0;
                for (cl_uint i = 0; i < device_count; i++)
                        n += atomic_load(&watches[i].calls);
                if (n >= least)
                        return n;
                usleep(1000);
        }
}

static bool is_available(cl_device_id d)
{
        cl_bool available;
        OK(clGetDeviceInfo(d, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL));
        return available;
}

static void CL_CALLBACK on_notice(const char *text, const void *info, size_t size, void *user)
{
        (void)info;
        (void)size;
        CHECK(user == &a && strstr(text, "SpanCL"));
        atomic_fetch_add(&notices, 1);
}

static void begin_more(void)
{
        cl_int err;
        const char *text = source;
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                     .image_width = 16,
                                     .image_height = 16 };
        a.object = clCreateProgramWithSource(a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clCompileProgram(a.object, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        a.image = clCreateImage(a.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
        a.svm = clSVMAlloc(a.context, CL_MEM_READ_WRITE, 4096, 0);
}

static void begin(void)
{
        cl_int err;
        a = (struct act){ 0 };
        for (cl_uint i = 0; i < device_count; i++)
                if (is_available(devices[i]))
                        a.devices[a.count++] = devices[i];
        a.context = clCreateContext(NULL, a.count, a.devices, on_notice, &a, &err);
        OK(err);
        cl_device_id listed[API_DEVICES_MAX], of_queue;
        OK(clGetContextInfo(a.context, CL_CONTEXT_DEVICES, sizeof(listed), listed, NULL));
        CHECK(!memcmp(listed, a.devices, a.count * sizeof(listed[0])));
        for (cl_uint i = 0; i < a.count; i++) {
                a.queues[i] = clCreateCommandQueue(a.context, a.devices[i], 0, &err);
                OK(err);
                OK(clGetCommandQueueInfo(a.queues[i], CL_QUEUE_DEVICE, sizeof(of_queue), &of_queue,
                                         NULL));
                CHECK(of_queue == a.devices[i]);
        }
        const char *text = source;
        a.program = builtin ? clCreateProgramWithBuiltInKernels(a.context, a.count, a.devices,
                                                                "spancl.inc.i32", &err)
                            : clCreateProgramWithSource(a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(a.program, a.count, a.devices, NULL, NULL, NULL));
        cl_build_status status;
        for (cl_uint i = 0; i < a.count; i++) {
                OK(clGetProgramBuildInfo(a.program, a.devices[i], CL_PROGRAM_BUILD_STATUS,
                                         sizeof(status), &status, NULL));
                CHECK(status == CL_BUILD_SUCCESS);
        }
        a.kernel = clCreateKernel(a.program, builtin ? "spancl.inc.i32" : "add", &err);
        OK(err);
        a.buffer = clCreateBuffer(a.context, CL_MEM_READ_WRITE, sizeof(values), NULL, &err);
        OK(err);
        a.other = clCreateBuffer(a.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 sizeof(values), values, &err);
        OK(err);
        a.map = clEnqueueMapBuffer(a.queues[0], a.other, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   sizeof(values), 0, NULL, NULL, &err);
        OK(err);
        size_t items = ITEMS;
        int by = 1;
        OK(clSetKernelArg(a.kernel, 0, sizeof(a.buffer), &a.buffer));
        OK(clSetKernelArg(a.kernel, 1, sizeof(by), &by));
        cb_load(platform);
        a.commands = cb_create(1, a.queues, 0);
        OK(cb.kernel(a.commands, NULL, NULL, a.kernel, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(a.commands));
        if (!builtin)
                begin_more();
}

static cl_int launch(cl_uint i, int by, cl_event *event)
{
        size_t items = ITEMS;
        OK(clSetKernelArg(a.kernel, 0, sizeof(a.buffer), &a.buffer));
        OK(clSetKernelArg(a.kernel, 1, sizeof(by), &by));
        return clEnqueueNDRangeKernel(a.queues[i], a.kernel, 1, NULL, &items, NULL, 0, NULL, event);
}

static void compute(void)
{
        static int round;
        for (cl_uint i = 0; i < a.count; i++) {
                int by = ++round;
                for (int k = 0; k < ITEMS; k++)
                        values[k] = k * by;
                OK(clEnqueueWriteBuffer(a.queues[i], a.buffer, CL_FALSE, 0, sizeof(values), values,
                                        0, NULL, NULL));
                OK(launch(i, by, NULL));
                OK(clEnqueueReadBuffer(a.queues[i], a.buffer, CL_TRUE, 0, sizeof(got), got, 0, NULL,
                                       NULL));
                for (int k = 0; k < ITEMS; k++)
                        CHECK(got[k] == (k + 1) * by);
        }
}

static void enqueue(void)
{
        for (cl_uint i = 0; i < a.count; i++) {
                OK(launch(i, 1, &a.events[i]));
                OK(clFlush(a.queues[i]));
        }
}

static unsigned settled(void)
{
        unsigned failed = 0;
        for (cl_uint i = 0; i < a.count; i++) {
                cl_int status = CL_QUEUED;
                for (;;) {
                        OK(clGetEventInfo(a.events[i], CL_EVENT_COMMAND_EXECUTION_STATUS,
                                          sizeof(status), &status, NULL));
                        if (status <= CL_COMPLETE)
                                break;
                        usleep(1000);
                }
                failed += status < 0;
                OK(clReleaseEvent(a.events[i]));
                a.events[i] = NULL;
        }
        return failed;
}

#define AWAY(...) EXPECT(CL_DEVICE_NOT_AVAILABLE, __VA_ARGS__)

static void refused_images(cl_command_queue q)
{
        cl_int err;
        size_t origin[3] = { 0 }, region[3] = { 8, 8, 1 }, pitch;
        cl_uint color[4] = { 1, 2, 3, 4 };
        for (cl_bool blocking = CL_FALSE; blocking <= CL_TRUE; blocking++) {
                AWAY(clEnqueueReadImage(q, a.image, blocking, origin, region, 0, 0, got, 0, NULL,
                                        NULL));
                AWAY(clEnqueueWriteImage(q, a.image, blocking, origin, region, 0, 0, got, 0, NULL,
                                         NULL));
                CHECK(!clEnqueueMapImage(q, a.image, blocking, CL_MAP_READ, origin, region, &pitch,
                                         NULL, 0, NULL, NULL, &err));
                AWAY(err);
        }
        AWAY(clEnqueueFillImage(q, a.image, color, origin, region, 0, NULL, NULL));
        AWAY(clEnqueueCopyImageToBuffer(q, a.image, a.buffer, origin, region, 0, 0, NULL, NULL));
        AWAY(clEnqueueCopyBufferToImage(q, a.buffer, a.image, 0, origin, region, 0, NULL, NULL));
        size_t other[3] = { 8, 8, 0 };
        AWAY(clEnqueueCopyImage(q, a.image, a.image, origin, other, region, 0, NULL, NULL));
}

static void refused_svm(cl_command_queue q)
{
        int x = 1;
        for (cl_bool blocking = CL_FALSE; blocking <= CL_TRUE; blocking++) {
                AWAY(clEnqueueSVMMap(q, blocking, CL_MAP_READ, a.svm, 64, 0, NULL, NULL));
                AWAY(clEnqueueSVMMemcpy(q, blocking, got, a.svm, 64, 0, NULL, NULL));
                AWAY(clEnqueueSVMMemcpy(q, blocking, a.svm, got, 64, 0, NULL, NULL));
        }
        AWAY(clEnqueueSVMMemFill(q, a.svm, &x, 4, 64, 0, NULL, NULL));
        AWAY(clEnqueueSVMMigrateMem(q, 1, (const void *[]){ a.svm }, NULL, 0, 0, NULL, NULL));
        CHECK(!clSVMAlloc(a.context, CL_MEM_READ_WRITE, 64 << 20, 0));
}

static void refused_programs(void)
{
        cl_int err;
        size_t size = 1, sizes[API_DEVICES_MAX];
        const char *text = source;
        cl_program program = clCreateProgramWithSource(a.context, 1, &text, NULL, &err);
        OK(err);
        AWAY(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
        AWAY(clCompileProgram(program, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        OK(clReleaseProgram(program));
        program = clLinkProgram(a.context, 0, NULL, NULL, 1, &a.object, NULL, NULL, &err);
        AWAY(err);
        if (program)
                OK(clReleaseProgram(program));
        AWAY(clGetProgramInfo(a.program, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        cl_int (*suggested)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                            size_t *);
        void *f = clGetExtensionFunctionAddressForPlatform(platform,
                                                           "clGetKernelSuggestedLocalWorkSizeKHR");
        CHECK(f);
        memcpy(&suggested, &f, sizeof(f));
        AWAY(suggested(a.queues[0], a.kernel, 1, NULL, &size, &size));
        for (cl_uint i = 0; i < a.count; i++) {
                cl_device_id parts[2];
                cl_uint units;
                OK(clGetDeviceInfo(a.devices[i], CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units,
                                   NULL));
                const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY,
                                                                units / 2, 0 };
                if (units == 2 && !is_available(a.devices[i]))
                        AWAY(clCreateSubDevices(a.devices[i], halves, 2, parts, NULL));
        }
}

/* Make each call that needs the devices. The calls that need none work. */
static void refused(void)
{
        cl_int err;
        void *p;
        cl_event e;
        size_t origin[3] = { 0 }, region[3] = { 64, 4, 1 }, n;
        for (cl_uint i = 0; i < a.count; i++) {
                cl_command_queue q = a.queues[i];
                int x = 1;
                AWAY(launch(i, 1, NULL));
                AWAY(launch(i, 1, &e));
                AWAY(clEnqueueTask(q, a.kernel, 0, NULL, NULL));
                for (cl_bool blocking = CL_FALSE; blocking <= CL_TRUE; blocking++) {
                        AWAY(clEnqueueWriteBuffer(q, a.buffer, blocking, 0, 4, values, 0, NULL,
                                                  NULL));
                        AWAY(clEnqueueWriteBuffer(q, a.buffer, blocking, 0, sizeof(values), values,
                                                  0, NULL, NULL));
                        AWAY(clEnqueueReadBuffer(q, a.buffer, blocking, 0, sizeof(got), got, 0,
                                                 NULL, NULL));
                        AWAY(clEnqueueReadBufferRect(q, a.buffer, blocking, origin, origin, region,
                                                     0, 0, 0, 0, got, 0, NULL, NULL));
                        AWAY(clEnqueueWriteBufferRect(q, a.buffer, blocking, origin, origin, region,
                                                      0, 0, 0, 0, got, 0, NULL, NULL));
                        p = clEnqueueMapBuffer(q, a.buffer, blocking, CL_MAP_READ, 0,
                                               sizeof(values), 0, NULL, NULL, &err);
                        CHECK(!p);
                        AWAY(err);
                }
                AWAY(clEnqueueFillBuffer(q, a.buffer, &x, 4, 0, 64, 0, NULL, NULL));
                AWAY(clEnqueueCopyBuffer(q, a.buffer, a.other, 0, 0, 64, 0, NULL, NULL));
                AWAY(clEnqueueCopyBufferRect(q, a.buffer, a.other, origin, origin, region, 0, 0, 0,
                                             0, 0, NULL, NULL));
                AWAY(clEnqueueMigrateMemObjects(q, 1, &a.buffer, 0, 0, NULL, NULL));
                AWAY(clEnqueueMarkerWithWaitList(q, 0, NULL, NULL));
                AWAY(clEnqueueBarrierWithWaitList(q, 0, NULL, &e));
                if (a.image)
                        refused_images(q);
                if (a.svm)
                        refused_svm(q);
                AWAY(clEnqueueUnmapMemObject(q, a.other, a.map, 0, NULL, NULL));
                AWAY(clFlush(q));
                AWAY(clFinish(q));
                cl_command_queue more = clCreateCommandQueue(a.context, a.devices[i], 0, &err);
                if (more) /* needs no answer, if the server is only away */
                        OK(clReleaseCommandQueue(more));
                else
                        AWAY(err);
        }
        /* A program and what is built for devices that are gone. */
        if (!builtin)
                refused_programs();
        AWAY(cb.enqueue(0, NULL, a.commands, 0, NULL, NULL));
        if (a.events[0]) { /* `enqueue` was before: it returns, whatever became of it */
                cl_int status;
                err = clWaitForEvents(1, a.events);
                CHECK(err == CL_SUCCESS || err == CL_DEVICE_NOT_AVAILABLE ||
                      err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                OK(clGetEventInfo(a.events[0], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                  &status, NULL));
        }
        OK(clGetProgramInfo(a.program, CL_PROGRAM_NUM_KERNELS, sizeof(n), &n, NULL));
        CHECK(n >= 1);
}

static void end(void)
{
        OK(clReleaseKernel(a.kernel));
        OK(clReleaseProgram(a.program));
        OK(clReleaseMemObject(a.buffer));
        OK(clReleaseMemObject(a.other));
        OK(cb.release(a.commands));
        if (a.object)
                OK(clReleaseProgram(a.object));
        if (a.image)
                OK(clReleaseMemObject(a.image));
        clSVMFree(a.context, a.svm);
        for (cl_uint i = 0; i < a.count; i++)
                OK(clReleaseCommandQueue(a.queues[i]));
        OK(clReleaseContext(a.context));
        a = (struct act){ 0 };
}

static uint64_t now_us(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static unsigned gap(unsigned ms)
{
        uint64_t begin = now_us(), last = begin, longest = 0;
        int x = 0;
        while (last - begin < ms * 1000ull) {
                OK(clEnqueueReadBuffer(a.queues[0], a.buffer, CL_TRUE, 0, sizeof(x), &x, 0, NULL,
                                       NULL));
                uint64_t now = now_us();
                longest = now - last > longest ? now - last : longest;
                last = now;
        }
        return (unsigned)longest;
}

static void announce_devices(char *ret)
{
        for (cl_uint i = 0; i < device_count; i++)
                ret[i] = is_available(devices[i]) ? '1' : '0';
        ret[device_count] = 0;
}

static void reads(const char *until, char *ret)
{
        cl_int err;
        cl_command_queue q = a.queues[a.count - 1];
        cl_mem there = clCreateBuffer(a.context, CL_MEM_READ_WRITE, sizeof(err), NULL, &err);
        OK(err);
        OK(clEnqueueWriteBuffer(q, there, CL_TRUE, 0, sizeof(err), &err, 0, NULL, NULL));
        for (announce_devices(ret); strcmp(ret, until) != 0; announce_devices(ret))
                OK(clEnqueueReadBuffer(q, there, CL_TRUE, 0, sizeof(err), &err, 0, NULL, NULL));
        OK(clReleaseMemObject(there));
}

/* False: leave. */
static bool act(const char *word, const char *rest, char *ret)
{
        if (!strcmp(word, "begin"))
                begin();
        else if (!strcmp(word, "compute"))
                compute();
        else if (!strcmp(word, "enqueue"))
                enqueue();
        else if (!strcmp(word, "settled"))
                sprintf(ret, "%u", settled());
        else if (!strcmp(word, "refused"))
                refused();
        else if (!strcmp(word, "end"))
                end();
        else if (!strcmp(word, "devices"))
                announce_devices(ret);
        else if (!strcmp(word, "until"))
                for (announce_devices(ret); strcmp(ret, rest) != 0; announce_devices(ret))
                        usleep(1000);
        else if (!strcmp(word, "watch"))
                watch(true);
        else if (!strcmp(word, "unwatch"))
                watch(false);
        else if (!strcmp(word, "told"))
                sprintf(ret, "%u", told((unsigned)atoi(rest)));
        else if (!strcmp(word, "hold") || !strcmp(word, "go"))
                atomic_store(&held, word[0] == 'h');
        else if (!strcmp(word, "reads"))
                reads(rest, ret);
        else if (!strcmp(word, "gap"))
                sprintf(ret, "%u", gap((unsigned)atoi(rest)));
        else if (!strcmp(word, "notices"))
                sprintf(ret, "%u", atomic_load(&notices));
        else
                return false;
        return true;
}

int main(int argc, char **argv)
{
        char line[100], word[20], rest[20], answer[100];
        builtin = argc > 1 && !strcmp(argv[1], "builtin");
        OK(clGetPlatformIDs(1, &platform, NULL));
        OK(clGetDeviceIDs(platform, builtin ? CL_DEVICE_TYPE_CUSTOM : CL_DEVICE_TYPE_ALL,
                          API_DEVICES_MAX, devices, &device_count));
        while (fgets(line, sizeof(line), stdin)) {
                answer[0] = word[0] = rest[0] = 0;
                sscanf(line, "%19s %19s", word, rest);
                if (!act(word, rest, answer))
                        return 0;
                printf("ok %s\n", answer);
                fflush(stdout);
        }
        return 0;
}
