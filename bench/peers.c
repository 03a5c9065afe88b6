/* Measures the traffic among servers: events and data go from the first device to the second one,
 * and to all others. Each device is on a server of its own. Chains are enqueued behind a user
 * event, so that the client is idle while they run. Timed operations are checked. Prints one JSON
 * object.
 *
 *     bench_peers [--only PREFIX] [--scale PERCENT] [--max-mib N] [--count N] */

#include "opencl.h"
#include "samples.h"

#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

enum { DEVICES_MAX = 16, CHAIN = 200 };

static const char source[] = "__kernel void tick(__global uint *n) { n[0]++; }\n";

static struct samples samples;
static const char *only = "";
static int scale = 100, exactly;
static size_t max_mib = 256;

static cl_context context;
static cl_device_id devices[DEVICES_MAX];
static cl_command_queue queues[DEVICES_MAX];
static cl_uint count;
static cl_kernel tick;

static int wanted(const char *name)
{
        return strncmp(name, only, strlen(only)) == 0;
}

static int times(int full)
{
        int n = full * scale / 100;
        return exactly ? exactly : n < 3 ? 3 : n;
}

static cl_mem buffer_new(size_t size)
{
        cl_int err;
        cl_uint pattern = 0;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        check(err, "clCreateBuffer");
        check(clEnqueueFillBuffer(queues[0], m, &pattern, 4, 0, size, 0, NULL, NULL),
              "clEnqueueFillBuffer");
        check(clFinish(queues[0]), "clFinish");
        return m;
}

static void launch(cl_uint device, cl_mem m, cl_uint waits, const cl_event *list, cl_event *ret)
{
        size_t one = 1;
        check(clSetKernelArg(tick, 0, sizeof(m), &m), "clSetKernelArg");
        check(clEnqueueNDRangeKernel(queues[device], tick, 1, NULL, &one, &one, waits, list, ret),
              "clEnqueueNDRangeKernel");
}

static void expect(cl_uint device, cl_mem m, cl_uint expected, const char *name)
{
        cl_uint value = 0;
        check(clEnqueueReadBuffer(queues[device], m, CL_TRUE, 0, 4, &value, 0, NULL, NULL),
              "clEnqueueReadBuffer");
        if (value == expected)
                return;
        fprintf(stderr, "bench_peers: %s: counted %u, not %u\n", name, value, expected);
        exit(1);
}

/* Each kernel waits for the one before, which ran on the device before it of `n`, and counts in its
 * device's buffer. */
static void bench_chain(const char *name, cl_uint n, const cl_mem *counters)
{
        int rounds = times(20);
        for (int i = 0; i < rounds + 1; i++) {
                cl_int err;
                cl_event gate = clCreateUserEvent(context, &err), last = gate;
                check(err, "clCreateUserEvent");
                for (cl_uint k = 0; k < CHAIN; k++) {
                        cl_event next;
                        launch(k % n, counters[k % n], 1, &last, &next);
                        if (last != gate)
                                clReleaseEvent(last);
                        last = next;
                }
                for (cl_uint k = 0; k < n; k++)
                        check(clFlush(queues[k]), "clFlush");
                usleep(20000); /* it is all there */
                double begin = now_us();
                check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
                check(clWaitForEvents(1, &last), "clWaitForEvents");
                if (i)
                        samples_add(&samples, (now_us() - begin) / CHAIN);
                clReleaseEvent(last);
                clReleaseEvent(gate);
        }
        cl_uint each = counters[0] == counters[n - 1] ? CHAIN : CHAIN / n;
        expect(0, counters[0], each * (cl_uint)(rounds + 1), name);
        samples_print(&samples, name, "us");
}

static void bench_hops(void)
{
        cl_mem m[2] = { buffer_new(4), buffer_new(4) };
        if (wanted("kernel_chain"))
                bench_chain("kernel_chain", 1, m);
        clReleaseMemObject(m[0]);
        m[0] = buffer_new(4);
        if (wanted("event_hop"))
                bench_chain("event_hop", 2, m);
        clReleaseMemObject(m[0]);
        m[0] = buffer_new(4);
        if (wanted("migrate_4b"))
                bench_chain("migrate_4b", 2, (const cl_mem[]){ m[0], m[0] });
        clReleaseMemObject(m[0]);
        clReleaseMemObject(m[1]);
}

