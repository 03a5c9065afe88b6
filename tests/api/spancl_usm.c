/* Device allocations of cl_intel_unified_shared_memory, on the devices of several servers: every command, pointers in
 * memory that kernels follow, queries, what is not allowed. */

#include <CL/cl_ext.h>

#include "usm.h"

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void sum(__global const uint *a, __global uint *b) {\n"
        "        b[get_global_id(0)] += a[get_global_id(0)];\n"
        "}\n"
        "__kernel void through(__global const ulong *where, uint x) {\n"
        "        ((__global uint *)where[get_global_id(0)])[1] += x;\n"
        "}\n";

enum { N = 20000 };

static cl_uint host[N], back[N];

static void *alloc(struct api *a, cl_uint device, size_t size)
{
        cl_int err = 1;
        void *p = device_alloc(a->context, a->devices[device], NULL, size, 0, &err);
        OK(err);
        CHECK(p && (uintptr_t)p % 128 == 0);
        return p;
}

/* In every direction, in the middle, between devices; fills; kernels with pointers into the middle. */
static void copies(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add"), sum = api_kernel(program, "sum");
        api_pattern(host, sizeof(host), 5);
        for (cl_uint d = 0; d < a->count; d++) {
                cl_command_queue q = a->queues[d];
                cl_uint *x = alloc(a, d, sizeof(host)), *y = alloc(a, d, sizeof(host));
                OK(mem_copy(q, CL_FALSE, x, host, sizeof(host), 0, NULL, NULL));
                OK(set_pointer(add, 0, x));
                set_uint(add, 1, 10);
                run(q, add, N);
                OK(mem_copy(q, CL_FALSE, y, x, sizeof(host), 0, NULL, NULL));
                const cl_uint pattern[4] = { 1, 2, 3, 4 };
                OK(mem_fill(q, y + 1000, pattern, sizeof(pattern), 1600, 0, NULL, NULL));
                OK(mem_copy(q, CL_FALSE, y, y + 1001, 400, 0, NULL, NULL));
                OK(mem_copy(q, CL_TRUE, back, y, sizeof(back), 0, NULL, NULL));
                for (cl_uint i = 0; i < N; i++) {
                        cl_uint expected = host[i] + 10;
                        if (i < 100)
                                expected = pattern[(i + 1) % 4];
                        if (i >= 1000 && i < 1400)
                                expected = pattern[i % 4];
                        CHECK(back[i] == expected);
                }
                OK(set_pointer(sum, 0, x + 16));
                OK(set_pointer(sum, 1, y + 2000));
                run(q, sum, 100);
                OK(mem_copy(q, CL_TRUE, back, y + 1999, 102 * 4, 0, NULL, NULL));
                CHECK(back[0] == host[1999] + 10 && back[101] == host[2100] + 10);
                for (cl_uint i = 0; i < 100; i++)
                        CHECK(back[i + 1] == host[2000 + i] + host[16 + i] + 20);

                /* To the next device's. */
                cl_uint next = (d + 1) % a->count;
                cl_uint *z = alloc(a, next, sizeof(host));
                OK(mem_copy(a->queues[next], CL_TRUE, z, x, sizeof(host), 0, NULL, NULL));
                OK(set_pointer(add, 0, z + 1));
                run(a->queues[next], add, N - 1);
                OK(mem_copy(a->queues[next], CL_TRUE, back, z, sizeof(back), 0, NULL, NULL));
                CHECK(back[0] == host[0] + 10);
                for (cl_uint i = 1; i < N; i++)
                        CHECK(back[i] == host[i] + 20);
                OK(free_now(a->context, x));
                OK(free_now(a->context, y));
                OK(free_blocking(a->context, z));
        }
        OK(mem_copy(a->queues[0], CL_TRUE, back, host, sizeof(host), 0, NULL, NULL));
        CHECK(!memcmp(back, host, sizeof(host)));
        OK(free_now(a->context, NULL));
        OK(free_blocking(a->context, NULL));
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(sum));
}

