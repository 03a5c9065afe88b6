/* Measures how an OpenCL implementation moves data between two of its devices. Within one context
 * the implementation moves it itself; from one context to another it goes through the host's
 * memory. Also measures whether memory that is pinned for one device is as good for the other.
 * Runs natively: OCL_ICD_VENDORS has to name the implementation. The moved data is checked.
 * Prints one JSON object.
 *
 *     bench_contexts [MIB] */

#include "opencl.h"
#include "samples.h"

#include <stdlib.h>
#include <string.h>

enum { PART = 2 << 20, RING = 4, ROUNDS = 5, DEVICES_MAX = 64 };

/* A device in a context. */
struct side {
        cl_context context;
        cl_command_queue queue;
        cl_mem data;
        cl_mem pinned_mem;
        unsigned char *pinned; /* RING parts */
};

static struct samples samples;
static cl_device_id devices[2];
static size_t size = (size_t)64 << 20;

/* Two devices of one platform; those that are no CPUs first. */
static void find_devices(void)
{
        static const cl_device_type kinds[] = { CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL };
        cl_platform_id platforms[16];
        cl_uint n = 0;
        check(clGetPlatformIDs(16, platforms, &n), "clGetPlatformIDs");
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
                for (cl_uint i = 0; i < n && i < 16; i++) {
                        cl_device_id all[DEVICES_MAX];
                        cl_uint count = 0;
                        if (clGetDeviceIDs(platforms[i], kinds[k], DEVICES_MAX, all, &count) ||
                            count < 2)
                                continue;
                        memcpy(devices, all, sizeof(devices));
                        return;
                }
        }
        fprintf(stderr, "bench_contexts: takes two devices of one platform\n");
        exit(1);
}

static cl_command_queue queue_new(cl_context context, cl_device_id device)
{
        cl_int err;
        cl_command_queue q = clCreateCommandQueue(context, device, 0, &err);
        check(err, "clCreateCommandQueue");
        return q;
}

static cl_mem buffer_new(cl_context context, cl_mem_flags flags, size_t bytes)
{
        cl_int err;
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE | flags, bytes, NULL, &err);
        check(err, "clCreateBuffer");
        return m;
}

static void fill(cl_command_queue q, cl_mem m, cl_uint value)
{
        check(clEnqueueFillBuffer(q, m, &value, sizeof(value), 0, size, 0, NULL, NULL),
              "clEnqueueFillBuffer");
        check(clFinish(q), "clFinish");
}

static void expect(cl_command_queue q, cl_mem m, cl_uint value, const char *name)
{
        const size_t places[] = { 0, size / 2, size - sizeof(value) };
        for (size_t i = 0; i < 3; i++) {
                cl_uint got = 0;
                check(clEnqueueReadBuffer(q, m, CL_TRUE, places[i], sizeof(got), &got, 0, NULL,
                                          NULL),
                      "clEnqueueReadBuffer");
                if (got != value) {
                        fprintf(stderr, "bench_contexts: %s: %u, not %u\n", name, got, value);
                        exit(1);
                }
        }
}

static void add_rate(double began)
{
        samples_add(&samples, (double)size * 1e-3 / (now_us() - began));
}

/* ---- the implementation's own way ------------------------------------------------------------ */