/* The first device changes a word; then devices 1 to `last` have it all. */
static void spread(const char *name, size_t size, cl_uint last, const char *unit)
{
        if (!wanted(name) || size > max_mib * MIB)
                return;
        int rounds = times(8);
        cl_mem m = buffer_new(size);
        for (int i = 0; i < rounds + 1; i++) {
                launch(0, m, 0, NULL, NULL);
                check(clFinish(queues[0]), "clFinish");
                double begin = now_us();
                for (cl_uint k = 1; k <= last; k++) {
                        check(clEnqueueMigrateMemObjects(queues[k], 1, &m, 0, 0, NULL, NULL),
                              "clEnqueueMigrateMemObjects");
                        check(clFlush(queues[k]), "clFlush");
                }
                for (cl_uint k = 1; k <= last; k++)
                        check(clFinish(queues[k]), "clFinish");
                double took = now_us() - begin;
                if (i)
                        samples_add(&samples,
                                    unit[0] == 'm' ? took * 1e-3 : (double)size * 1e-3 / took);
        }
        for (cl_uint k = 1; k <= last; k++)
                expect(k, m, (cl_uint)(rounds + 1), name);
        samples_print(&samples, name, unit);
        clReleaseMemObject(m);
}

/* All but the last device have what the first changed; then the last one has it, too. */
static void join(const char *name, size_t size)
{
        if (!wanted(name) || size > max_mib * MIB || count < 3)
                return;
        int rounds = times(8);
        cl_mem m = buffer_new(size);
        for (int i = 0; i < rounds + 1; i++) {
                launch(0, m, 0, NULL, NULL);
                check(clFinish(queues[0]), "clFinish");
                double begin = 0;
                for (cl_uint k = 1; k < count; k++) {
                        begin = now_us();
                        check(clEnqueueMigrateMemObjects(queues[k], 1, &m, 0, 0, NULL, NULL),
                              "clEnqueueMigrateMemObjects");
                        check(clFinish(queues[k]), "clFinish");
                }
                if (i)
                        samples_add(&samples, (now_us() - begin) * 1e-3);
        }
        expect(count - 1, m, (cl_uint)(rounds + 1), name);
        samples_print(&samples, name, "ms");
        clReleaseMemObject(m);
}

static void start(void)
{
        cl_platform_id platform;
        cl_int err;
        const char *text = source;
        check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count),
              "clGetDeviceIDs");
        if (count < 2) {
                fprintf(stderr, "bench_peers: takes two devices\n");
                exit(1);
        }
        count = count < DEVICES_MAX ? count : DEVICES_MAX;
        context = clCreateContext(NULL, count, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        for (cl_uint i = 0; i < count; i++) {
                queues[i] = clCreateCommandQueue(context, devices[i], 0, &err);
                check(err, "clCreateCommandQueue");
        }
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        check(err, "clCreateProgramWithSource");
        check(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
        tick = clCreateKernel(program, "tick", &err);
        check(err, "clCreateKernel");
        clReleaseProgram(program);
}

int main(int argc, char **argv)
{
        static const struct option names[] = {
                { "only", required_argument, NULL, 'o' },
                { "scale", required_argument, NULL, 's' },
                { "max-mib", required_argument, NULL, 'm' },
                { "count", required_argument, NULL, 'c' },
                { 0 },
        };
        for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                switch (c) {
                case 'o':
                        only = optarg;
                        break;
                case 's':
                        scale = atoi(optarg);
                        break;
                case 'm':
                        max_mib = (size_t)atol(optarg);
                        break;
                case 'c':
                        exactly = atoi(optarg);
                        break;
                default:
                        return 2;
                }
        }
        start();
        bench_hops();
        spread("migrate_16m", 16 * MIB, 1, "GB/s");
        spread("migrate_128m", 128 * MIB, 1, "GB/s");
        spread("migrate_256m", 256 * MIB, 1, "GB/s");
        spread("send_64m", 64 * MIB, 1, "ms");
        spread("broadcast_64m", 64 * MIB, count - 1, "ms");
        join("join_64m", 64 * MIB);
        spread("send_256m", 256 * MIB, 1, "ms");
        spread("broadcast_256m", 256 * MIB, count - 1, "ms");
        join("join_256m", 256 * MIB);
        printf("\n}\n");
        clReleaseKernel(tick);
        for (cl_uint i = 0; i < count; i++)
                clReleaseCommandQueue(queues[i]);
        clReleaseContext(context);
        return 0;
}