/* Addresses in one allocation lead to others. The kernel gets these one by one, or all. */
static void reached(struct api *a, cl_program program, int all)
{
        enum { COUNT = 200 };
        static cl_uint *p[COUNT];
        cl_ulong where[COUNT];
        cl_int err;
        for (cl_uint d = 0; d < a->count; d++) {
                cl_command_queue q = a->queues[d];
                cl_kernel k = api_kernel(program, "through");
                cl_ulong *table = alloc(a, d, sizeof(where));
                for (cl_uint i = 0; i < COUNT; i++) {
                        p[i] = alloc(a, d, 8 + i * 40);
                        where[i] = (cl_ulong)(uintptr_t)p[i];
                        OK(mem_fill(q, p[i], &i, 4, 8, 0, NULL, NULL));
                }
                OK(mem_copy(q, CL_FALSE, table, where, sizeof(where), 0, NULL, NULL));
                OK(set_pointer(k, 0, table));
                set_uint(k, 1, 1000 + d);
                const cl_bool yes = CL_TRUE;
                if (all)
                        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                                               sizeof(yes), &yes));
                else
                        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof(p),
                                               p));
                cl_kernel clone = clCloneKernel(k, &err);
                OK(err);
                OK(clReleaseKernel(k));
                run(q, clone, COUNT);
                for (cl_uint i = 0; i < COUNT; i++) {
                        cl_uint got[2];
                        OK(mem_copy(q, CL_TRUE, got, p[i], sizeof(got), 0, NULL, NULL));
                        CHECK(got[0] == i && got[1] == i + 1000 + d);
                        OK(free_blocking(a->context, p[i]));
                }
                OK(free_blocking(a->context, table));
                OK(clReleaseKernel(clone));
        }
}

