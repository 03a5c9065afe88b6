/* Mapping and unmapping buffers. servers: 2 */
#include <stdbool.h>
#include <unistd.h>

#include "api.h"

static void *map(cl_command_queue q, cl_mem m, cl_bool blocking, cl_map_flags flags, size_t offset,
                 size_t size)
{
        cl_int e;
        void *p = clEnqueueMapBuffer(q, m, blocking, flags, offset, size, 0, NULL, NULL, &e);
        OK(e);
        CHECK(p);
        return p;
}

/* Some implementations count an unmap only a moment after it has completed. */
static bool is_mapped(cl_mem m, cl_uint times)
{
        cl_uint n = 0;
        for (int i = 0; i < 1000; i++) {
                OK(clGetMemObjectInfo(m, CL_MEM_MAP_COUNT, sizeof(n), &n, NULL));
                if (n == times)
                        return true;
                usleep(1000);
        }
        return false;
}

static void kinds(struct api *a, size_t size, cl_mem_flags flags)
{
        uint8_t *host = api_alloc(size + 64), *model = api_alloc(size), *out = api_alloc(size);
        api_pattern(host, size, 3);
        memcpy(model, host, size);
        void *given = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR) ? host : NULL;
        cl_mem m = api_buffer(a, flags, size, given);
        if (!given)
                OK(clEnqueueWriteBuffer(a->queues[0], m, CL_TRUE, 0, size, host, 0, NULL, NULL));
        for (unsigned i = 0; i < 6; i++) {
                cl_command_queue q = api_queue(a, i), r = api_queue(a, i + 1);
                size_t at = size / 4, part = size / 2;

                uint8_t *p = map(q, m, CL_TRUE, CL_MAP_READ, at, part);
                CHECK(is_mapped(m, 1));
                CHECK(!memcmp(p, model + at, part));
                if (flags & CL_MEM_USE_HOST_PTR)
                        CHECK(p == host + at);
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                CHECK(is_mapped(m, 0));

                /* A part of a region that is mapped for writing may keep its bytes. */
                p = map(q, m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, part);
                api_pattern(p + part / 2, part / 2, i);
                api_pattern(model + at + part / 2, part / 2, i);
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                OK(clFinish(q));
                OK(clEnqueueReadBuffer(r, m, CL_TRUE, 0, size, out, 0, NULL, NULL));
                CHECK(!memcmp(out, model, size));

                p = map(q, m, CL_FALSE, CL_MAP_WRITE, 0, part);
                OK(clFinish(q));
                CHECK(!memcmp(p, model, part));
                p[0] ^= 0xff;
                model[0] ^= 0xff;
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));

                p = map(q, m, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, at, part);
                api_pattern(p, part, i + 50);
                api_pattern(model + at, part, i + 50);
                cl_event e;
                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, &e));
                OK(clEnqueueReadBuffer(r, m, CL_TRUE, 0, size, out, 1, &e, NULL));
                CHECK(!memcmp(out, model, size));
                OK(clReleaseEvent(e));
                OK(clFinish(q));

                /* Two at a time. */
                uint8_t *one = map(q, m, CL_TRUE, CL_MAP_READ, 0, part);
                uint8_t *two = map(q, m, CL_TRUE, CL_MAP_READ, at, part);
                CHECK(is_mapped(m, 2));
                CHECK(!memcmp(one, model, part) && !memcmp(two, model + at, part));
                CHECK(two == one + at);
                OK(clEnqueueUnmapMemObject(q, m, one, 0, NULL, NULL));
                OK(clEnqueueUnmapMemObject(q, m, two, 0, NULL, NULL));
                OK(clFinish(q));
        }
        OK(clReleaseMemObject(m));
        free(host);
        free(model);
        free(out);
}

