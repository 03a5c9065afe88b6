/* cl_pocl_content_size: another buffer counts the meaningful bytes of a buffer. Only these bytes
 * are moved: between servers, to the program, to a mapping, and within a device.
 *
 *   servers: 2 */

#include "api.h"
#include "stats.h"

#include <semaphore.h>

/* ITEMS: llvmpipe ends each loop after 65,535 times. */
enum { SIZE = 4 << 20, CONTENT = 100000, ROUND = 64 << 10, ITEMS = 64 };

typedef cl_int(CL_API_CALL *set_fn)(cl_mem buffer, cl_mem content_size_buffer);

static const char source[] =
        "__kernel void make(__global uint *p, __global ulong *size, uint n, uint seed) {\n"
        "        for (uint i = get_global_id(0); i < n / 4; i += get_global_size(0))\n"
        "                p[i] = i * 2654435761u + seed;\n"
        "        size[512] = n;\n"
        "}\n"
        "__kernel void check(__global const uint *p, uint n, uint seed, __global uint *wrong) {\n"
        "        for (uint i = get_global_id(0); i < n / 4; i += get_global_size(0))\n"
        "                if (p[i] != i * 2654435761u + seed) wrong[0] = 1;\n"
        "}\n";

struct test {
        struct api a;
        set_fn set;
        cl_kernel make, check;
        cl_mem buffer, sizes, size; /* size: in the second half of sizes */
        uint8_t *host;
};

static void make(struct test *t, cl_uint device, cl_uint n, cl_uint seed)
{
        size_t items = ITEMS;
        OK(clSetKernelArg(t->make, 0, sizeof(cl_mem), &t->buffer));
        OK(clSetKernelArg(t->make, 1, sizeof(cl_mem), &t->sizes));
        OK(clSetKernelArg(t->make, 2, sizeof(n), &n));
        OK(clSetKernelArg(t->make, 3, sizeof(seed), &seed));
        OK(clEnqueueNDRangeKernel(t->a.queues[device], t->make, 1, NULL, &items, NULL, 0, NULL,
                                  NULL));
        OK(clFinish(t->a.queues[device]));
}

static void check_there(struct test *t, cl_uint device, cl_uint n, cl_uint seed)
{
        size_t items = ITEMS;
        cl_uint wrong = 0;
        cl_mem out = api_buffer(&t->a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 4, &wrong);
        OK(clSetKernelArg(t->check, 0, sizeof(cl_mem), &t->buffer));
        OK(clSetKernelArg(t->check, 1, sizeof(n), &n));
        OK(clSetKernelArg(t->check, 2, sizeof(seed), &seed));
        OK(clSetKernelArg(t->check, 3, sizeof(cl_mem), &out));
        OK(clEnqueueNDRangeKernel(t->a.queues[device], t->check, 1, NULL, &items, NULL, 0, NULL,
                                  NULL));
        OK(clEnqueueReadBuffer(t->a.queues[device], out, CL_TRUE, 0, 4, &wrong, 0, NULL, NULL));
        CHECK(wrong == 0);
        OK(clReleaseMemObject(out));
}

static void check_bytes(const uint8_t *p, cl_uint from, cl_uint n, cl_uint seed)
{
        for (cl_uint i = from / 4; i < n / 4; i++) {
                cl_uint value;
                memcpy(&value, p + 4 * (i - from / 4), 4);
                CHECK(value == i * 2654435761u + seed);
        }
}

