/* Buffers: reads, writes, copies and fills of all sizes, sub-buffers, initial data, errors, and data that
 * moves between devices. servers: 2 */
#include "api.h"

/* Small ones travel with the commands, large ones beside them. */
static const size_t sizes[] = { 1, 7, 4096, 16384, 16385, 65536, 65537, 1 << 20, (9 << 20) + 3 };

static void write_read(struct api *a)
{
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                size_t size = sizes[i];
                uint8_t *in = api_alloc(size), *out = api_alloc(size);
                api_pattern(in, size, (unsigned)i);
                cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, size, NULL);
                cl_command_queue q = api_queue(a, (unsigned)i);

                memset(out, 0, size);
                OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, size, in, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, size, out, 0, NULL, NULL));
                CHECK(!memcmp(in, out, size));

                api_pattern(in, size, (unsigned)i + 100);
                memset(out, 0, size);
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, size, in, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, size, out, 0, NULL, NULL));
                OK(clFinish(q));
                CHECK(!memcmp(in, out, size));

                api_pattern(in, size, (unsigned)i + 200);
                memset(out, 0, size);
                cl_event w, r;
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 0, size, in, 0, NULL, &w));
                OK(clEnqueueReadBuffer(q, m, CL_FALSE, 0, size, out, 1, &w, &r));
                OK(clWaitForEvents(1, &r));
                CHECK(!memcmp(in, out, size));
                OK(clReleaseEvent(w));
                OK(clReleaseEvent(r));

                /* A blocking write is over when the memory may be used again. */
                api_pattern(in, size, (unsigned)i + 300);
                OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, size, in, 0, NULL, NULL));
                memset(in, 0xee, size);
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, size, out, 0, NULL, NULL));
                api_pattern(in, size, (unsigned)i + 300);
                CHECK(!memcmp(in, out, size));
                OK(clReleaseMemObject(m));
                free(in);
                free(out);
        }
}

static void parts(struct api *a)
{
        enum { SIZE = 100000 };
        uint8_t *model = api_alloc(SIZE), *out = api_alloc(SIZE);
        api_pattern(model, SIZE, 1);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        OK(clEnqueueWriteBuffer(a->queues[0], m, CL_TRUE, 0, SIZE, model, 0, NULL, NULL));
        uint32_t x = 7;
        for (int i = 0; i < 200; i++) {
                x = x * 1664525u + 1013904223u;
                size_t at = (x >> 8) % SIZE;
                x = x * 1664525u + 1013904223u;
                size_t size = (x >> 8) % (SIZE - at) + 1;
                cl_command_queue q = api_queue(a, (unsigned)i);
                switch (i % 4) {
                case 0:
                        api_pattern(model + at, size, (unsigned)i);
                        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, at, size, model + at, 0, NULL,
                                                NULL));
                        break;
                case 1:
                        memset(model + at, i, size);
                        OK(clEnqueueFillBuffer(q, m, model + at, 1, at, size, 0, NULL, NULL));
                        break;
                case 2: {
                        size_t half = size / 2;
                        if (half) {
                                OK(clEnqueueCopyBuffer(q, m, m, at, at + half, half, 0, NULL,
                                                       NULL));
                                memcpy(model + at + half, model + at, half);
                        }
                        break;
                }
                default:
                        OK(clEnqueueReadBuffer(q, m, CL_TRUE, at, size, out, 0, NULL, NULL));
                        CHECK(!memcmp(out, model + at, size));
                }
                /* The next one uses another device. */
                OK(clFinish(q));
        }
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, SIZE, out, 0, NULL, NULL));
        CHECK(!memcmp(out, model, SIZE));
        OK(clReleaseMemObject(m));
        free(model);
        free(out);
}

