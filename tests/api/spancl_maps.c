/* The specification's rules on several mappings at once, and on commands that only wait.
 * servers: 2 */
#include <pthread.h>
#include <stdbool.h>

#include "api.h"
#include "stats.h"

enum { SIZE = 65536 };

static void *map(cl_command_queue q, cl_mem m, cl_map_flags flags, size_t offset, size_t size)
{
        cl_int e;
        void *p = clEnqueueMapBuffer(q, m, CL_TRUE, flags, offset, size, 0, NULL, NULL, &e);
        OK(e);
        CHECK(p);
        return p;
}

static void unmap(cl_command_queue q, cl_mem m, void *p)
{
        OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
}

static cl_uint map_count(cl_mem m)
{
        cl_uint n = 99;
        OK(clGetMemObjectInfo(m, CL_MEM_MAP_COUNT, sizeof(n), &n, NULL));
        return n;
}

static cl_mem sub_buffer(cl_mem m, size_t origin, size_t size)
{
        const cl_buffer_region region = { origin, size };
        cl_int e;
        cl_mem s = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        return s;
}

/* Bytes may be mapped for writing twice, through whatever object, and what is written through one mapping stays when
 * the next one is made. */
static void writers(struct api *a, cl_mem_flags flags)
{
        static const cl_map_flags write[] = { CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                              CL_MAP_WRITE_INVALIDATE_REGION };
        uint8_t *host = api_alloc(SIZE), *out = api_alloc(SIZE);
        cl_command_queue q = a->queues[0], r = api_queue(a, 1);
        api_pattern(host, SIZE, 4);
        memcpy(out, host, SIZE);
        cl_mem m = api_buffer(a, flags, SIZE, host), s = sub_buffer(m, 16384, 16384);
        for (int i = 0; i < 3; i++) {
                uint8_t *p = map(q, m, write[i], 16000, 1000);
                memset(p, i + 30, 1000);
                uint8_t *inner = map(r, m, CL_MAP_WRITE, 16999, 1);
                uint8_t *other = map(r, s, CL_MAP_WRITE_INVALIDATE_REGION, 0, 100);
                CHECK(inner == p + 999 && other == p + 384 && *inner == i + 30);
                CHECK(map_count(m) == 2 && map_count(s) == 1);
                unmap(r, s, other);
                unmap(r, m, inner);
                for (int at = 15995; at <= 16995; at += 1000) {
                        /* Over one of its ends: the other bytes are as they were. */
                        uint8_t *over = map(r, m, CL_MAP_READ | CL_MAP_WRITE, (size_t)at, 10);
                        for (int k = at; k < at + 10; k++) {
                                bool in = k >= 16000 && k < 17000, next = i && k >= 17000;
                                uint8_t now = (uint8_t)(in ? i + 30 : next ? i + 9 : out[k]);
                                if (i && k == 15999)
                                        now = (uint8_t)(i + 19);
                                CHECK(over[k - at] == now);
                        }
                        unmap(r, m, over);
                }
                /* Beside it, and for reading. */
                uint8_t *beside = map(r, s, write[i], 17000 - 16384, 64);
                CHECK(beside == p + 1000);
                uint8_t *before = map(q, m, write[i], 15999, 1);
                CHECK(before == p - 1);
                memset(p, i, 1000);
                /* Reading maps leave alone what is written in others. */
                uint8_t *inside = map(r, m, CL_MAP_READ, 16100, 200);
                CHECK(inside == p + 100 && inside[0] == i && inside[199] == i);
                unmap(r, m, inside);
                memset(beside, i + 10, 64);
                *before = (uint8_t)(i + 20);
                EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, m, beside, 0, NULL, NULL));
                CHECK(map_count(m) == 2 && map_count(s) == 1);
                unmap(q, m, p);
                EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                unmap(r, s, beside);
                unmap(q, m, before);
                OK(clFinish(q));
                OK(clFinish(r));
                CHECK(map_count(m) == 0 && map_count(s) == 0);
                uint8_t *all = map(q, m, CL_MAP_READ, 0, SIZE);
                CHECK(all[15998] == out[15998] && all[15999] == i + 20);
                for (int k = 0; k < 1000; k++)
                        CHECK(all[16000 + k] == i);
                for (int k = 0; k < 64; k++)
                        CHECK(all[17000 + k] == i + 10);
                CHECK(!memcmp(all + 17064, out + 17064, SIZE - 17064));
                if (flags & CL_MEM_USE_HOST_PTR)
                        CHECK(all == host);
                unmap(q, m, all);
                OK(clFinish(q));
        }
        /* An object that goes leaves nothing mapped. */
        map(q, s, CL_MAP_WRITE, 0, 100);
        OK(clReleaseMemObject(s));
        unmap(q, m, map(q, m, CL_MAP_WRITE, 16384, 100));
        OK(clFinish(q));
        OK(clReleaseMemObject(m));
        free(host);
        free(out);
}

