/* servers: 2. Buffers of a MiB and more, which may lie in the arena that client and server share
 * (TEST_TRANSPORT=shm). Their bytes are right wherever they lie. In the arena, mapping moves no
 * bytes. */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api.h"
#include "stats.h"

enum { SIZE = 4 << 20, WORDS = SIZE / 4, ROUNDS = 8 };

static const char source[] =
        "kernel void add(global uint *p, uint by) { p[get_global_id(0)] += by; }\n"
        "kernel void work(global uint *p, uint rounds) {\n"
        "        uint v = p[get_global_id(0)];\n"
        "        for (uint i = 0; i < rounds; i++) v = v * 1664525u + 1013904223u;\n"
        "        p[get_global_id(0)] = v;\n"
        "}\n"
        "kernel void peek(global uint *p) { p[0] += p[get_global_id(0) + 64] == 7919; }\n";

static cl_program program;

static void add(cl_command_queue q, cl_mem m, cl_uint by)
{
        cl_kernel k = api_kernel(program, "add");
        size_t items = WORDS;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(by), &by));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &items, NULL, 0, NULL, NULL));
        OK(clReleaseKernel(k));
}

static void fill(cl_uint *p, cl_uint from)
{
        for (cl_uint i = 0; i < WORDS; i++)
                p[i] = from + i;
}

static int is(const cl_uint *p, cl_uint from)
{
        for (cl_uint i = 0; i < WORDS; i++)
                if (p[i] != from + i)
                        return 0;
        return 1;
}

static cl_uint *map(cl_command_queue q, cl_mem m, cl_map_flags flags)
{
        cl_int err;
        cl_uint *p = clEnqueueMapBuffer(q, m, CL_TRUE, flags, 0, SIZE, 0, NULL, NULL, &err);
        OK(err);
        return p;
}

static void unmap(cl_command_queue q, cl_mem m, void *p)
{
        OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
}

/* Kernels of real programs read a little beyond the end of a buffer, where any implementation has
 * readable bytes. The buffers lie side by side in the shared arena, so the last one is the test. */
static void beyond(const struct api *a)
{
        enum { COUNT = 4 };
        cl_kernel k = api_kernel(program, "peek");
        const size_t items = WORDS;
        cl_mem all[COUNT];
        cl_uint word = 1;
        for (int i = 0; i < COUNT; i++) {
                all[i] = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
                OK(clEnqueueWriteBuffer(a->queues[0], all[i], CL_TRUE, 0, 4, &word, 0, NULL, NULL));
                OK(clSetKernelArg(k, 0, sizeof(cl_mem), &all[i]));
                OK(clEnqueueNDRangeKernel(a->queues[0], k, 1, NULL, &items, NULL, 0, NULL, NULL));
                OK(clFinish(a->queues[0]));
        }
        for (int i = 0; i < COUNT; i++)
                OK(clReleaseMemObject(all[i]));
        OK(clReleaseKernel(k));
}

