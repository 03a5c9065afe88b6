/* Measures the cost of OpenCL calls on the first device of a platform. The same program runs
 * natively and through SpanCL; the ICD loader decides. Every timed operation is also checked.
 * Prints one JSON object; a measurement that fails ends the program with a message.
 *
 *     bench_opencl [--platform NAME | --native] [--only PREFIX] [--scale PERCENT] [--max-mib N] [--hold] */

#include "opencl.h"
#include "samples.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static const char source[] =
        "__kernel void tick(__global uint *n) { n[0]++; }\n"
        "__kernel void add(__global uint *n, uint a, uint b, uint c, uint d, uint e, uint f,\n"
        "                  uint g) { n[0] += a + b + c + d + e + f + g; }\n"
        "__kernel void linger(__global uint *n, uint rounds) {\n"
        "    uint x = n[0];\n"
        "    for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
        "    n[0] = x;\n"
        "}\n";

static struct samples samples;
static const char *only = "";
static int scale = 100;
static size_t max_mib = 256;

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_program program;
static cl_mem counter;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fprintf(stderr, "bench_opencl: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
        exit(1);
}

static int wanted(const char *name)
{
        return strncmp(name, only, strlen(only)) == 0;
}

static int times(int full)
{
        int n = full * scale / 100;
        return n < 3 ? 3 : n;
}