static void fills(struct api *a)
{
        uint8_t pattern[128], out[1024];
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE, sizeof(out), NULL);
        for (size_t n = 1; n <= 128; n *= 2) {
                api_pattern(pattern, n, (unsigned)n);
                OK(clEnqueueFillBuffer(a->queues[0], m, pattern, n, 0, sizeof(out), 0, NULL, NULL));
                OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, 0, sizeof(out), out, 0, NULL,
                                       NULL));
                for (size_t i = 0; i < sizeof(out); i++)
                        CHECK(out[i] == pattern[i % n]);
        }
        EXPECT(CL_INVALID_VALUE,
               clEnqueueFillBuffer(a->queues[0], m, pattern, 3, 0, 3, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueFillBuffer(a->queues[0], m, pattern, 4, 2, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueFillBuffer(a->queues[0], m, NULL, 4, 0, 4, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
}

static void initial_data(struct api *a)
{
        static const size_t all[] = { 100, 40000, 3 << 20 };
        for (size_t i = 0; i < 3; i++) {
                size_t size = all[i];
                uint8_t *in = api_alloc(size), *out = api_alloc(size);
                api_pattern(in, size, (unsigned)i);
                cl_mem copied = api_buffer(a, CL_MEM_COPY_HOST_PTR, size, in);
                uint8_t *host = api_alloc(size);
                memcpy(host, in, size);
                cl_mem used = api_buffer(a, CL_MEM_USE_HOST_PTR, size, host);
                uint8_t *orig = api_alloc(size);
                memcpy(orig, in, size);
                memset(in, 0, size); /* it has been copied */
                for (unsigned d = 0; d < a->count; d++) {
                        /* First a part, then all. */
                        OK(clEnqueueReadBuffer(a->queues[d], copied, CL_TRUE, size / 3, size / 3,
                                               out, 0, NULL, NULL));
                        CHECK(!memcmp(out, orig + size / 3, size / 3));
                        OK(clEnqueueReadBuffer(a->queues[d], copied, CL_TRUE, 0, size, out, 0, NULL,
                                               NULL));
                        CHECK(!memcmp(out, orig, size));
                        OK(clEnqueueReadBuffer(a->queues[d], used, CL_TRUE, 0, size, out, 0, NULL,
                                               NULL));
                        CHECK(!memcmp(out, orig, size));
                }
                void *p = NULL;
                OK(clGetMemObjectInfo(used, CL_MEM_HOST_PTR, sizeof(p), &p, NULL));
                CHECK(p == host);
                OK(clGetMemObjectInfo(copied, CL_MEM_HOST_PTR, sizeof(p), &p, NULL));
                OK(clReleaseMemObject(copied));
                OK(clReleaseMemObject(used));
                free(in);
                free(out);
                free(host);
                free(orig);
        }
}

static void sub_buffers(struct api *a)
{
        enum { SIZE = 65536, ORIGIN = 8192, PART = 16384 };
        uint8_t *model = api_alloc(SIZE), *out = api_alloc(SIZE);
        api_pattern(model, SIZE, 5);
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, SIZE, model);
        cl_int e;
        cl_buffer_region region = { ORIGIN, PART };
        cl_mem s = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        cl_mem parent;
        size_t offset, size;
        cl_mem_flags flags;
        OK(clGetMemObjectInfo(s, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
        OK(clGetMemObjectInfo(s, CL_MEM_OFFSET, sizeof(offset), &offset, NULL));
        OK(clGetMemObjectInfo(s, CL_MEM_SIZE, sizeof(size), &size, NULL));
        OK(clGetMemObjectInfo(s, CL_MEM_FLAGS, sizeof(flags), &flags, NULL));
        CHECK(parent == m && offset == ORIGIN && size == PART);
        CHECK(flags & CL_MEM_READ_WRITE && flags & CL_MEM_COPY_HOST_PTR);
        for (unsigned d = 0; d < 2 * a->count; d++) {
                cl_command_queue q = api_queue(a, d);
                OK(clEnqueueReadBuffer(q, s, CL_TRUE, 10, PART - 10, out, 0, NULL, NULL));
                CHECK(!memcmp(out, model + ORIGIN + 10, PART - 10));
                api_pattern(model + ORIGIN + 100, 1000, d);
                OK(clEnqueueWriteBuffer(q, s, CL_TRUE, 100, 1000, model + ORIGIN + 100, 0, NULL,
                                        NULL));
                OK(clEnqueueReadBuffer(api_queue(a, d + 1), m, CL_TRUE, 0, SIZE, out, 0, NULL,
                                       NULL));
                CHECK(!memcmp(out, model, SIZE));
        }
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT,
                     clCreateSubBuffer(s, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
        cl_buffer_region bad = { SIZE - 4096, 8192 };
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &bad, &error));
        bad = (cl_buffer_region){ 0, 0 };
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE,
                     clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &bad, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateSubBuffer(m, 0, 0, &region, &error));
        /* The parent lives as long as its parts. */
        OK(clReleaseMemObject(m));
        OK(clEnqueueReadBuffer(a->queues[0], s, CL_TRUE, 0, PART, out, 0, NULL, NULL));
        CHECK(!memcmp(out, model + ORIGIN, PART));
        OK(clReleaseMemObject(s));
        free(model);
        free(out);
}

/* Kernels that could write, but only read, need no order. Each of them waits for the bytes. */
static void read_at_once(struct api *a, cl_kernel take, cl_uint device, int blocking_write,
                         cl_command_queue_properties properties)
{
        enum { SIZE = 9 << 20, COUNT = 3 };
        const size_t size = SIZE;
        uint8_t *in = api_alloc(SIZE), *out = api_alloc(SIZE);
        cl_command_queue queues[COUNT];
        cl_mem to[COUNT], from = NULL;
        api_pattern(in, SIZE, device);
        if (!blocking_write)
                from = api_buffer(a, CL_MEM_COPY_HOST_PTR, SIZE, in);
        else
                from = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        for (unsigned i = 0; i < COUNT; i++) {
                cl_int err;
                queues[i] = clCreateCommandQueue(a->context, a->devices[device], properties, &err);
                OK(err);
                to[i] = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        }
        if (blocking_write)
                OK(clEnqueueWriteBuffer(queues[0], from, CL_TRUE, 0, SIZE, in, 0, NULL, NULL));
        for (unsigned i = 0; i < COUNT; i++) {
                OK(clSetKernelArg(take, 0, sizeof(cl_mem), &from));
                OK(clSetKernelArg(take, 1, sizeof(cl_mem), &to[i]));
                OK(clEnqueueNDRangeKernel(queues[i], take, 1, NULL, &size, NULL, 0, NULL, NULL));
        }
        for (unsigned i = 0; i < COUNT; i++)
                OK(clFinish(queues[i]));
        for (unsigned i = 0; i < COUNT; i++) {
                OK(clEnqueueReadBuffer(queues[i], to[i], CL_TRUE, 0, SIZE, out, 0, NULL, NULL));
                CHECK(!memcmp(in, out, SIZE));
                OK(clReleaseMemObject(to[i]));
                OK(clReleaseCommandQueue(queues[i]));
        }
        OK(clReleaseMemObject(from));
        free(in);
        free(out);
}

static void readers(struct api *a)
{
        cl_program program = api_build(a,
                                       "__kernel void take(__global uchar *from,\n"
                                       "                   __global uchar *to) {\n"
                                       "        to[get_global_id(0)] = from[get_global_id(0)];\n"
                                       "}\n",
                                       "");
        cl_kernel take = api_kernel(program, "take");
        for (cl_uint i = 0; i < a->count; i++) {
                read_at_once(a, take, i, 0, 0);
                read_at_once(a, take, i, 1, 0);
                if (api_out_of_order(a, i))
                        read_at_once(a, take, i, 0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        }
        OK(clReleaseKernel(take));
        OK(clReleaseProgram(program));
}

/* One buffer goes round the devices by itself, with events alone between the queues. */
static void round_trip(struct api *a)
{
        enum { SIZE = 300000, ROUNDS = 12 };
        uint8_t *in = api_alloc(SIZE), *out = api_alloc(SIZE);
        cl_mem m[2];
        for (int i = 0; i < 2; i++)
                m[i] = api_buffer(a, CL_MEM_READ_WRITE, SIZE, NULL);
        api_pattern(in, SIZE, 77);
        cl_event last;
        OK(clEnqueueWriteBuffer(a->queues[0], m[0], CL_FALSE, 0, SIZE, in, 0, NULL, &last));
        for (unsigned i = 0; i < ROUNDS; i++) {
                cl_event next;
                OK(clEnqueueCopyBuffer(api_queue(a, i + 1), m[i % 2], m[(i + 1) % 2], 0, 0, SIZE, 1,
                                       &last, &next));
                OK(clReleaseEvent(last));
                last = next;
        }
        OK(clEnqueueReadBuffer(a->queues[0], m[ROUNDS % 2], CL_TRUE, 0, SIZE, out, 1, &last, NULL));
        CHECK(!memcmp(in, out, SIZE));
        OK(clEnqueueMigrateMemObjects(api_queue(a, 1), 2, m, 0, 1, &last, NULL));
        OK(clEnqueueMigrateMemObjects(api_queue(a, 0), 1, m, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
                                      NULL));
        OK(clEnqueueMigrateMemObjects(api_queue(a, 1), 1, m,
                                      CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL));
        OK(clFinish(api_queue(a, 1)));
        OK(clReleaseEvent(last));
        for (int i = 0; i < 2; i++)
                OK(clReleaseMemObject(m[i]));
        free(in);
        free(out);
}

static cl_uint destroyed;
static void CL_CALLBACK on_destroy(cl_mem m, void *user)
{
        (void)m;
        /* The last registered comes first. */
        CHECK((cl_uint)(uintptr_t)user == 2 - destroyed);
        __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void destructors(struct api *a)
{
        cl_mem m = api_buffer(a, 0, 64, NULL);
        for (uintptr_t i = 0; i < 3; i++)
                OK(clSetMemObjectDestructorCallback(m, on_destroy, (void *)i));
        EXPECT(CL_INVALID_VALUE, clSetMemObjectDestructorCallback(m, NULL, NULL));
        OK(clRetainMemObject(m));
        cl_uint refs;
        OK(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
        CHECK(refs == 2);
        OK(clReleaseMemObject(m));
        CHECK(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) == 0);
        OK(clReleaseMemObject(m));
        while (__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) < 3) {
        }
}

static void errors(struct api *a)
{
        char byte[64] = { 0 };
        cl_command_queue q = a->queues[0];
        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreateBuffer(NULL, 0, 1, NULL, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, clCreateBuffer(a->context, 0, 0, NULL, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR, clCreateBuffer(a->context, 0, 1, byte, &error));
        EXPECT_ERROR(CL_INVALID_HOST_PTR,
                     clCreateBuffer(a->context, CL_MEM_COPY_HOST_PTR, 1, NULL, &error));
        EXPECT_ERROR(
                CL_INVALID_VALUE,
                clCreateBuffer(a->context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 1, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateBuffer(a->context, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 1, byte,
                                    &error));
        cl_mem m = api_buffer(a, 0, 64, NULL);
        EXPECT(CL_INVALID_COMMAND_QUEUE,
               clEnqueueReadBuffer(NULL, m, CL_TRUE, 0, 1, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadBuffer(q, NULL, CL_TRUE, 0, 1, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBuffer(q, m, CL_TRUE, 0, 1, NULL, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueReadBuffer(q, m, CL_TRUE, 60, 5, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueWriteBuffer(q, m, CL_TRUE, 65, 1, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE,
               clEnqueueWriteBuffer(q, m, CL_TRUE, (size_t)-1, 2, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueCopyBuffer(q, m, m, 0, 40, 32, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, clEnqueueCopyBuffer(q, m, m, 0, 16, 32, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST,
               clEnqueueReadBuffer(q, m, CL_TRUE, 0, 1, byte, 1, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueMigrateMemObjects(q, 0, &m, 0, 0, NULL, NULL));
        cl_mem closed = api_buffer(a, CL_MEM_HOST_NO_ACCESS, 64, NULL);
        EXPECT(CL_INVALID_OPERATION,
               clEnqueueReadBuffer(q, closed, CL_TRUE, 0, 1, byte, 0, NULL, NULL));
        EXPECT(CL_INVALID_OPERATION,
               clEnqueueWriteBuffer(q, closed, CL_TRUE, 0, 1, byte, 0, NULL, NULL));
        cl_int e;
        cl_context other = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        cl_mem foreign = clCreateBuffer(other, 0, 64, NULL, &e);
        OK(e);
        EXPECT(CL_INVALID_CONTEXT,
               clEnqueueReadBuffer(q, foreign, CL_TRUE, 0, 1, byte, 0, NULL, NULL));
        OK(clReleaseMemObject(foreign));
        OK(clReleaseContext(other));
        OK(clReleaseMemObject(closed));
        OK(clReleaseMemObject(m));
}

int main(void)
{
        struct api a = api_open(0);
        write_read(&a);
        parts(&a);
        fills(&a);
        initial_data(&a);
        sub_buffers(&a);
        round_trip(&a);
        readers(&a);
        destructors(&a);
        errors(&a);
        api_close(&a);
        printf("buffers: %u devices\n", a.count);
        return 0;
}