/* Each way to write and to read, on each device after the other. */
static void every_way(const struct api *a, cl_uint *data)
{
        fill(data, 5);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, SIZE, data);
        cl_uint from = 5;
        for (unsigned i = 0; i < ROUNDS; i++) {
                cl_command_queue q = api_queue(a, i), other = api_queue(a, i / 2 + 1);
                add(q, m, 1);
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, ++from));
                add(q, m, 1);
                OK(clFinish(q));
                cl_uint *p = map(other, m, CL_MAP_READ);
                CHECK(is(p, ++from));
                unmap(other, m, p);
                fill(data, from += 100);
                OK(clFinish(other));
                OK(clEnqueueWriteBuffer(other, m, i % 2, 0, SIZE, data, 0, NULL, NULL));
                OK(clFinish(other));
                add(q, m, 7);
                OK(clFinish(q));
                p = map(q, m, CL_MAP_WRITE | CL_MAP_READ);
                CHECK(is(p, from += 7));
                fill(p, from += 1000);
                unmap(q, m, p);
                OK(clFinish(q));
                p = map(other, m, CL_MAP_WRITE_INVALIDATE_REGION);
                fill(p, from += 3);
                unmap(other, m, p);
                OK(clFinish(other));
                add(q, m, 1);
                OK(clFinish(q));
                from++;
        }
        OK(clEnqueueReadBuffer(api_queue(a, 0), m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        CHECK(is(data, from));
        OK(clReleaseMemObject(m));
}

/* Initial data that another device uses first than the one whose memory it is in. */
static void elsewhere_first(const struct api *a, cl_uint *data)
{
        for (cl_uint i = a->count; i-- > 0;) {
                fill(data, i);
                cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, SIZE, data);
                add(a->queues[i], m, 1);
                OK(clEnqueueReadBuffer(a->queues[i], m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, i + 1));
                OK(clReleaseMemObject(m));
        }
}

/* Parts of it. */
static void parts(const struct api *a, cl_uint *data)
{
        cl_int err;
        cl_command_queue q = api_queue(a, 0);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        fill(data, 0);
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        cl_buffer_region half = { SIZE / 2, SIZE / 2 };
        cl_mem sub =
                clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &err);
        OK(err);
        cl_mem parent;
        OK(clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
        CHECK(parent == m);
        OK(clGetMemObjectInfo(m, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
        CHECK(parent == NULL);
        void *host = &err;
        OK(clGetMemObjectInfo(m, CL_MEM_HOST_PTR, sizeof(host), &host, NULL));
        CHECK(host == NULL);
        cl_uint *p = clEnqueueMapBuffer(q, sub, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, SIZE / 2, 0,
                                        NULL, NULL, &err);
        OK(err);
        CHECK(p[0] == WORDS / 2 && p[WORDS / 2 - 1] == WORDS - 1);
        p[0] = 77;
        unmap(q, sub, p);
        OK(clEnqueueReadBuffer(q, sub, CL_TRUE, 0, SIZE / 2, data, 0, NULL, NULL));
        CHECK(data[0] == 77 && data[1] == WORDS / 2 + 1);
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, SIZE / 4, SIZE / 2, data, 0, NULL, NULL));
        CHECK(data[0] == WORDS / 4 && data[WORDS / 4] == 77);
        OK(clReleaseMemObject(sub));
        OK(clReleaseMemObject(m));
}

/* A buffer that is released while its kernels run: the next one may get its memory, but not before. */
static void released_early(const struct api *a, cl_uint *data)
{
        cl_int err;
        cl_command_queue q = api_queue(a, 0);
        cl_command_queue second = clCreateCommandQueue(a->context, a->devices[0], 0, &err);
        OK(err);
        cl_kernel work = api_kernel(program, "work");
        for (int i = 0; i < 20; i++) {
                size_t items = WORDS;
                cl_uint rounds = 100;
                cl_mem old = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
                OK(clSetKernelArg(work, 0, sizeof(old), &old));
                OK(clSetKernelArg(work, 1, sizeof(rounds), &rounds));
                OK(clEnqueueNDRangeKernel(q, work, 1, NULL, &items, NULL, 0, NULL, NULL));
                OK(clFlush(q));
                OK(clReleaseMemObject(old));
                cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
                fill(data, (cl_uint)i);
                OK(clEnqueueWriteBuffer(second, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                OK(clFinish(q));
                memset(data, 0, SIZE);
                OK(clEnqueueReadBuffer(second, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, (cl_uint)i));
                OK(clReleaseMemObject(m));
        }
        OK(clReleaseKernel(work));
        OK(clReleaseCommandQueue(second));
}

/* In the arena a new buffer has the pages of one that was released: the kernel maps no others. */
static void again(const struct api *a, cl_uint *data, int in_arena)
{
        enum { WARM = 4, COUNT = 16, PAGES = SIZE / 4096 };
        struct rusage before, after;
        cl_command_queue q = api_queue(a, 0);
        for (int i = 0; i < WARM + COUNT; i++) {
                if (i == WARM)
                        CHECK(getrusage(RUSAGE_SELF, &before) == 0);
                cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
                cl_uint *p = map(q, m, CL_MAP_WRITE_INVALIDATE_REGION);
                fill(p, (cl_uint)i);
                unmap(q, m, p);
                add(q, m, 1);
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, (cl_uint)i + 1));
                OK(clReleaseMemObject(m));
        }
        CHECK(getrusage(RUSAGE_SELF, &after) == 0);
        if (in_arena)
                CHECK(after.ru_minflt - before.ru_minflt < COUNT * PAGES / 2);
}