/* Mappings that begin at the same byte are unmapped one by one. A mapping for writing is written
 * with its own size. */
static void same_address(struct api *a, cl_mem_flags flags)
{
        enum { AT = 4096, SHORT = 1000, LONG = 30000 };
        uint8_t *host = api_alloc(SIZE), *model = api_alloc(SIZE);
        api_pattern(host, SIZE, 6);
        memcpy(model, host, SIZE);
        cl_mem m = api_buffer(a, flags, SIZE, host), s = sub_buffer(m, AT, LONG);
        for (unsigned i = 0; i < 8; i++) {
                cl_command_queue q = api_queue(a, i), r = api_queue(a, i + 1);
                const size_t first = i & 1 ? SHORT : LONG, second = i & 2 ? SHORT : LONG;
                uint8_t *p = map(q, m, CL_MAP_READ, AT, first);
                CHECK(map(r, m, CL_MAP_READ, AT, second) == p);
                CHECK(map(r, s, CL_MAP_READ, 0, second) == p);
                CHECK(map_count(m) == 2 && map_count(s) == 1);
                unmap(i & 4 ? q : r, m, p);
                OK(clFinish(q));
                OK(clFinish(r));
                CHECK(map_count(m) == 1 && map_count(s) == 1);
                CHECK(!memcmp(p, model + AT, SHORT));
                unmap(q, m, p);
                EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                CHECK(map_count(m) == 0 && map_count(s) == 1);
                CHECK(!memcmp(p, model + AT, second));
                unmap(r, s, p);
                OK(clFinish(r));
                CHECK(map_count(s) == 0);

                /* One of two is for writing. */
                const cl_map_flags one = i & 4 ? CL_MAP_WRITE : CL_MAP_READ;
                p = map(q, m, one, AT, first);
                CHECK(map(q, m, one ^ CL_MAP_READ ^ CL_MAP_WRITE, AT, second) == p);
                const size_t written = i & 4 ? first : second;
                memset(p, (int)i, written);
                memset(model + AT, (int)i, written);
                unmap(q, m, p);
                CHECK(map_count(m) == 1);
                unmap(q, m, p);
                CHECK(map_count(m) == 0);
                OK(clFinish(q));
                uint8_t *all = map(r, m, CL_MAP_READ, 0, SIZE);
                CHECK(!memcmp(all, model, SIZE));
                unmap(r, m, all);
                /* The next ones show what the device has. */
                memset(model + AT, 77, LONG);
                const uint8_t new = 77;
                OK(clEnqueueFillBuffer(r, m, &new, 1, AT, LONG, 0, NULL, NULL));
                OK(clFinish(r));
        }
        OK(clReleaseMemObject(s));
        OK(clReleaseMemObject(m));
        free(host);
        free(model);
}

static cl_int map_image(cl_command_queue q, cl_mem m, cl_map_flags flags, const size_t origin[3],
                        const size_t region[3], void **ret)
{
        size_t row, slice;
        cl_int e;
        *ret = clEnqueueMapImage(q, m, CL_TRUE, flags, origin, region, &row, &slice, 0, NULL, NULL,
                                 &e);
        return e;
}

static void image_writers(struct api *a)
{
        static const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                     .image_width = 64,
                                     .image_height = 64 };
        const cl_image_desc row = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 64 };
        const size_t left[3] = { 0, 0, 0 }, right[3] = { 32, 0, 0 }, half[3] = { 32, 64, 1 };
        const size_t middle[3] = { 31, 63, 0 }, one[3] = { 2, 1, 1 };
        cl_command_queue q = a->queues[0];
        cl_int e;
        void *p, *r, *none;
        cl_mem m = clCreateImage(a->context, 0, &format, &desc, NULL, &e);
        OK(e);
        OK(map_image(q, m, CL_MAP_WRITE, left, half, &p));
        EXPECT(CL_INVALID_OPERATION, map_image(q, m, CL_MAP_WRITE, middle, one, &none));
        OK(map_image(q, m, CL_MAP_WRITE_INVALIDATE_REGION, right, half, &r));
        unmap(q, m, p);
        unmap(q, m, r);
        OK(clFinish(q));
        OK(clReleaseMemObject(m));

        /* An image in a buffer has the buffer's bytes. */
        cl_mem b = api_buffer(a, 0, 1024, NULL);
        cl_image_desc in_buffer = row;
        in_buffer.mem_object = b;
        m = clCreateImage(a->context, 0, &format, &in_buffer, NULL, &e);
        OK(e);
        const size_t first[3] = { 8, 1, 1 };
        OK(map_image(q, m, CL_MAP_WRITE, left, first, &p));
        EXPECT_ERROR(CL_INVALID_OPERATION,
                     clEnqueueMapBuffer(q, b, CL_TRUE, CL_MAP_WRITE, 31, 1, 0, NULL, NULL, &error));
        unmap(q, b, map(q, b, CL_MAP_WRITE, 32, 1));
        unmap(q, m, p);
        OK(clFinish(q));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(b));
}

