/* quota: a session that does what the lines of its input say, and answers each with a line.
 *
 *   take MIB    makes a buffer and fills it: the status of that command
 *   free        releases the newest buffer, and waits until the server has done so
 *   use         runs a kernel on the newest buffer: its status
 *   run MS      runs a kernel for about that long, several times: its status
 *   build N KIB builds N programs at once, each with so many KiB of constants: the first error, or 0
 *   on N        goes on with device N, in a context of its own: 0
 *   shared N    goes on with device N, in a context of all devices: 0
 *   spread N MIB  makes and fills a buffer in each of N new contexts of the device: how many were filled
 *   part MIB    makes and fills a buffer in a context of a sub-device: the status of that command
 *   svm MIB     makes an allocation of shared virtual memory, and frees it: 1 if there is one
 *   said        the last sentence that an error callback got, or "nothing" */
#include "try.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS = 64, PROGRAMS = 16, DEVICES = 4, SPREAD = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t built = PTHREAD_COND_INITIALIZER;
static char said[512] = "nothing";
static cl_device_id devices[DEVICES], device;
static cl_uint device_count;
static cl_context context;
static cl_command_queue queue;

/* A device in a context of its own, or in one of all. */
static struct place {
        cl_context context;
        cl_command_queue queue;
        cl_kernel kernel, touch;
        cl_mem number;
} places[DEVICES][2], *here;

static void CL_CALLBACK on_error(const char *text, const void *data, size_t size, void *user)
{
        (void)data, (void)size, (void)user;
        pthread_mutex_lock(&lock);
        snprintf(said, sizeof(said), "%s", text);
        pthread_mutex_unlock(&lock);
}

static cl_int fate_of(cl_event event)
{
        cl_int status = 0;
        (void)clWaitForEvents(1, &event);
        TRY(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                           NULL));
        TRY(clReleaseEvent(event));
        return status;
}

static cl_int take(size_t mib, cl_mem *ret)
{
        const cl_int zero = 0;
        cl_event event;
        cl_int err;
        *ret = clCreateBuffer(context, CL_MEM_READ_WRITE, mib << 20, NULL, &err);
        TRY(err);
        err = clEnqueueFillBuffer(queue, *ret, &zero, sizeof(zero), 0, mib << 20, 0, NULL, &event);
        return err ? err : fate_of(event);
}

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void go(unsigned number, bool shared)
{
        struct place *p = &places[number][shared];
        cl_int err;
        device = devices[number];
        for (unsigned i = 0; i < device_count && shared && !p->context; i++)
                p->context = places[i][1].context;
        if (!p->context) {
                p->context = clCreateContext(NULL, shared ? device_count : 1,
                                             shared ? devices : &device, on_error, NULL, &err);
                TRY(err);
        }
        if (!p->queue) {
                p->queue = clCreateCommandQueueWithProperties(p->context, device, NULL, &err);
                TRY(err);
        }
        context = p->context;
        queue = p->queue;
        here = p;
}

static unsigned spread(unsigned count, size_t mib)
{
        cl_context own_context = context, contexts[SPREAD];
        cl_command_queue own_queue = queue, queues[SPREAD];
        cl_mem buffers[SPREAD];
        unsigned filled = 0;
        cl_int err;
        for (unsigned i = 0; i < count; i++) {
                contexts[i] = context = clCreateContext(NULL, 1, &device, on_error, NULL, &err);
                TRY(err);
                queues[i] = queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
                TRY(err);
                filled += take(mib, &buffers[i]) == CL_SUCCESS;
        }
        for (unsigned i = 0; i < count; i++) {
                TRY(clReleaseMemObject(buffers[i]));
                TRY(clEnqueueMarkerWithWaitList(queues[i], 0, NULL, NULL));
                TRY(clFinish(queues[i])); /* behind the release */
                TRY(clReleaseCommandQueue(queues[i]));
                TRY(clReleaseContext(contexts[i]));
        }
        context = own_context;
        queue = own_queue;
        return filled;
}