/* A child releases a buffer that it has from its parent. The parent uses released memory again meanwhile, and keeps its
 * bytes. */
static void forked(const struct api *a)
{
        /* So many wait for the next buffer, and no fourth one. */
        enum { COUNT = 3, LARGE = 16 << 20 };
        cl_command_queue q = api_queue(a, 0);
        cl_mem m[COUNT + 1];
        cl_int err = 0;
        int go[2], status;
        for (int i = 0; i < COUNT; i++) {
                m[i] = api_buffer(a, CL_MEM_READ_WRITE, LARGE, NULL);
                OK(clEnqueueFillBuffer(q, m[i], &i, sizeof(i), 0, LARGE, 0, NULL, NULL));
        }
        for (int i = 0; i < COUNT; i++)
                OK(clReleaseMemObject(m[i]));
        OK(clFinish(q));
        m[COUNT] = api_buffer(a, CL_MEM_READ_WRITE, LARGE + SIZE, NULL);
        OK(clEnqueueFillBuffer(q, m[COUNT], &err, sizeof(err), 0, LARGE, 0, NULL, NULL));
        OK(clFinish(q));
        CHECK(pipe(go) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
                char word;
                close(go[1]);
                (void)!read(go[0], &word, 1);
                _exit(clReleaseMemObject(m[COUNT]) != CL_SUCCESS);
        }
        for (int i = 0; i < COUNT; i++) {
                m[i] = api_buffer(a, CL_MEM_READ_WRITE, LARGE, NULL);
                void *p = clEnqueueMapBuffer(q, m[i], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                             LARGE, 0, NULL, NULL, &err);
                OK(err);
                memset(p, 7, LARGE);
                unmap(q, m[i], p);
        }
        OK(clFinish(q));
        close(go[0]);
        close(go[1]);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        for (int i = 0; i < COUNT; i++) {
                const unsigned char *p = clEnqueueMapBuffer(q, m[i], CL_TRUE, CL_MAP_READ, 0, LARGE,
                                                            0, NULL, NULL, &err);
                OK(err);
                CHECK(p[0] == 7 && !memcmp(p, p + 1, LARGE - 1));
                unmap(q, m[i], (void *)(uintptr_t)p);
                OK(clReleaseMemObject(m[i]));
        }
        OK(clReleaseMemObject(m[COUNT]));
        OK(clFinish(q));
}

/* The memory of released buffers is used again in contexts of its server alone. */
static void alone(const struct api *a, cl_uint *data, int in_arena)
{
        struct api one = api_open_first(a);
        cl_program of_all = program;
        program = api_build(&one, source, "");
        again(&one, data, in_arena);
        forked(&one);
        OK(clReleaseProgram(program));
        api_close(&one);
        program = of_all;
}

/* The bytes of this process's addresses that are in use. */
static long addresses(void)
{
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "re");
        CHECK(f && fscanf(f, "%ld", &pages) == 1);
        fclose(f);
        return pages * sysconf(_SC_PAGESIZE);
}