/* In a queue without order only barriers and wait lists make a command wait. */
static void no_order(struct api *a)
{
        uint8_t host[256] = { 1, 2, 3 };
        cl_int e;
        cl_command_queue q = clCreateCommandQueue(a->context, a->devices[0],
                                                  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e);
        OK(e);
        cl_event gate = clCreateUserEvent(a->context, &e), held, nothing, behind;
        OK(e);
        cl_mem m = api_buffer(a, CL_MEM_USE_HOST_PTR, sizeof(host), host);
        cl_mem other = api_buffer(a, 0, 64, NULL);
        OK(clEnqueueFillBuffer(q, other, host, 1, 0, 64, 1, &gate, &held));
        /* These must not wait for what the user event holds. */
        uint8_t *p = map(q, m, CL_MAP_READ, 0, sizeof(host));
        CHECK(p == host && p[2] == 3);
        OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, &nothing));
        OK(clWaitForEvents(1, &nothing));
        OK(clReleaseEvent(nothing));
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, 0, host, 0, NULL, NULL));
        OK(clEnqueueMigrateMemObjects(q, 1, &m, 0, 0, NULL, &nothing));
        OK(clWaitForEvents(1, &nothing));
        CHECK(api_status(held) > CL_COMPLETE);
        /* Behind a barrier they wait for it, in the wait list of one that is complete or not. */
        OK(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
        OK(clEnqueueMarkerWithWaitList(q, 1, &nothing, &behind));
        OK(clFlush(q));
        CHECK(api_status(behind) > CL_COMPLETE);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clWaitForEvents(1, &behind));
        CHECK(api_status(held) == CL_COMPLETE);
        OK(clReleaseEvent(behind));
        OK(clReleaseEvent(nothing));
        OK(clReleaseEvent(held));
        OK(clReleaseEvent(gate));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(other));
        OK(clReleaseCommandQueue(q));
}

/* A barrier that runs holds back a marker whose wait list is complete. */
static void behind_barrier(struct api *a)
{
        static const char source[] =
                "kernel void work(global uint *p) {\n"
                "  uint x = get_global_id(0);\n"
                "  for (uint i = 0; i < 30000000u; i++) x = x * 1664525u + 1013904223u;\n"
                "  p[get_global_id(0)] = x;\n"
                "}\n";
        const size_t one = 1;
        cl_int e;
        cl_command_queue q = clCreateCommandQueue(a->context, a->devices[0],
                                                  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &e);
        OK(e);
        cl_mem m = api_buffer(a, 0, 64, NULL);
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "work");
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        cl_event early, barrier, late;
        OK(clEnqueueMarkerWithWaitList(q, 0, NULL, &early));
        OK(clWaitForEvents(1, &early));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueBarrierWithWaitList(q, 0, NULL, &barrier));
        OK(clEnqueueMarkerWithWaitList(q, 1, &early, &late));
        OK(clWaitForEvents(1, &late));
        CHECK(api_status(barrier) == CL_COMPLETE);
        OK(clReleaseEvent(early));
        OK(clReleaseEvent(barrier));
        OK(clReleaseEvent(late));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
        OK(clReleaseCommandQueue(q));
}

/* CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED leaves an object that can be used, whatever is in it. */
static void undefined(struct api *a)
{
        uint8_t *host = api_alloc(SIZE), *out = api_alloc(SIZE);
        api_pattern(host, SIZE, 8);
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, SIZE, host);
        for (unsigned i = 0; i < 4; i++) {
                cl_command_queue q = api_queue(a, i);
                cl_event e;
                OK(clEnqueueMigrateMemObjects(q, 1, &m, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                              NULL, NULL));
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, SIZE, host, 0, NULL, &e));
                OK(clEnqueueMigrateMemObjects(api_queue(a, i + 1), 1, &m,
                                              CL_MIGRATE_MEM_OBJECT_HOST, 1, &e, NULL));
                OK(clEnqueueReadBuffer(api_queue(a, i + 1), m, CL_TRUE, 0, SIZE, out, 1, &e, NULL));
                CHECK(!memcmp(host, out, SIZE));
                OK(clReleaseEvent(e));
                OK(clFinish(api_queue(a, i + 1)));
        }
        OK(clReleaseMemObject(m));
        free(host);
        free(out);
}