/* A device allocation as the application's side of transfers of buffers. */
static void sides(struct api *a)
{
        enum { ROW = 64, ROWS = 8 };
        api_pattern(host, sizeof(host), 9);
        for (cl_uint d = 0; d < a->count; d++) {
                cl_command_queue q = a->queues[d];
                cl_uint *x = alloc(a, d, sizeof(host));
                cl_mem m = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(host), host);
                const size_t from[3] = { 8, 1, 2 }, to[3] = { 4, 3, 0 }, region[3] = { 16, 4, 3 };
                cl_event e;
                cl_command_type type;
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 4, sizeof(host) - 8, x + 2, 0, NULL, &e));
                OK(clGetEventInfo(e, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
                CHECK(type == CL_COMMAND_READ_BUFFER);
                OK(clReleaseEvent(e));
                OK(mem_copy(q, CL_TRUE, back, x + 2, sizeof(host) - 8, 0, NULL, NULL));
                CHECK(!memcmp(back, host + 1, sizeof(host) - 8));
                OK(clEnqueueWriteBuffer(q, m, CL_FALSE, 40, 400, x + 100, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(host), back, 0, NULL, NULL));
                for (cl_uint i = 0; i < N; i++)
                        CHECK(back[i] == (i >= 10 && i < 110 ? host[i + 89] : host[i]));
                OK(clEnqueueReadBufferRect(q, m, CL_TRUE, from, to, region, ROW, ROW * ROWS, ROW,
                                           ROW * ROWS, (char *)x + 4 * ROW + 36, 0, NULL, &e));
                cl_int status;
                OK(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                  NULL));
                CHECK(status == CL_COMPLETE); /* the call is a blocking one */
                OK(clReleaseEvent(e));
                OK(mem_copy(q, CL_TRUE, back, x, sizeof(host), 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
                for (size_t z = 0; z < region[2]; z++)
                        for (size_t y = 0; y < region[1]; y++)
                                CHECK(!memcmp((char *)back + 4 * ROW + 36 + to[0] +
                                                      ((to[2] + z) * ROWS + to[1] + y) * ROW,
                                              (char *)host + from[0] +
                                                      ((from[2] + z) * ROWS + from[1] + y) * ROW,
                                              region[0]));
                OK(clEnqueueWriteBufferRect(q, m, CL_FALSE, to, from, region, ROW, ROW * ROWS, ROW,
                                            ROW * ROWS, x, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
                CHECK(!memcmp((char *)host + to[0] + to[1] * ROW,
                              (char *)back + from[0] + from[1] * ROW + from[2] * ROW * ROWS,
                              region[0]));
                EXPECT(CL_INVALID_VALUE,
                       clEnqueueReadBuffer(q, m, CL_TRUE, 0, 8, x + N - 1, 0, NULL, NULL));
                EXPECT(CL_INVALID_VALUE,
                       clEnqueueReadBufferRect(q, m, CL_TRUE, from, to, region, ROW, ROW * ROWS,
                                               ROW, ROW * ROWS, x + N - ROW, 0, NULL, NULL));
                OK(clReleaseMemObject(m));
                OK(free_blocking(a->context, x));
        }
}

#define INFO(pointer, name, type)                                                                 \
        ({                                                                                        \
                type info_value;                                                                  \
                size_t info_size = 0;                                                             \
                OK(alloc_info(a->context, pointer, name, sizeof(type), &info_value, &info_size)); \
                CHECK(info_size == sizeof(type));                                                 \
                info_value;                                                                       \
        })

static void queries(struct api *a)
{
        const cl_mem_properties_intel wanted[] = { CL_MEM_ALLOC_FLAGS_INTEL,
                                                   CL_MEM_ALLOC_WRITE_COMBINED_INTEL, 0 };
        cl_device_id last = a->devices[a->count - 1];
        cl_int err;
        char *x = alloc(a, a->count - 1, 1000), *inside = x + 999;
        char *y = device_alloc(a->context, last, wanted, 64, 64, &err);
        OK(err);
        CHECK(INFO(inside, CL_MEM_ALLOC_TYPE_INTEL, cl_uint) == CL_MEM_TYPE_DEVICE_INTEL);
        CHECK(INFO(inside, CL_MEM_ALLOC_BASE_PTR_INTEL, void *) == x);
        CHECK(INFO(inside, CL_MEM_ALLOC_SIZE_INTEL, size_t) >= 1000);
        CHECK(INFO(inside, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id) == last);
        CHECK(INFO(inside, CL_MEM_ALLOC_FLAGS_INTEL, cl_mem_alloc_flags_intel) == 0);
        CHECK(INFO(y, CL_MEM_ALLOC_BASE_PTR_INTEL, void *) == y);
        CHECK(INFO(y, CL_MEM_ALLOC_FLAGS_INTEL, cl_mem_alloc_flags_intel) ==
              CL_MEM_ALLOC_WRITE_COMBINED_INTEL);
        const void *const unknown[] = { host, NULL };
        for (int i = 0; i < 2; i++) {
                CHECK(INFO(unknown[i], CL_MEM_ALLOC_TYPE_INTEL, cl_uint) ==
                      CL_MEM_TYPE_UNKNOWN_INTEL);
                CHECK(INFO(unknown[i], CL_MEM_ALLOC_BASE_PTR_INTEL, void *) == NULL);
                CHECK(INFO(unknown[i], CL_MEM_ALLOC_SIZE_INTEL, size_t) == 0);
                CHECK(INFO(unknown[i], CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id) == NULL);
                CHECK(INFO(unknown[i], CL_MEM_ALLOC_FLAGS_INTEL, cl_mem_alloc_flags_intel) == 0);
        }
        cl_uint type;
        EXPECT(CL_INVALID_VALUE,
               alloc_info(a->context, x, CL_MEM_ALLOC_SIZE_INTEL, sizeof(size_t) / 2, &type, NULL));
        EXPECT(CL_INVALID_VALUE, alloc_info(a->context, x, 0x4208, 4, &type, NULL));
        EXPECT(CL_INVALID_CONTEXT,
               alloc_info(NULL, x, CL_MEM_ALLOC_TYPE_INTEL, sizeof(type), &type, NULL));
        OK(free_now(a->context, x));
        OK(free_now(a->context, y));
}

static cl_command_type type_of(cl_event e)
{
        cl_command_type type = 0;
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        OK(clReleaseEvent(e));
        return type;
}

/* clMemBlockingFreeINTEL returns when all earlier commands are complete. */
static void events(struct api *a)
{
        cl_command_queue q = a->queues[0];
        cl_uint *x = alloc(a, 0, sizeof(host)), *y = alloc(a, 0, 64);
        const cl_uint seven = 7;
        cl_event e[4];
        memset(back, 0, sizeof(back));
        OK(mem_copy(q, CL_FALSE, x, host, sizeof(host), 0, NULL, &e[0]));
        OK(mem_fill(q, y, &seven, 4, 64, 0, NULL, &e[1]));
        OK(migrate(q, y, 64, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 1, &e[1], &e[2]));
        OK(advise(q, y, 64, 0, 1, &e[2], &e[3]));
        OK(mem_copy(q, CL_FALSE, x + 7, y, 4, 1, &e[3], NULL));
        OK(mem_copy(q, CL_FALSE, back, x, sizeof(back), 0, NULL, NULL));
        OK(free_blocking(a->context, x));
        for (cl_uint i = 0; i < N; i++)
                CHECK(back[i] == (i == 7 ? 7 : host[i]));
        const cl_command_type types[] = { CL_COMMAND_MEMCPY_INTEL, CL_COMMAND_MEMFILL_INTEL,
                                          CL_COMMAND_MIGRATEMEM_INTEL, CL_COMMAND_MEMADVISE_INTEL };
        for (int i = 0; i < 4; i++) {
                CHECK(api_status(e[i]) == CL_COMPLETE);
                CHECK(type_of(e[i]) == types[i]);
        }
        OK(free_now(a->context, y));
}

static void errors(struct api *a, cl_program program)
{
        cl_context x = a->context;
        cl_device_id d = a->devices[0];
        cl_command_queue q = a->queues[0];
        cl_kernel k = api_kernel(program, "add");
        cl_uint *p = alloc(a, 0, 4096);
        const cl_uint one = 1;
        const cl_mem_properties_intel unknown[] = { CL_MEM_ALLOC_TYPE_INTEL, 0, 0 };
        const cl_mem_properties_intel placed[] = { CL_MEM_ALLOC_FLAGS_INTEL,
                                                   CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL, 0 };
        EXPECT_ERROR(CL_INVALID_CONTEXT, device_alloc(NULL, d, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_DEVICE, device_alloc(x, NULL, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, device_alloc(x, d, NULL, 64, 3, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY, device_alloc(x, d, unknown, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY, device_alloc(x, d, placed, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, device_alloc(x, d, NULL, 0, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, device_alloc(x, d, NULL, SIZE_MAX, 0, &error));
        EXPECT(CL_INVALID_CONTEXT, free_now(NULL, p));
        EXPECT(CL_INVALID_VALUE, free_now(x, host));
        EXPECT(CL_INVALID_VALUE, free_blocking(x, host));

        EXPECT(CL_INVALID_VALUE, mem_copy(q, CL_TRUE, NULL, p, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_copy(q, CL_TRUE, p, NULL, 4, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, mem_copy(q, CL_TRUE, p, p + 1, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, mem_copy(NULL, CL_TRUE, p, host, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, mem_copy(q, CL_TRUE, p, host, 4, 1, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_fill(q, NULL, &one, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_fill(q, p, NULL, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_fill(q, p, &one, 3, 3, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, mem_fill(q, p, &one, 4, 6, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, mem_fill(NULL, p, &one, 4, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, migrate(NULL, p, 4, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, advise(NULL, p, 4, 0, 0, NULL, NULL));

        EXPECT(CL_INVALID_KERNEL, set_pointer(NULL, 0, p));
        EXPECT(CL_INVALID_ARG_INDEX, set_pointer(k, 7, p));
        OK(set_pointer(k, 0, NULL));
        OK(free_now(x, p));
        OK(clReleaseKernel(k));
}

int main(void)
{
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_bitfield can = 0;
                (void)clGetDeviceInfo(a.devices[i], CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
                                      sizeof(can), &can, NULL);
                if (!(can & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL))
                        return 77;
        }
        usm_find(&a);
        cl_program program = api_build(&a, source, "");
        copies(&a, program);
        reached(&a, program, 0);
        reached(&a, program, 1);
        sides(&a);
        queries(&a);
        events(&a);
        errors(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