static cl_int part(size_t mib)
{
        const cl_device_partition_property one_each[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        cl_context own_context = context;
        cl_command_queue own_queue = queue;
        cl_device_id *parts;
        cl_uint count;
        cl_mem buffer;
        cl_int err;
        TRY(clCreateSubDevices(device, one_each, 0, NULL, &count));
        parts = calloc(count, sizeof(*parts));
        TRY(clCreateSubDevices(device, one_each, count, parts, NULL));
        context = clCreateContext(NULL, 1, parts, on_error, NULL, &err);
        TRY(err);
        queue = clCreateCommandQueueWithProperties(context, parts[0], NULL, &err);
        TRY(err);
        cl_int status = take(mib, &buffer);
        TRY(clReleaseMemObject(buffer));
        TRY(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
        TRY(clFinish(queue)); /* behind the release */
        TRY(clReleaseCommandQueue(queue));
        TRY(clReleaseContext(context));
        for (cl_uint i = 0; i < count; i++)
                TRY(clReleaseDevice(parts[i]));
        free(parts);
        context = own_context;
        queue = own_queue;
        return status;
}

static int svm(size_t mib)
{
        void *p = clSVMAlloc(context, CL_MEM_READ_WRITE, mib << 20, 0);
        if (p)
                clSVMFree(context, p);
        return p != NULL;
}

static void make_kernel(void)
{
        static const char *source =
                "kernel void k(global int *p) { int x = p[0]; for (int i = 0; i < 10000000; i++)"
                " x = x * 3 + i; p[0] = x; }"
                "kernel void touch(global int *p) { p[0]++; }";
        cl_int err, zero = 0;
        if (here->kernel)
                return;
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        TRY(err);
        TRY(clBuildProgram(program, 1, &device, "", NULL, NULL));
        here->kernel = clCreateKernel(program, "k", &err);
        TRY(err);
        here->touch = clCreateKernel(program, "touch", &err);
        TRY(err);
        here->number = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, &err);
        TRY(err);
}

static cl_int use(cl_mem buffer)
{
        const size_t one = 1;
        cl_event event;
        make_kernel();
        TRY(clSetKernelArg(here->touch, 0, sizeof(buffer), &buffer));
        cl_int err =
                clEnqueueNDRangeKernel(queue, here->touch, 1, NULL, &one, NULL, 0, NULL, &event);
        return err ? err : fate_of(event);
}

static cl_int run(double ms)
{
        const size_t one = 1;
        cl_int err = CL_SUCCESS;
        make_kernel();
        TRY(clSetKernelArg(here->kernel, 0, sizeof(here->number), &here->number));
        for (double end = now_ms() + ms; !err && now_ms() < end;) {
                cl_event event;
                err = clEnqueueNDRangeKernel(queue, here->kernel, 1, NULL, &one, NULL, 0, NULL,
                                             &event);
                err = err ? err : fate_of(event);
        }
        return err;
}

static void CL_CALLBACK on_built(cl_program program, void *user)
{
        unsigned *left = user;
        (void)program;
        pthread_mutex_lock(&lock);
        --*left;
        pthread_cond_signal(&built);
        pthread_mutex_unlock(&lock);
}

static char *source_of(unsigned number, size_t kib)
{
        size_t size = (kib << 10) + 1;
        char *bytes = malloc(size), *source = malloc(size + 200);
        memset(bytes, 'a' + (int)(number % 26), size - 1);
        bytes[size - 1] = 0;
        sprintf(source,
                "constant char t[] = \"%s\"; kernel void k(global int *p) { p[0] = t[p[0]] + %u; } // %ld\n",
                bytes, number, (long)getpid());
        free(bytes);
        return source;
}

static cl_int build(unsigned count, size_t kib)
{
        static unsigned number;
        unsigned left = count;
        cl_int err, first = CL_SUCCESS;
        cl_build_status status;
        cl_program all[PROGRAMS];
        for (unsigned i = 0; i < count; i++) {
                char *source = source_of(++number, kib);
                all[i] = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &err);
                TRY(err);
                free(source);
                TRY(clBuildProgram(all[i], 1, &device, "", on_built, &left));
        }
        pthread_mutex_lock(&lock);
        while (left)
                pthread_cond_wait(&built, &lock);
        pthread_mutex_unlock(&lock);
        for (unsigned i = 0; i < count; i++) {
                TRY(clGetProgramBuildInfo(all[i], device, CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                          &status, NULL));
                first = first ? first : status;
                TRY(clReleaseProgram(all[i]));
        }
        return first;
}

int main(void)
{
        cl_mem buffers[BUFFERS];
        size_t count = 0;
        unsigned programs, kib, number, mib;
        char line[64];
        cl_platform_id platform;
        TRY(clGetPlatformIDs(1, &platform, NULL));
        if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, devices, &device_count) < 0)
                TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, DEVICES, devices,
                                   &device_count));
        device_count = device_count < DEVICES ? device_count : DEVICES;
        go(0, false);
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = 0;
                if (!strncmp(line, "take ", 5) && count < BUFFERS) {
                        printf("%d\n", take(strtoul(line + 5, NULL, 10), &buffers[count++]));
                } else if (!strcmp(line, "free") && count) {
                        TRY(clReleaseMemObject(buffers[--count]));
                        TRY(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
                        TRY(clFinish(queue)); /* behind the release */
                        printf("0\n");
                } else if (!strcmp(line, "use") && count) {
                        printf("%d\n", use(buffers[count - 1]));
                } else if (!strncmp(line, "run ", 4)) {
                        printf("%d\n", run(strtod(line + 4, NULL)));
                } else if (sscanf(line, "build %u %u", &programs, &kib) == 2 &&
                           programs <= PROGRAMS) {
                        printf("%d\n", build(programs, kib));
                } else if (sscanf(line, "on %u", &number) == 1 && number < device_count) {
                        go(number, false);
                        printf("0\n");
                } else if (sscanf(line, "shared %u", &number) == 1 && number < device_count) {
                        go(number, true);
                        printf("0\n");
                } else if (sscanf(line, "spread %u %u", &number, &mib) == 2 && number <= SPREAD) {
                        printf("%u\n", spread(number, mib));
                } else if (sscanf(line, "part %u", &mib) == 1) {
                        printf("%d\n", part(mib));
                } else if (sscanf(line, "svm %u", &mib) == 1) {
                        printf("%d\n", svm(mib));
                } else if (!strcmp(line, "said")) {
                        pthread_mutex_lock(&lock);
                        printf("%s\n", said);
                        pthread_mutex_unlock(&lock);
                } else {
                        return 2;
                }
                fflush(stdout);
        }
        return 0;
}