/* ---- what travels --------------------------------------------------------------------------- */

static bool has_svm(struct api *a)
{
        cl_device_svm_capabilities caps = 0;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps, NULL));
        return caps != 0;
}

/* Map a buffer, or an allocation of shared virtual memory, `count` times. "r": for reading. "w":
 * the application then writes to it. "k": a command writes to it each time. "u": so does one that
 * comes before it in the queues, but runs later. */
static int maps(char way, bool svm, int count)
{
        struct api a = api_open(0);
        cl_command_queue q = a.queues[0], other;
        uint8_t *host = api_alloc(SIZE), x = 0, *p = NULL;
        cl_mem m = NULL;
        cl_int e;
        other = clCreateCommandQueue(a.context, a.devices[0], 0, &e);
        OK(e);
        if (svm)
                CHECK((p = clSVMAlloc(a.context, 0, SIZE, 0)));
        else
                m = api_buffer(&a, 0, SIZE, NULL);
        memset(host, x, SIZE);
        if (svm)
                OK(clEnqueueSVMMemcpy(q, CL_TRUE, p, host, SIZE, 0, NULL, NULL));
        else
                OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, SIZE, host, 0, NULL, NULL));
        for (int i = 0; i < count; i++) {
                cl_map_flags flags = CL_MAP_READ | (way == 'w' ? CL_MAP_WRITE : 0);
                cl_event gate = NULL, filled = NULL;
                cl_uint gates = way == 'u';
                if (gates)
                        gate = clCreateUserEvent(a.context, &e);
                if (way == 'k' || gates) {
                        uint8_t new = (uint8_t)(x + 1);
                        cl_event *got = gates ? &filled : NULL;
                        if (svm)
                                OK(clEnqueueSVMMemFill(gates ? other : q, p, &new, 1, SIZE, gates,
                                                       gates ? &gate : NULL, got));
                        else
                                OK(clEnqueueFillBuffer(gates ? other : q, m, &new, 1, 0, SIZE,
                                                       gates, gates ? &gate : NULL, got));
                        x = gates ? x : new;
                }
                if (svm)
                        OK(clEnqueueSVMMap(q, CL_TRUE, flags, p, SIZE, 0, NULL, NULL));
                else
                        p = map(q, m, flags, 0, SIZE);
                for (size_t k = 0; k < SIZE; k++)
                        CHECK(p[k] == x);
                if (way == 'w')
                        memset(p, ++x, SIZE);
                if (svm)
                        OK(clEnqueueSVMUnmap(q, p, 0, NULL, NULL));
                else
                        unmap(q, m, p);
                if (!gates)
                        continue;
                OK(clSetUserEventStatus(gate, CL_COMPLETE));
                OK(clWaitForEvents(1, &filled));
                OK(clReleaseEvent(filled));
                OK(clReleaseEvent(gate));
                x++;
        }
        if (svm)
                clSVMFree(a.context, p);
        else
                OK(clReleaseMemObject(m));
        OK(clReleaseCommandQueue(other));
        api_close(&a);
        free(host);
        return 0;
}

/* Bytes that a mapping has read, or an unmapping has written, do not travel again before a
 * command writes there. */
static void nothing_twice(char *self, bool svm)
{
        char way[2] = "", count[2] = "", *kind = svm ? "svm" : "buffer";
        char *argv[] = { self, way, kind, count, NULL };
        for (const char *at = "rwku"; *at; at++) {
                *way = *at;
                *count = '1';
                long once = stats_of(argv, "to", "bulk_bytes");
                *count = '5';
                long times = stats_of(argv, "to", "bulk_bytes");
                CHECK(once >= SIZE);
                if (*at == 'r' || *at == 'w')
                        CHECK(times == once);
                else
                        CHECK(times == 5 * once);
        }
}

struct call {
        cl_command_queue queue;
        cl_mem mem;
        cl_event gate;
        cl_int error;
};

static void *map_behind(void *arg)
{
        struct call *c = arg;
        return clEnqueueMapBuffer(c->queue, c->mem, CL_TRUE, CL_MAP_READ, 0, 64, 1, &c->gate, NULL,
                                  &c->error);
}

/* A thread waits for a mapping, and another thread unmaps its own at the same address. This does
 * not unmap the one that is waited for. It holds also if the waiting one fails, or the object is
 * released meanwhile. */