/* CPU time of this process, all threads: the application and its OpenCL implementation. */
static double cpu_us(void)
{
        struct rusage r;
        getrusage(RUSAGE_SELF, &r);
        return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
               (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void counter_reset(void)
{
        cl_uint zero = 0;
        check(clEnqueueWriteBuffer(queue, counter, CL_TRUE, 0, sizeof(zero), &zero, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

static void counter_expect(cl_uint expected, const char *name)
{
        cl_uint value = 0;
        check(clEnqueueReadBuffer(queue, counter, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL),
              "clEnqueueReadBuffer");
        if (value != expected)
                die("%s: counted %u, not %u", name, value, expected);
}

static cl_kernel kernel_new(const char *name)
{
        cl_int err;
        cl_kernel kernel = clCreateKernel(program, name, &err);
        check(err, "clCreateKernel");
        check(clSetKernelArg(kernel, 0, sizeof(counter), &counter), "clSetKernelArg");
        return kernel;
}

static void launch(cl_command_queue q, cl_kernel kernel, cl_uint waits, const cl_event *wait_list,
                   cl_event *ret_event)
{
        size_t one = 1;
        check(clEnqueueNDRangeKernel(q, kernel, 1, NULL, &one, &one, waits, wait_list, ret_event),
              "clEnqueueNDRangeKernel");
}

/* native: not SpanCL's. */
static void start(const char *platform_wanted, int native)
{
        cl_int err;
        double begin = now_us();
        cl_platform_id platforms[16];
        cl_uint count = 0;
        check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
        cl_platform_id platform = NULL;
        for (cl_uint i = 0; i < count && i < 16 && !platform; i++) {
                char name[256] = "";
                check(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL),
                      "clGetPlatformInfo");
                if (native && strstr(name, "SpanCL"))
                        continue;
                if (!platform_wanted || strstr(name, platform_wanted))
                        platform = platforms[i];
        }
        if (!platform)
                die("no such platform");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        check(clFinish(queue), "clFinish");
        samples_add(&samples, (now_us() - begin) * 1e-3);
        samples_print(&samples, "first_context", "ms");

        begin = now_us();
        const char *text = source;
        program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
        samples_add(&samples, (now_us() - begin) * 1e-3);
        samples_print(&samples, "build", "ms");

        counter = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &err);
        check(err, "clCreateBuffer");
}

static void stop(void)
{
        clReleaseMemObject(counter);
        clReleaseProgram(program);
        clReleaseCommandQueue(queue);
        clReleaseContext(context);
}

static void bench_empty(void)
{
        cl_kernel tick = kernel_new("tick");
        int count = times(2000);
        int warm = count / 10 + 1;
        double cpu = 0;
        counter_reset();
        for (int i = 0; i < warm + count; i++) {
                if (i == warm)
                        cpu = cpu_us();
                double begin = now_us();
                launch(queue, tick, 0, NULL, NULL);
                check(clFinish(queue), "clFinish");
                if (i >= warm)
                        samples_add(&samples, now_us() - begin);
        }
        cpu = (cpu_us() - cpu) / count;
        counter_expect((cl_uint)(warm + count), "empty_kernel_finish");
        samples_print(&samples, "empty_kernel_finish", "us");
        samples_add(&samples, cpu);
        samples_print(&samples, "empty_kernel_finish_cpu", "us");
        clReleaseKernel(tick);
}

static void bench_pipelined(void)
{
        cl_kernel tick = kernel_new("tick");
        int batch = 1000;
        int count = times(12);
        static struct samples cpu;
        counter_reset();
        for (int i = 0; i < count + 1; i++) {
                double begin = now_us(), cpu_begin = cpu_us();
                for (int j = 0; j < batch; j++)
                        launch(queue, tick, 0, NULL, NULL);
                check(clFinish(queue), "clFinish");
                if (i) {
                        samples_add(&samples, (now_us() - begin) / batch);
                        samples_add(&cpu, (cpu_us() - cpu_begin) / batch);
                }
        }
        counter_expect((cl_uint)(batch * (count + 1)), "pipelined");
        samples_print(&samples, "pipelined_kernel", "us");
        samples_print(&cpu, "pipelined_kernel_cpu", "us");
        clReleaseKernel(tick);
}

static void bench_chain(void)
{
        cl_int err;
        cl_command_queue out_of_order =
                clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &err);
        if (err != CL_SUCCESS)
                out_of_order = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        cl_kernel tick = kernel_new("tick");
        int length = 500;
        int count = times(12);
        counter_reset();
        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                cl_event last = NULL;
                for (int j = 0; j < length; j++) {
                        cl_event next;
                        launch(out_of_order, tick, last ? 1 : 0, last ? &last : NULL, &next);
                        if (last)
                                clReleaseEvent(last);
                        last = next;
                }
                check(clWaitForEvents(1, &last), "clWaitForEvents");
                clReleaseEvent(last);
                if (i)
                        samples_add(&samples, (now_us() - begin) / length);
        }
        counter_expect((cl_uint)(length * (count + 1)), "event_chain");
        samples_print(&samples, "event_chain_kernel", "us");
        clReleaseKernel(tick);
        clReleaseCommandQueue(out_of_order);
}

static void bench_args(void)
{
        cl_kernel add = kernel_new("add");
        int batch = 500;
        int count = times(12);
        cl_uint sum = 0;
        counter_reset();
        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                for (int j = 0; j < batch; j++) {
                        check(clSetKernelArg(add, 0, sizeof(counter), &counter), "clSetKernelArg");
                        for (cl_uint k = 1; k < 8; k++) {
                                cl_uint value = (cl_uint)(i * 31 + j) + k;
                                sum += value;
                                check(clSetKernelArg(add, k, sizeof(value), &value),
                                      "clSetKernelArg");
                        }
                        launch(queue, add, 0, NULL, NULL);
                }
                check(clFinish(queue), "clFinish");
                if (i)
                        samples_add(&samples, (now_us() - begin) / batch);
        }
        counter_expect(sum, "args8");
        samples_print(&samples, "args8_kernel", "us");
        clReleaseKernel(add);
}

/* Bytes that differ from one transfer to the next and from one place to another. */
static void pattern(uint8_t *data, size_t size, uint32_t seed)
{
        for (size_t i = 0; i + 4 <= size; i += 4) {
                uint32_t word = (uint32_t)i * 2654435761u + seed;
                memcpy(data + i, &word, 4);
        }
}

static void bench_transfer(const char *name, size_t size, int full)
{
        char metric[64];
        int count = times(full);
        cl_int err;
        uint8_t *data = malloc(size);
        uint8_t *back = malloc(size);
        if (!data || !back)
                die("out of memory");
        memset(back, 0, size);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");

        static struct samples reads;
        for (int i = 0; i < count + 1; i++) {
                pattern(data, size, (uint32_t)i);
                double begin = now_us();
                check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, data, 0, NULL, NULL),
                      "clEnqueueWriteBuffer");
                /* A write that returned may still be under way; its data is there after this. */
                check(clFinish(queue), "clFinish");
                double middle = now_us();
                check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, back, 0, NULL, NULL),
                      "clEnqueueReadBuffer");
                double end = now_us();
                if (memcmp(data, back, size) != 0)
                        die("%s: other bytes came back", name);
                if (!i)
                        continue;
                int small = size < MIB;
                double gb = (double)size * 1e-3;
                samples_add(&samples, small ? middle - begin : gb / (middle - begin));
                samples_add(&reads, small ? end - middle : gb / (end - middle));
        }
        snprintf(metric, sizeof(metric), "write_%s", name);
        samples_print(&samples, metric, size < MIB ? "us" : "GB/s");
        snprintf(metric, sizeof(metric), "read_%s", name);
        samples_print(&reads, metric, size < MIB ? "us" : "GB/s");

        clReleaseMemObject(buffer);
        free(data);
        free(back);
}