/* Everything that moves the buffer, once for each of these sizes. */
static void move_all(struct test *t, cl_uint n, cl_uint seed)
{
        struct api *a = &t->a;
        cl_uint last = a->count - 1;
        cl_int err;
        /* From server to server, and back. */
        make(t, 0, n, seed);
        check_there(t, last, n, seed);
        OK(clEnqueueMigrateMemObjects(a->queues[0], 1, &t->buffer, 0, 0, NULL, NULL));
        check_there(t, 0, n, seed);
        make(t, last, n, seed + 1);
        check_there(t, 0, n, seed + 1);
        /* To the program. */
        memset(t->host, 0xee, SIZE);
        OK(clEnqueueReadBuffer(a->queues[0], t->buffer, CL_TRUE, 0, SIZE, t->host, 0, NULL, NULL));
        check_bytes(t->host, 0, n, seed + 1);
        OK(clEnqueueReadBuffer(a->queues[0], t->buffer, CL_TRUE, 4096, SIZE - 4096, t->host, 0,
                               NULL, NULL));
        check_bytes(t->host, 4096, n, seed + 1);
        /* In a queue with others before and behind it. */
        cl_event e;
        OK(clEnqueueReadBuffer(a->queues[0], t->buffer, CL_FALSE, 0, SIZE, t->host, 0, NULL, &e));
        OK(clEnqueueMarkerWithWaitList(a->queues[last], 1, &e, NULL));
        OK(clFinish(a->queues[last]));
        check_bytes(t->host, 0, n, seed + 1);
        OK(clReleaseEvent(e));
        uint8_t *map = clEnqueueMapBuffer(a->queues[0], t->buffer, CL_TRUE, CL_MAP_READ, 0, SIZE, 0,
                                          NULL, NULL, &err);
        OK(err);
        check_bytes(map, 0, n, seed + 1);
        OK(clEnqueueUnmapMemObject(a->queues[0], t->buffer, map, 0, NULL, NULL));
        cl_mem copy = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        OK(clEnqueueCopyBuffer(a->queues[0], t->buffer, copy, 0, 0, SIZE, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(a->queues[0], copy, CL_TRUE, 0, n ? n : 4, t->host, 0, NULL, NULL));
        check_bytes(t->host, 0, n, seed + 1);
        OK(clReleaseMemObject(copy));
}

static sem_t gone;

static void CL_CALLBACK is_gone(cl_mem m, void *user)
{
        (void)m;
        sem_post(user);
}

/* Each buffer counts the other's meaningful bytes. Both are freed nevertheless when they are
 * released. */
static void circle(struct test *t)
{
        cl_int err;
        cl_buffer_region first = { 0, 4096 };
        cl_mem one = api_buffer(&t->a, CL_MEM_READ_WRITE, 8192, NULL);
        cl_mem other = api_buffer(&t->a, CL_MEM_READ_WRITE, 8192, NULL);
        cl_mem part = clCreateSubBuffer(one, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                        &first, &err);
        OK(err);
        sem_init(&gone, 0, 0);
        OK(clSetMemObjectDestructorCallback(part, is_gone, &gone));
        OK(t->set(part, other));
        OK(t->set(other, part));
        OK(clReleaseMemObject(part));
        OK(clReleaseMemObject(other));
        OK(clReleaseMemObject(one));
        sem_wait(&gone);
}

static void errors(struct test *t)
{
        cl_int err;
        cl_mem small = api_buffer(&t->a, CL_MEM_READ_WRITE, 7, NULL);
        cl_context other = clCreateContext(NULL, t->a.count, t->a.devices, NULL, NULL, &err);
        OK(err);
        cl_mem foreign = clCreateBuffer(other, CL_MEM_READ_WRITE, 8, NULL, &err);
        OK(err);
        EXPECT(CL_INVALID_MEM_OBJECT, t->set(NULL, t->size));
        EXPECT(CL_INVALID_MEM_OBJECT, t->set(t->buffer, NULL));
        EXPECT(CL_INVALID_VALUE, t->set(t->buffer, small));
        EXPECT(CL_INVALID_CONTEXT, t->set(t->buffer, foreign));
        /* In a circle there is nothing to be had, and nothing that stays for ever. */
        OK(t->set(t->sizes, t->size));
        OK(t->set(t->buffer, t->buffer));
        circle(t);
        OK(clReleaseMemObject(foreign));
        OK(clReleaseContext(other));
        OK(clReleaseMemObject(small));
}

static struct test start(void)
{
        struct test t = { .a = api_open(0) };
        cl_int err;
        char names[8192];
        for (cl_uint i = 0; i < t.a.count; i++) {
                OK(clGetDeviceInfo(t.a.devices[i], CL_DEVICE_EXTENSIONS, sizeof(names), names,
                                   NULL));
                CHECK(strstr(names, "cl_pocl_content_size"));
        }
        t.set = (set_fn)clGetExtensionFunctionAddressForPlatform(t.a.platform,
                                                                 "clSetContentSizeBufferPoCL");
        CHECK(t.set);
        cl_program program = api_build(&t.a, source, "");
        t.make = api_kernel(program, "make");
        t.check = api_kernel(program, "check");
        OK(clReleaseProgram(program));
        t.buffer = api_buffer(&t.a, CL_MEM_READ_WRITE, SIZE, NULL);
        t.sizes = api_buffer(&t.a, CL_MEM_READ_WRITE, 8192, NULL);
        cl_buffer_region second = { 4096, 8 };
        t.size = clCreateSubBuffer(t.sizes, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                   &second, &err);
        OK(err);
        t.host = api_alloc(SIZE);
        return t;
}

static void end(struct test *t)
{
        OK(clReleaseMemObject(t->buffer));
        OK(clReleaseMemObject(t->size));
        OK(clReleaseMemObject(t->sizes));
        OK(clReleaseKernel(t->make));
        OK(clReleaseKernel(t->check));
        free(t->host);
        api_close(&t->a);
}

/* Bulk bytes on all links. */
static long bulk(char *const argv[])
{
        char report[STATS_MAX];
        long sum = 0;
        stats_run(argv, report);
        for (const char *at = report; (at = strstr(at, "\"bulk_bytes\": ")); at++)
                sum += stats_number(at, "bulk_bytes");
        return sum;
}

int main(int argc, char **argv)
{
        if (argc > 1) {
                struct test t = start();
                if (!strcmp(argv[1], "content"))
                        OK(t.set(t.buffer, t.size));
                move_all(&t, CONTENT, 7);
                end(&t);
                return 0;
        }
        struct test t = start();
        errors(&t);
        OK(t.set(t.buffer, t.size));
        static const cl_uint sizes[] = { 0, 4, 32 << 10, CONTENT, SIZE - 4, SIZE };
        for (cl_uint i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                move_all(&t, sizes[i], 100 * i);
        end(&t);

        OK(setenv("SPANCL_COMPRESSION", "off", 1)); /* bytes are counted */
        char *with[] = { argv[0], "content", NULL }, *without[] = { argv[0], "all", NULL };
        long some = bulk(with), all = bulk(without);
        printf("%ld of %ld bytes moved\n", some, all);
        /* Two of the five ways are no way where the first device's buffers lie in shared memory. */
        CHECK(all >= 3L * SIZE);
        CHECK(some <= 8L * (CONTENT + ROUND));
        return 0;
}