static void from_two_threads(struct api *a, cl_int status, bool release)
{
        cl_int e;
        pthread_t thread;
        void *got;
        cl_mem m = api_buffer(a, 0, SIZE, NULL), s = sub_buffer(m, 0, 4096);
        cl_command_queue q = a->queues[0];
        struct call call = { clCreateCommandQueue(a->context, a->devices[0], 0, &e), s };
        OK(e);
        call.gate = clCreateUserEvent(a->context, &e);
        OK(e);
        uint8_t *p = map(q, s, CL_MAP_READ, 0, 64);
        CHECK(pthread_create(&thread, NULL, map_behind, &call) == 0);
        while (map_count(s) < 2)
                usleep(100);
        unmap(q, s, p);
        OK(clFinish(q));
        CHECK(map_count(s) == 1);
        EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, s, p, 0, NULL, NULL));
        if (release)
                OK(clReleaseMemObject(s));
        OK(clSetUserEventStatus(call.gate, status));
        CHECK(pthread_join(thread, &got) == 0);
        CHECK((status < 0) == (call.error != CL_SUCCESS) && (status < 0) == !got);
        if (!release && got)
                unmap(q, s, got);
        if (!release) {
                CHECK(map_count(s) == 0);
                OK(clReleaseMemObject(s));
        }
        OK(clReleaseCommandQueue(call.queue));
        OK(clReleaseEvent(call.gate));
        OK(clReleaseMemObject(m));
}

/* A program that changes the memory of its buffer without a map is warned, once. */
static int zero_copy(const char *how)
{
        static uint32_t host[SIZE];
        struct api a = api_open(0);
        const size_t all = SIZE;
        cl_program p =
                api_build(&a, "kernel void inc(global uint *p) { p[get_global_id(0)]++; }", "");
        cl_kernel k = api_kernel(p, "inc");
        cl_mem m = api_buffer(&a, CL_MEM_USE_HOST_PTR, sizeof(host), host);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        for (uint32_t i = 0; i < 5; i++) {
                if (*how == 'm')
                        unmap(a.queues[0], m, map(a.queues[0], m, CL_MAP_READ, 0, sizeof(host)));
                if (*how == 'r')
                        OK(clEnqueueReadBuffer(a.queues[0], m, CL_TRUE, 0, sizeof(host), host, 0,
                                               NULL, NULL));
                for (size_t n = 0; n < SIZE && *how == 'c'; n++)
                        host[n] += i;
                OK(clEnqueueNDRangeKernel(a.queues[0], k, 1, NULL, &all, NULL, 0, NULL, NULL));
                OK(clFinish(a.queues[0]));
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
        api_close(&a);
        return 0;
}

static int warnings(const char *self, const char *how)
{
        char line[1024];
        int n = 0;
        snprintf(line, sizeof(line), "'%s' zero-copy %s 2>&1", self, how);
        FILE *f = popen(line, "r");
        CHECK(f);
        while (fgets(line, sizeof(line), f))
                n += strstr(line, "without a map") != NULL;
        CHECK(pclose(f) == 0);
        return n;
}

int main(int argc, char **argv)
{
        if (argc == 3)
                return zero_copy(argv[2]);
        setenv("SPANCL_COMPRESSION", "off", 1); /* what travels is counted */
        if (argc > 1)
                return maps(argv[1][0], !strcmp(argv[2], "svm"), atoi(argv[3]));
        struct api a = api_open(0);
        nothing_twice(argv[0], false);
        if (has_svm(&a))
                nothing_twice(argv[0], true);
        writers(&a, CL_MEM_USE_HOST_PTR);
        writers(&a, CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR);
        same_address(&a, CL_MEM_USE_HOST_PTR);
        same_address(&a, CL_MEM_COPY_HOST_PTR);
        image_writers(&a);
        if (api_out_of_order(&a, 0)) {
                no_order(&a);
                behind_barrier(&a);
        }
        undefined(&a);
        cl_device_type type = 0;
        OK(clGetDeviceInfo(a.devices[0], CL_DEVICE_TYPE, sizeof(type), &type, NULL));
        CHECK(warnings(argv[0], "changes") == (type == CL_DEVICE_TYPE_CPU));
        CHECK(warnings(argv[0], "maps") == 0 && warnings(argv[0], "reads") == 0 &&
              warnings(argv[0], "nothing") == 0);
        for (int release = 0; release < 2; release++) {
                from_two_threads(&a, CL_COMPLETE, release);
                from_two_threads(&a, -7, release);
        }
        api_close(&a);
        printf("maps: %u devices\n", a.count);
        return 0;
}