static void bench_one_context(void)
{
        cl_int err;
        cl_context context = clCreateContext(NULL, 2, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
        cl_command_queue q[2] = { queue_new(context, devices[0]), queue_new(context, devices[1]) };
        cl_mem m = buffer_new(context, 0, size), n = buffer_new(context, 0, size);
        for (cl_uint i = 0; i <= ROUNDS; i++) {
                fill(q[0], m, i);
                double began = now_us();
                check(clEnqueueMigrateMemObjects(q[1], 1, &m, 0, 0, NULL, NULL),
                      "clEnqueueMigrateMemObjects");
                check(clFinish(q[1]), "clFinish");
                if (i)
                        add_rate(began);
                expect(q[1], m, i, "migrate");
        }
        samples_print(&samples, "one_context_migrate", "GB/s");
        for (cl_uint i = 0; i <= ROUNDS; i++) {
                fill(q[1], n, 77);
                fill(q[0], m, i);
                double began = now_us();
                check(clEnqueueCopyBuffer(q[1], m, n, 0, 0, size, 0, NULL, NULL),
                      "clEnqueueCopyBuffer");
                check(clFinish(q[1]), "clFinish");
                if (i)
                        add_rate(began);
                expect(q[1], n, i, "copy");
        }
        samples_print(&samples, "one_context_copy", "GB/s");
        clReleaseMemObject(m);
        clReleaseMemObject(n);
        clReleaseCommandQueue(q[0]);
        clReleaseCommandQueue(q[1]);
        clReleaseContext(context);
}

/* ---- a context for each ---------------------------------------------------------------------- */

static void side_init(struct side *s, cl_device_id device)
{
        cl_int err;
        s->context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        check(err, "clCreateContext");
        s->queue = queue_new(s->context, device);
        s->data = buffer_new(s->context, 0, size);
        s->pinned_mem = buffer_new(s->context, CL_MEM_ALLOC_HOST_PTR, (size_t)RING * PART);
        s->pinned = clEnqueueMapBuffer(s->queue, s->pinned_mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                       0, (size_t)RING * PART, 0, NULL, NULL, &err);
        check(err, "clEnqueueMapBuffer");
}

static void side_fini(struct side *s)
{
        check(clEnqueueUnmapMemObject(s->queue, s->pinned_mem, s->pinned, 0, NULL, NULL),
              "clEnqueueUnmapMemObject");
        check(clFinish(s->queue), "clFinish");
        clReleaseMemObject(s->pinned_mem);
        clReleaseMemObject(s->data);
        clReleaseCommandQueue(s->queue);
        clReleaseContext(s->context);
}

/* Transfer all of it in parts that do not block, between a device and `memory`. Also measure how
 * long the calls took. */
static void bench_parts(const char *name, const struct side *s, unsigned char *memory, int write)
{
        char calls[64];
        double in_calls[ROUNDS];
        for (int i = 0; i <= ROUNDS; i++) {
                double began = now_us(), spent = 0;
                for (size_t at = 0; at < size; at += PART) {
                        unsigned char *p = memory + at / PART % RING * PART;
                        double before = now_us();
                        check(write ? clEnqueueWriteBuffer(s->queue, s->data, CL_FALSE, at, PART, p,
                                                           0, NULL, NULL)
                                    : clEnqueueReadBuffer(s->queue, s->data, CL_FALSE, at, PART, p,
                                                          0, NULL, NULL),
                              "clEnqueue");
                        spent += now_us() - before;
                }
                check(clFinish(s->queue), "clFinish");
                if (!i)
                        continue;
                add_rate(began);
                in_calls[i - 1] = spent / (double)(size / PART);
        }
        samples_print(&samples, name, "GB/s");
        for (int i = 0; i < ROUNDS; i++)
                samples_add(&samples, in_calls[i]);
        snprintf(calls, sizeof(calls), "%s_call", name);
        samples_print(&samples, calls, "us");
}

/* From device to device, a ring of parts between them. */
static void bench_ring(const char *name, const struct side *from, const struct side *to,
                       unsigned char *ring)
{
        for (cl_uint i = 0; i <= ROUNDS; i++) {
                cl_event written[RING] = { 0 };
                fill(from->queue, from->data, i);
                fill(to->queue, to->data, 77);
                double began = now_us();
                size_t read = 0, taken = 0;
                cl_event reads[RING] = { 0 };
                while (taken < size) {
                        while (read < size && read < taken + (size_t)RING * PART) {
                                unsigned slot = (unsigned)(read / PART % RING);
                                if (written[slot]) {
                                        check(clWaitForEvents(1, &written[slot]),
                                              "clWaitForEvents");
                                        clReleaseEvent(written[slot]);
                                        written[slot] = NULL;
                                }
                                check(clEnqueueReadBuffer(from->queue, from->data, CL_FALSE, read,
                                                          PART, ring + (size_t)slot * PART, 0, NULL,
                                                          &reads[slot]),
                                      "clEnqueueReadBuffer");
                                clFlush(from->queue);
                                read += PART;
                        }
                        unsigned slot = (unsigned)(taken / PART % RING);
                        check(clWaitForEvents(1, &reads[slot]), "clWaitForEvents");
                        clReleaseEvent(reads[slot]);
                        check(clEnqueueWriteBuffer(to->queue, to->data, CL_FALSE, taken, PART,
                                                   ring + (size_t)slot * PART, 0, NULL,
                                                   &written[slot]),
                              "clEnqueueWriteBuffer");
                        clFlush(to->queue);
                        taken += PART;
                }
                check(clFinish(to->queue), "clFinish");
                if (i)
                        add_rate(began);
                for (int k = 0; k < RING; k++)
                        if (written[k])
                                clReleaseEvent(written[k]);
                expect(to->queue, to->data, i, name);
        }
        samples_print(&samples, name, "GB/s");
}

int main(int argc, char **argv)
{
        struct side a, b;
        unsigned char *plain = aligned_alloc(4096, (size_t)RING * PART);
        if (argc > 1)
                size = (size_t)atol(argv[1]) << 20;
        size = size < PART ? PART : size / PART * PART;
        if (!plain)
                return 1;
        memset(plain, 1, (size_t)RING * PART);
        find_devices();
        bench_one_context();
        side_init(&a, devices[0]);
        side_init(&b, devices[1]);
        bench_parts("read_own", &a, a.pinned, 0);
        bench_parts("read_others", &a, b.pinned, 0);
        bench_parts("read_plain", &a, plain, 0);
        bench_parts("write_own", &a, a.pinned, 1);
        bench_parts("write_others", &a, b.pinned, 1);
        bench_parts("write_plain", &a, plain, 1);
        bench_ring("ring_of_reader", &a, &b, a.pinned);
        bench_ring("ring_of_writer", &a, &b, b.pinned);
        bench_ring("ring_plain", &a, &b, plain);
        printf("\n}\n");
        side_fini(&a);
        side_fini(&b);
        free(plain);
        return 0;
}