static uint8_t *map_all(cl_mem buffer, size_t size, cl_map_flags flags)
{
        cl_int err;
        uint8_t *p =
                clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, size, 0, NULL, NULL, &err);
        check(err, "clEnqueueMapBuffer");
        return p;
}

static void unmap_all(cl_mem buffer, void *p)
{
        check(clEnqueueUnmapMemObject(queue, buffer, p, 0, NULL, NULL), "clEnqueueUnmapMemObject");
        check(clFinish(queue), "clFinish");
}

/* The life of a buffer that is mapped once for writing and once for reading. */
static void bench_map_new(uint8_t *data, size_t size, int count)
{
        cl_int err;
        static struct samples cpu;
        enum { WARM = 4 };
        for (int i = 0; i < count + WARM; i++) {
                pattern(data, size, (uint32_t)i + 99);
                double begin = now_us(), cpu_begin = cpu_us();
                cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                               size, NULL, &err);
                check(err, "clCreateBuffer");
                uint8_t *p = map_all(buffer, size, CL_MAP_WRITE_INVALIDATE_REGION);
                memcpy(p, data, size);
                unmap_all(buffer, p);
                p = map_all(buffer, size, CL_MAP_READ);
                if (memcmp(p, data, size) != 0)
                        die("map_new_16m: other bytes came back");
                unmap_all(buffer, p);
                clReleaseMemObject(buffer);
                if (i < WARM)
                        continue;
                samples_add(&samples, now_us() - begin);
                samples_add(&cpu, cpu_us() - cpu_begin);
        }
        samples_print(&samples, "map_new_16m", "us");
        samples_print(&cpu, "map_new_16m_cpu", "us");
}

static void bench_map(void)
{
        cl_int err;
        size_t size = 16 * MIB;
        int count = times(10);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size,
                                       NULL, &err);
        check(err, "clCreateBuffer");
        uint8_t *data = malloc(size);
        if (!data)
                die("out of memory");

        static struct samples unmaps;
        for (int i = 0; i < count + 1; i++) {
                pattern(data, size, (uint32_t)i + 77);
                uint8_t *p =
                        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION,
                                           0, size, 0, NULL, NULL, &err);
                check(err, "clEnqueueMapBuffer");
                memcpy(p, data, size);
                double begin = now_us();
                check(clEnqueueUnmapMemObject(queue, buffer, p, 0, NULL, NULL),
                      "clEnqueueUnmapMemObject");
                check(clFinish(queue), "clFinish");
                double end = now_us();
                if (i)
                        samples_add(&unmaps, end - begin);

                begin = now_us();
                p = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL,
                                       &err);
                end = now_us();
                check(err, "clEnqueueMapBuffer");
                if (memcmp(p, data, size) != 0)
                        die("map_16m: other bytes came back");
                check(clEnqueueUnmapMemObject(queue, buffer, p, 0, NULL, NULL),
                      "clEnqueueUnmapMemObject");
                check(clFinish(queue), "clFinish");
                if (i)
                        samples_add(&samples, end - begin);
        }
        samples_print(&samples, "map_read_16m", "us");
        samples_print(&unmaps, "unmap_written_16m", "us");
        clReleaseMemObject(buffer);
        bench_map_new(data, size, count);
        free(data);
}