static void sub_buffer(struct api *a)
{
        enum { SIZE = 32768, ORIGIN = 4096 };
        uint8_t *model = api_alloc(SIZE);
        api_pattern(model, SIZE, 9);
        cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, SIZE, model);
        cl_int e;
        cl_buffer_region region = { ORIGIN, 8192 };
        cl_mem s = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        uint8_t *p = map(a->queues[0], s, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 100, 200);
        CHECK(!memcmp(p, model + ORIGIN + 100, 200));
        memset(p, 0x55, 200);
        memset(model + ORIGIN + 100, 0x55, 200);
        OK(clEnqueueUnmapMemObject(a->queues[0], s, p, 0, NULL, NULL));
        OK(clFinish(a->queues[0]));
        p = map(api_queue(a, 1), m, CL_TRUE, CL_MAP_READ, 0, SIZE);
        CHECK(!memcmp(p, model, SIZE));
        OK(clEnqueueUnmapMemObject(api_queue(a, 1), m, p, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 1)));
        OK(clReleaseMemObject(s));
        OK(clReleaseMemObject(m));
        free(model);
}

/* An event for a map, waited for by an event for the unmap. */
static void with_events(struct api *a)
{
        cl_mem m = api_buffer(a, CL_MEM_ALLOC_HOST_PTR, 100000, NULL);
        cl_int e;
        cl_event mapped, unmapped;
        int zero = 0;
        OK(clEnqueueFillBuffer(a->queues[0], m, &zero, sizeof(zero), 0, 100000, 0, NULL, NULL));
        uint8_t *p = clEnqueueMapBuffer(a->queues[0], m, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                        100000, 0, NULL, &mapped, &e);
        OK(e);
        OK(clWaitForEvents(1, &mapped));
        cl_command_type type;
        OK(clGetEventInfo(mapped, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_COMMAND_MAP_BUFFER);
        for (size_t i = 0; i < 100000; i++)
                CHECK(p[i] == 0);
        OK(clEnqueueUnmapMemObject(a->queues[0], m, p, 1, &mapped, &unmapped));
        OK(clWaitForEvents(1, &unmapped));
        OK(clGetEventInfo(unmapped, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_COMMAND_UNMAP_MEM_OBJECT);
        OK(clReleaseEvent(mapped));
        OK(clReleaseEvent(unmapped));
        OK(clReleaseMemObject(m));
}

static void errors(struct api *a)
{
        cl_command_queue q = a->queues[0];
        char byte;
        cl_mem m = api_buffer(a, 0, 64, NULL);
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 60, 5, 0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT, clEnqueueMapBuffer(q, NULL, CL_TRUE, CL_MAP_READ, 0, 5,
                                                               0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_COMMAND_QUEUE, clEnqueueMapBuffer(NULL, m, CL_TRUE, CL_MAP_READ, 0,
                                                                  5, 0, NULL, NULL, &error));
        EXPECT(CL_INVALID_VALUE, clEnqueueUnmapMemObject(q, m, &byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueUnmapMemObject(q, NULL, &byte, 0, NULL, NULL));
        cl_mem w = api_buffer(a, CL_MEM_HOST_WRITE_ONLY, 64, NULL);
        EXPECT_ERROR(CL_INVALID_OPERATION,
                     clEnqueueMapBuffer(q, w, CL_TRUE, CL_MAP_READ, 0, 5, 0, NULL, NULL, &error));
        OK(clReleaseMemObject(w));
        OK(clReleaseMemObject(m));
}

int main(void)
{
        struct api a = api_open(0);
        static const size_t sizes[] = { 64, 20000, 1 << 20 };
        static const cl_mem_flags flags[] = { 0, CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR,
                                              CL_MEM_ALLOC_HOST_PTR };
        for (int i = 0; i < 3; i++)
                for (int k = 0; k < 4; k++)
                        kinds(&a, sizes[i], flags[k]);
        sub_buffer(&a);
        with_events(&a);
        errors(&a);
        api_close(&a);
        printf("maps: %u devices\n", a.count);
        return 0;
}