/* Many parts that a slow server still uses do not take this process's addresses. */
static void many_released(const struct api *a)
{
        enum { COUNT = 64, KEPT = 64 << 20, OTHER = 32 << 20 };
        const size_t items = WORDS;
        cl_uint rounds = 500;
        cl_command_queue q = api_queue(a, 0);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        cl_kernel work = api_kernel(program, "work");
        OK(clSetKernelArg(work, 0, sizeof(m), &m));
        OK(clSetKernelArg(work, 1, sizeof(rounds), &rounds));
        OK(clEnqueueNDRangeKernel(q, work, 1, NULL, &items, NULL, 0, NULL, NULL));
        OK(clFlush(q));
        long before = addresses();
        for (int i = 0; i < COUNT; i++) {
                cl_mem old = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
                add(q, old, 1);
                OK(clReleaseMemObject(old));
        }
        CHECK(addresses() - before <= KEPT + OTHER);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(work));
        OK(clFinish(q));
}

/* A blocking transfer is one command of its in-order queue, also when other threads enqueue there. */
struct adder {
        cl_command_queue queue;
        cl_mem mem;
        atomic_int stop;
};

static void *keep_adding(void *arg)
{
        struct adder *s = arg;
        while (!s->stop) {
                add(s->queue, s->mem, 1);
                OK(clFinish(s->queue));
        }
        return NULL;
}

static void threads(const struct api *a, cl_uint *data)
{
        struct adder s = { api_queue(a, 0), api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL), 0 };
        pthread_t thread;
        fill(data, 0);
        OK(clEnqueueWriteBuffer(s.queue, s.mem, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        CHECK(pthread_create(&thread, NULL, keep_adding, &s) == 0);
        for (int i = 0; i < 30; i++) {
                OK(clEnqueueReadBuffer(s.queue, s.mem, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, data[0])); /* between two kernels */
                OK(clEnqueueWriteBuffer(s.queue, s.mem, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        }
        s.stop = 1;
        pthread_join(thread, NULL);
        OK(clReleaseMemObject(s.mem));
}

/* Map, unmap, read and write `count` times; main measures the traffic of such a process. */
static int traffic(int count)
{
        struct api a = api_open(0);
        cl_uint *data = calloc(WORDS, sizeof(*data));
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, SIZE, NULL);
        for (int i = 0; i < count; i++) {
                cl_uint *p = map(a.queues[0], m, CL_MAP_WRITE_INVALIDATE_REGION);
                fill(p, (cl_uint)i);
                unmap(a.queues[0], m, p);
                OK(clEnqueueReadBuffer(a.queues[0], m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
                CHECK(is(data, (cl_uint)i));
                OK(clEnqueueWriteBuffer(a.queues[0], m, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
        }
        OK(clReleaseMemObject(m));
        api_close(&a);
        free(data);
        return 0;
}

int main(int argc, char **argv)
{
        setenv("SPANCL_COMPRESSION", "off", 1); /* what travels is counted */
        if (argc > 1)
                return traffic(atoi(argv[1]));
        const char *transport = getenv("TEST_TRANSPORT");
        struct api a = api_open(0);
        cl_uint *data = malloc(SIZE);
        CHECK(data);
        program = api_build(&a, source, "");
        beyond(&a);
        every_way(&a, data);
        elsewhere_first(&a, data);
        parts(&a, data);
        released_early(&a, data);
        many_released(&a);
        threads(&a, data);
        alone(&a, data, transport && !strcmp(transport, "shm"));
        OK(clReleaseProgram(program));
        api_close(&a);
        free(data);

        char *more[] = { argv[0], (char[]){ "8" }, NULL };
        long to = stats_of(more, "from", "bulk_bytes"), from = stats_of(more, "to", "bulk_bytes");
        if (transport && !strcmp(transport, "shm"))
                CHECK(to == 0 && from == 0);
        else
                CHECK(to >= 8 * (long)SIZE && from >= 8 * (long)SIZE);
        return 0;
}