static void bench_objects(void)
{
        int batch = 200;
        int count = times(10);
        cl_int err;
        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                for (int j = 0; j < batch; j++) {
                        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &err);
                        check(err, "clCreateBuffer");
                        check(clReleaseMemObject(m), "clReleaseMemObject");
                }
                if (i)
                        samples_add(&samples, (now_us() - begin) / batch);
        }
        check(clFinish(queue), "clFinish");
        samples_print(&samples, "create_release_buffer", "us");

        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                for (int j = 0; j < batch; j++) {
                        cl_kernel k = clCreateKernel(program, "tick", &err);
                        check(err, "clCreateKernel");
                        check(clReleaseKernel(k), "clReleaseKernel");
                }
                if (i)
                        samples_add(&samples, (now_us() - begin) / batch);
        }
        check(clFinish(queue), "clFinish");
        samples_print(&samples, "create_release_kernel", "us");

        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                for (int j = 0; j < batch; j++) {
                        cl_command_queue q = clCreateCommandQueue(context, device, 0, &err);
                        check(err, "clCreateCommandQueue");
                        check(clReleaseCommandQueue(q), "clReleaseCommandQueue");
                }
                if (i)
                        samples_add(&samples, (now_us() - begin) / batch);
        }
        check(clFinish(queue), "clFinish");
        samples_print(&samples, "create_release_queue", "us");
}

/* Measure a kernel that takes a while and a blocking read of its result. A solver that checks
 * whether it has converged does this. */
static void bench_read_behind(const char *name, size_t size)
{
        enum { ROUNDS = 20000 }; /* some 20 µs on an H100 */
        char metric[64];
        int count = times(200);
        cl_int err;
        uint8_t *back = malloc(size);
        if (!back)
                die("out of memory");
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        cl_kernel linger = kernel_new("linger");
        cl_uint rounds = ROUNDS, x = 0, zero = 0;
        check(clSetKernelArg(linger, 0, sizeof(buffer), &buffer), "clSetKernelArg");
        check(clSetKernelArg(linger, 1, sizeof(rounds), &rounds), "clSetKernelArg");
        check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(zero), &zero, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
        for (int i = 0; i < count + 1; i++) {
                double begin = now_us();
                launch(queue, linger, 0, NULL, NULL);
                check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, back, 0, NULL, NULL),
                      "clEnqueueReadBuffer");
                if (i)
                        samples_add(&samples, now_us() - begin);
                for (cl_uint k = 0; k < rounds; k++)
                        x = x * 1664525u + 1013904223u;
                if (memcmp(&x, back, sizeof(x)) != 0)
                        die("%s: other bytes came back", name);
        }
        snprintf(metric, sizeof(metric), "read_behind_%s", name);
        samples_print(&samples, metric, "us");
        clReleaseKernel(linger);
        clReleaseMemObject(buffer);
        free(back);
}

int main(int argc, char **argv)
{
        static const struct option names[] = {
                { "platform", required_argument, NULL, 'p' },
                { "only", required_argument, NULL, 'o' },
                { "scale", required_argument, NULL, 's' },
                { "max-mib", required_argument, NULL, 'm' },
                { "hold", no_argument, NULL, 'h' },
                { "native", no_argument, NULL, 'n' },
                { 0 },
        };
        const char *platform = NULL;
        int hold = 0, native = 0;
        int c;
        while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
                if (c == 'p')
                        platform = optarg;
                else if (c == 'o')
                        only = optarg;
                else if (c == 's')
                        scale = atoi(optarg);
                else if (c == 'm')
                        max_mib = (size_t)atoi(optarg);
                else if (c == 'h')
                        hold = 1;
                else if (c == 'n')
                        native = 1;
                else
                        return 2;
        }

        start(platform, native);
        if (hold) {
                /* Hold an idle session, so that the caller can measure the server's memory
                 * meanwhile. */
                bench_empty();
                printf("\n");
                fflush(stdout);
                while (getchar() != EOF)
                        ;
                stop();
                printf("}\n");
                return 0;
        }
        if (wanted("empty_kernel_finish"))
                bench_empty();
        if (wanted("pipelined_kernel"))
                bench_pipelined();
        if (wanted("event_chain_kernel"))
                bench_chain();
        if (wanted("args8_kernel"))
                bench_args();
        if (wanted("create_release"))
                bench_objects();
        if (wanted("read_behind")) {
                bench_read_behind("4b", 4);
                bench_read_behind("4k", 4096);
                bench_read_behind("64k", 65536);
        }
        if (wanted("transfer")) {
                bench_transfer("4b", 4, 1000);
                bench_transfer("1m", MIB, 60);
                if (max_mib >= 16)
                        bench_transfer("16m", 16 * MIB, 10);
                if (max_mib >= 256)
                        bench_transfer("256m", 256 * MIB, 3);
        }
        if (wanted("map") && max_mib >= 16)
                bench_map();
        stop();
        printf("\n}\n");
        return 0;
}
