/* Host and shared allocations of cl_intel_unified_shared_memory, which the application reads and
 * writes as its own memory, on the devices of several servers. */

#include <CL/cl_ext.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "usm.h"

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void through(__global const ulong *where, uint x) {\n"
        "        ((__global uint *)where[get_global_id(0)])[1] += x;\n"
        "}\n"
        "__kernel void nothing(__global uint *p) { }\n";

enum { N = 100000, PAGE = 4096 };

/* `device` API_DEVICES_MAX: host memory; one more: shared memory of no device. */
static void *alloc(struct api *a, cl_uint device, size_t size)
{
        cl_int err = 1;
        void *p = device == API_DEVICES_MAX
                          ? host_alloc(a->context, NULL, size, 0, &err)
                          : shared_alloc(a->context,
                                         device > API_DEVICES_MAX ? NULL : a->devices[device], NULL,
                                         size, 0, &err);
        OK(err);
        CHECK(p && (uintptr_t)p % 128 == 0);
        return p;
}

/* The host and the devices write one after the other. */
static void in_turn(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add");
        for (cl_uint kind = 0; kind <= API_DEVICES_MAX + 1; kind++) {
                if (kind >= a->count && kind < API_DEVICES_MAX)
                        continue;
                cl_uint *p = alloc(a, kind, N * sizeof(*p));
                cl_uint sum = 0;
                for (cl_uint i = 0; i < N; i++)
                        p[i] = i;
                for (cl_uint d = 0; d < a->count; d++) {
                        OK(set_pointer(add, 0, p + 10));
                        set_uint(add, 1, d + 1);
                        sum += d + 1;
                        run(a->queues[d], add, N - 20);
                        OK(clFinish(a->queues[d]));
                        CHECK(p[9] == 9 + 100 * d);
                        CHECK(p[10] == 10 + sum);
                        CHECK(p[N - 11] == N - 11 + sum);
                        p[9] += 100;
                }
                for (cl_uint i = 10; i < N - 10; i++)
                        CHECK(p[i] == i + sum);
                /* Backwards, as no read-ahead likes it. */
                for (cl_uint i = N; i-- > N - 10;)
                        CHECK(p[i] == i);
                OK(mem_fill(a->queues[0], p + 1, &sum, 4, 4, 0, NULL, NULL));
                OK(mem_copy(a->queues[0], CL_TRUE, p + N - 1, p + 1, 4, 0, NULL, NULL));
                CHECK(p[0] == 0 && p[1] == sum && p[2] == 2 && p[N - 1] == sum);
                OK(free_blocking(a->context, p));
        }
        OK(clReleaseKernel(add));
}

/* Pointers in memory that the host has written lead to other allocations. */
static void reached(struct api *a, cl_program program)
{
        enum { COUNT = 100 };
        cl_uint *p[COUNT];
        cl_kernel k = api_kernel(program, "through"), nothing = api_kernel(program, "nothing");
        const cl_bool yes = CL_TRUE;
        cl_ulong *where = alloc(a, API_DEVICES_MAX, sizeof(cl_ulong) * COUNT);
        for (int i = 0; i < 2; i++) {
                cl_kernel any = i ? k : nothing;
                OK(clSetKernelExecInfo(any, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                                       sizeof(yes), &yes));
                OK(clSetKernelExecInfo(any, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                                       sizeof(yes), &yes));
                OK(clSetKernelExecInfo(any, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                                       sizeof(yes), &yes));
        }
        for (cl_uint i = 0; i < COUNT; i++) {
                p[i] = alloc(a, i % 2 ? API_DEVICES_MAX : 0, 8 + i * 100);
                where[i] = (cl_ulong)(uintptr_t)p[i];
        }
        OK(set_pointer(nothing, 0, where));
        OK(set_pointer(k, 0, where));
        for (cl_uint d = 0; d < a->count; d++) {
                /* Some have been written by nobody, when a kernel may have. */
                run(a->queues[d], nothing, 1);
                OK(clFinish(a->queues[d]));
                for (cl_uint i = 0; i < COUNT; i++)
                        p[i][1] = i;
                set_uint(k, 1, d + 5);
                run(a->queues[d], k, COUNT);
                run(a->queues[d], k, COUNT);
                OK(clFinish(a->queues[d]));
                for (cl_uint i = 0; i < COUNT; i++)
                        CHECK(p[i][1] == i + 2 * (d + 5));
        }
        for (cl_uint i = 0; i < COUNT; i++)
                OK(free_now(a->context, p[i]));
        /* Written by a kernel first, that nobody said would. */
        cl_uint *fresh = alloc(a, 0, 3 * PAGE);
        where[0] = (cl_ulong)(uintptr_t)fresh;
        cl_uint zero[2] = { 0, 0 };
        OK(mem_copy(a->queues[0], CL_TRUE, fresh, zero, sizeof(zero), 0, NULL, NULL));
        run(a->queues[0], k, 1);
        OK(clFinish(a->queues[0]));
        CHECK(fresh[1] == a->count - 1 + 5);
        OK(free_now(a->context, fresh));
        OK(free_now(a->context, where));
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(nothing));
}

/* A system call writes to a page that the program has only read: that fails, unless the kernel notes
 * writes. The device sees what it wrote. */
static void read_where_read(struct api *a, cl_kernel add, FILE *file, char *p)
{
        char *at = p + 2 * PAGE;
        OK(set_pointer(add, 0, p));
        run(a->queues[0], add, 1);
        OK(clFinish(a->queues[0]));
        CHECK(*(volatile char *)at == 3);
        CHECK(pwrite(fileno(file), "abcd", 4, 0) == 4);
        ssize_t n = pread(fileno(file), at + 4, 4, 0);
        CHECK(n == 4 || (n < 0 && errno == EFAULT));
        const char *how = getenv("SPANCL_USM_WRITES");
        CHECK(n == 4 || !how || strcmp(how, "userfaultfd") != 0);
        OK(set_pointer(add, 0, at + 4));
        run(a->queues[0], add, 1);
        OK(clFinish(a->queues[0]));
        CHECK(at[4] == (n == 4 ? 'b' : 4) && at[5] == (n == 4 ? 'b' : 3));
}

/* System calls read and write small allocations after each wait, and any that no command has used. */
static void system_calls(struct api *a, cl_program program)
{
        enum { SMALL = 2048, LARGE = 1 << 20 };
        cl_kernel add = api_kernel(program, "add");
        int ends[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        FILE *file = tmpfile();
        CHECK(file);
        char *large = alloc(a, 0, LARGE);
        static char zeros[LARGE];
        memset(zeros, 3, sizeof(zeros));
        CHECK(pwrite(fileno(file), zeros, LARGE, 0) == LARGE);
        CHECK(pread(fileno(file), large, LARGE, 0) == LARGE);
        cl_uint *p = alloc(a, 0, SMALL);
        for (cl_uint i = 0; i < SMALL / 4; i++)
                p[i] = i;
        OK(set_pointer(add, 0, p));
        set_uint(add, 1, 1);
        for (cl_uint round = 1; round < 4; round++) {
                run(a->queues[0], add, SMALL / 4);
                OK(clFinish(a->queues[0]));
                cl_uint got[SMALL / 4];
                CHECK(send(ends[0], p, SMALL, 0) == SMALL);
                CHECK(recv(ends[1], got, SMALL, MSG_WAITALL) == SMALL);
                for (cl_uint i = 0; i < SMALL / 4; i++)
                        CHECK(got[i] == i + round);
                CHECK(send(ends[1], got, SMALL, 0) == SMALL);
                CHECK(recv(ends[0], p, SMALL, MSG_WAITALL) == SMALL);
                /* Out of it and into it again, as files do it. */
                run(a->queues[0], add, SMALL / 4);
                OK(clFinish(a->queues[0]));
                struct iovec parts[2] = { { p, 100 }, { (char *)p + 100, SMALL - 100 } };
                CHECK(lseek(fileno(file), LARGE, SEEK_SET) == LARGE);
                CHECK(write(fileno(file), p, SMALL) == SMALL);
                memset(p, 0, SMALL);
                CHECK(lseek(fileno(file), LARGE, SEEK_SET) == LARGE);
                CHECK(readv(fileno(file), parts, 2) == SMALL);
                for (cl_uint i = 0; i < SMALL / 4; i++)
                        CHECK(p[i] == i + round + 1);
                for (cl_uint i = 0; i < SMALL / 4; i++)
                        p[i] = i + round;
        }
        OK(set_pointer(add, 0, large));
        run(a->queues[0], add, 1);
        OK(clFinish(a->queues[0]));
        CHECK(large[0] == 4 && large[1] == 3 && large[LARGE - 1] == 3);
        /* A larger one has to be touched first: each page, in the same way. */
        run(a->queues[0], add, 1);
        OK(clFinish(a->queues[0]));
        for (size_t i = 0; i < LARGE; i += PAGE)
                (void)*(volatile char *)(large + i);
        CHECK(pwrite(fileno(file), large, LARGE, 0) == LARGE);
        for (size_t i = 0; i < LARGE; i += PAGE)
                *(volatile char *)(large + i) = 0;
        CHECK(pread(fileno(file), large, LARGE, 0) == LARGE);
        run(a->queues[0], add, 1);
        OK(clFinish(a->queues[0]));
        CHECK(large[0] == 6 && large[1] == 3 && large[LARGE - 1] == 3);
        read_where_read(a, add, file, large);
        close(ends[0]);
        close(ends[1]);
        fclose(file);
        OK(free_now(a->context, p));
        OK(free_now(a->context, large));
        OK(clReleaseKernel(add));
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4 };

struct worker {
        struct api *a;
        cl_program program;
        cl_uint number;
};

static void *work(void *arg)
{
        const struct worker *w = arg;
        cl_command_queue q = w->a->queues[w->number % w->a->count];
        cl_kernel add = api_kernel(w->program, "add");
        const cl_bool yes = CL_TRUE;
        cl_uint *p = alloc(w->a, w->number % w->a->count, N * 4);
        OK(clSetKernelExecInfo(add, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL, sizeof(yes),
                               &yes));
        memset(p, 0, N * 4);
        OK(set_pointer(add, 0, p));
        set_uint(add, 1, 1);
        for (cl_uint i = 1; i <= 20; i++) {
                size_t count = N;
                cl_event e;
                OK(clEnqueueNDRangeKernel(q, add, 1, NULL, &count, NULL, 0, NULL, &e));
                OK(clWaitForEvents(1, &e));
                OK(clReleaseEvent(e));
                cl_uint at = i * 4711 % N;
                CHECK(p[at] == i);
                p[at] = i;
        }
        OK(free_blocking(w->a->context, p));
        OK(clReleaseKernel(add));
        return NULL;
}

/* Each with its own memory, while the kernels of the others may reach it. */
static void threads(struct api *a, cl_program program)
{
        pthread_t all[THREADS];
        struct worker workers[THREADS];
        for (cl_uint i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){ a, program, i };
                CHECK(pthread_create(&all[i], NULL, work, &workers[i]) == 0);
        }
        for (cl_uint i = 0; i < THREADS; i++)
                CHECK(pthread_join(all[i], NULL) == 0);
}

/* A large allocation takes no memory before it is used. */
static void large(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add");
        cl_ulong most = 0;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL));
        /* A part of the address space of a 32-bit program. */
        const cl_ulong enough = sizeof(void *) == 8 ? (cl_ulong)64 << 30 : 256 << 20;
        size_t size = (size_t)(most > enough ? enough : most);
        cl_int err;
        char *p = shared_alloc(a->context, a->devices[0], NULL, size, 0, &err);
        OK(err);
        cl_uint *middle = (cl_uint *)(void *)(p + size / 2 / PAGE * PAGE);
        *middle = 5;
        OK(set_pointer(add, 0, middle));
        set_uint(add, 1, 6);
        run(a->queues[0], add, 100);
        OK(clFinish(a->queues[0]));
        CHECK(*middle == 11);
        p[size - 1] = 3;
        CHECK(p[size - 1] == 3);
        OK(free_blocking(a->context, p));
        OK(clReleaseKernel(add));
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
        cl_device_id d = a->devices[0];
        cl_bitfield can;
        OK(clGetDeviceInfo(d, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, sizeof(can), &can, NULL));
        CHECK(can & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL);
        OK(clGetDeviceInfo(d, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, sizeof(can),
                           &can, NULL));
        CHECK(can & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL);
        char *host = alloc(a, API_DEVICES_MAX, 1000), *shared = alloc(a, 0, 1000);
        char *none = alloc(a, API_DEVICES_MAX + 1, 1000);
        CHECK(INFO(host + 999, CL_MEM_ALLOC_TYPE_INTEL, cl_uint) == CL_MEM_TYPE_HOST_INTEL);
        CHECK(INFO(host + 1, CL_MEM_ALLOC_BASE_PTR_INTEL, void *) == host);
        CHECK(INFO(host, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id) == NULL);
        CHECK(INFO(shared, CL_MEM_ALLOC_TYPE_INTEL, cl_uint) == CL_MEM_TYPE_SHARED_INTEL);
        CHECK(INFO(shared, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id) == d);
        CHECK(INFO(shared, CL_MEM_ALLOC_SIZE_INTEL, size_t) >= 1000);
        CHECK(INFO(none, CL_MEM_ALLOC_TYPE_INTEL, cl_uint) == CL_MEM_TYPE_SHARED_INTEL);
        CHECK(INFO(none, CL_MEM_ALLOC_DEVICE_INTEL, cl_device_id) == NULL);
        OK(free_now(a->context, host));
        OK(free_now(a->context, shared));
        OK(free_blocking(a->context, none));
        for (cl_uint align = 1; align <= 4096; align *= 2) {
                cl_int err;
                void *p = host_alloc(a->context, NULL, 100, align, &err);
                OK(err);
                CHECK((uintptr_t)p % align == 0);
                OK(free_now(a->context, p));
        }
}

/* Everything that calls read and write may be memory that a kernel has written last. */
static void into_closed_pages(struct api *a, cl_program program, cl_kernel add, cl_uint *p)
{
        cl_command_queue q = a->queues[0];
        char *at = (char *)p;
        size_t *size = (size_t *)(void *)(at + 0x20000), got = 0;
        cl_event *event = (cl_event *)(void *)(at + 0x50000);
        OK(set_pointer(add, 0, p));
        set_uint(add, 1, 1);
        run(q, add, N);
        OK(clFinish(q));
        OK(alloc_info(a->context, p, CL_MEM_ALLOC_SIZE_INTEL, sizeof(*size), size, &got));
        CHECK(*size >= N * 4 && got == sizeof(size_t));
        OK(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(got), at + 0x30000, NULL));
        OK(clGetProgramBuildInfo(program, a->devices[0], CL_PROGRAM_BUILD_LOG, 0x1000, at + 0x40000,
                                 NULL));
        cl_kernel *kernels = (cl_kernel *)(void *)(at + 0x58000);
        cl_uint count = 0;
        OK(clCreateKernelsInProgram(program, 100, kernels, &count));
        CHECK(count == 3);
        for (cl_uint i = 0; i < count; i++)
                OK(clReleaseKernel(kernels[i]));
        OK(clEnqueueMarkerWithWaitList(q, 0, NULL, event));
        OK(clEnqueueMarkerWithWaitList(q, 1, event, NULL));
        OK(clReleaseEvent(*event));
        run(q, add, N);
        OK(clFinish(q));
        OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, a->count * sizeof(size_t), size,
                            &got));
        CHECK(got == a->count * sizeof(size_t));
}

static void rectangles(struct api *a, cl_uint *p)
{
        enum { SIZE = 512 };
        cl_command_queue q = a->queues[0];
        const cl_uchar *got = (const cl_uchar *)p;
        cl_uchar all[SIZE];
        const size_t zero[3] = { 0, 0, 0 }, box[3] = { 4, 2, 2 };
        for (size_t i = 0; i < SIZE; i++)
                all[i] = (cl_uchar)i;
        cl_mem buffer = api_buffer(a, CL_MEM_COPY_HOST_PTR, SIZE, all);
        for (size_t at = 0; at < 256; at += 13) {
                memset(p, 0, SIZE);
                OK(clEnqueueReadBufferRect(q, buffer, CL_TRUE, zero, zero, box, 4, 8, 7, 21,
                                           (char *)p + at, 0, NULL, NULL));
                for (size_t z = 0; z < 2; z++)
                        for (size_t y = 0; y < 2; y++)
                                CHECK(!memcmp(got + at + 21 * z + 7 * y, all + 8 * z + 4 * y, 4));
        }
        OK(clReleaseMemObject(buffer));
}

static void images(struct api *a, cl_program program, cl_uint *p)
{
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                     .image_width = 8,
                                     .image_height = 8 };
        const size_t origin[3] = { 0, 0, 0 }, region[3] = { 8, 8, 1 };
        cl_command_queue q = a->queues[0];
        cl_kernel add = api_kernel(program, "add");
        cl_int err;
        cl_mem image = clCreateImage(a->context, 0, &format, &desc, NULL, &err);
        if (err == CL_SUCCESS) {
                for (cl_uint i = 0; i < 64; i++)
                        p[i] = i << 8;
                OK(set_pointer(add, 0, p));
                set_uint(add, 1, 5);
                run(q, add, 64);
                OK(clFinish(q));
                OK(clEnqueueWriteImage(q, image, CL_TRUE, origin, region, 0, 0, p, 0, NULL, NULL));
                OK(clEnqueueReadImage(q, image, CL_TRUE, origin, region, 32, 0, p + 100, 0, NULL,
                                      NULL));
                for (cl_uint i = 0; i < 64; i++)
                        CHECK(p[100 + i] == (i << 8) + 5);
                OK(clReleaseMemObject(image));
        }
        OK(clReleaseKernel(add));
}

/* Such memory is host memory for other calls, too. */
static void as_host_memory(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add");
        cl_command_queue q = a->queues[0];
        cl_uint *p = alloc(a, 0, N * 4), *small = alloc(a, API_DEVICES_MAX, 64);
        memset(p, 0, N * 4);
        OK(set_pointer(add, 0, p));
        set_uint(add, 1, 7);
        run(q, add, N);
        OK(clFinish(q));
        cl_mem copy = api_buffer(a, CL_MEM_COPY_HOST_PTR, N * 4 - 400, p + 100);
        cl_uint got = 0;
        OK(clEnqueueReadBuffer(q, copy, CL_TRUE, N * 2, 4, &got, 0, NULL, NULL));
        CHECK(got == 7);
        /* An argument's value, and a pattern, that a kernel has written. */
        memset(small, 0, 64);
        OK(set_pointer(add, 0, small));
        run(q, add, 16);
        OK(clFinish(q));
        OK(clSetKernelArg(add, 1, sizeof(cl_uint), small));
        /* Values of a wrong size are not read. */
        static const size_t wrong[] = { 5, 64 << 10, 1 << 30, SIZE_MAX };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                for (cl_uint arg = 0; arg < 2; arg++)
                        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(add, arg, wrong[i], small));
        run(q, add, 16);
        OK(clFinish(q));
        OK(mem_fill(q, p, small, 4, N * 4, 0, NULL, NULL));
        OK(clFinish(q));
        CHECK(p[N - 1] == 14 && p[0] == 14);
        OK(clReleaseMemObject(copy));
        into_closed_pages(a, program, add, p);
        rectangles(a, p);
        images(a, program, p);
        OK(clReleaseKernel(add));
        OK(free_now(a->context, p));
        OK(free_now(a->context, small));
}

static sigjmp_buf back;

static void on_signal(int number)
{
        siglongjmp(back, number);
}

/* A page that the application closes itself stays so. */
static void own_protection(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add");
        volatile cl_uint *p = alloc(a, API_DEVICES_MAX, 4 * PAGE);
        struct sigaction now = { .sa_handler = on_signal }, before;
        void *page = (void *)(uintptr_t)((uintptr_t)p / PAGE * PAGE);
        p[0] = 1;
        OK(set_pointer(add, 0, (void *)(uintptr_t)p));
        set_uint(add, 1, 1);
        CHECK(sigaction(SIGSEGV, &now, &before) == 0);
        for (int i = 0; i < 2; i++) {
                run(a->queues[0], add, 1);
                OK(clFinish(a->queues[0]));
                CHECK(p[0] == 2 + (cl_uint)i);
        }
        CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
        if (!sigsetjmp(back, 1)) {
                (void)p[0];
                CHECK(!"the page can be read");
        }
        CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
        CHECK(p[0] == 3);
        CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
        OK(free_now(a->context, (void *)(uintptr_t)p));
        OK(clReleaseKernel(add));
}

static void errors(struct api *a)
{
        cl_context x = a->context;
        cl_device_id d = a->devices[0];
        const cl_mem_properties_intel unknown[] = { CL_MEM_ALLOC_TYPE_INTEL, 0, 0 };
        const cl_mem_properties_intel both[] = { CL_MEM_ALLOC_FLAGS_INTEL,
                                                 CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL |
                                                         CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL,
                                                 0 };
        const cl_mem_properties_intel placed[] = { CL_MEM_ALLOC_FLAGS_INTEL,
                                                   CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL, 0 };
        cl_int err;
        EXPECT_ERROR(CL_INVALID_CONTEXT, host_alloc(NULL, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_CONTEXT, shared_alloc(NULL, d, NULL, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, host_alloc(x, NULL, 0, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, shared_alloc(x, d, NULL, 0, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, host_alloc(x, NULL, SIZE_MAX, 0, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE, shared_alloc(x, d, NULL, SIZE_MAX, 0, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, host_alloc(x, NULL, 64, 3, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY, host_alloc(x, unknown, 64, 0, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY, shared_alloc(x, d, both, 64, 0, &error));
        void *p = shared_alloc(x, d, placed, 64, 0, &err);
        CHECK(err == CL_SUCCESS || err == CL_INVALID_PROPERTY); /* Intel's does not know it */
        OK(free_now(x, p));
        EXPECT(CL_INVALID_VALUE, free_now(x, &err));
        EXPECT(CL_INVALID_CONTEXT, free_now(NULL, NULL));
}

/* A kernel that may reach everything has bytes brought that it does not use. Another command that
 * needs them waits for them, though it is not ordered behind the kernel. */
static void beside_a_launch(struct api *a, cl_program program)
{
        enum { SIZE = 8 << 20 };
        const cl_bool yes = CL_TRUE;
        cl_kernel add = api_kernel(program, "add");
        OK(clSetKernelExecInfo(add, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof(yes),
                               &yes));
        for (cl_uint i = 0; i < a->count; i++) {
                cl_int err;
                cl_command_queue other = clCreateCommandQueue(a->context, a->devices[i], 0, &err);
                OK(err);
                cl_uint *p = alloc(a, API_DEVICES_MAX, SIZE), *own = alloc(a, i, PAGE);
                uint8_t *out = api_alloc(SIZE);
                own[0] = 0;
                api_pattern((uint8_t *)p, SIZE, i);
                OK(set_pointer(add, 0, own));
                set_uint(add, 1, 1);
                run(a->queues[i], add, 1);
                OK(mem_copy(other, CL_TRUE, out, p, SIZE, 0, NULL, NULL));
                OK(clFinish(a->queues[i]));
                CHECK(!memcmp(p, out, SIZE));
                CHECK(own[0] == 1);
                free(out);
                OK(free_blocking(a->context, own));
                OK(free_blocking(a->context, p));
                OK(clReleaseCommandQueue(other));
        }
        OK(clReleaseKernel(add));
}

/* Hints change nothing. */
static void hints(struct api *a)
{
        cl_uint *p = alloc(a, 0, PAGE * 4), seven = 7;
        p[0] = 1;
        for (cl_uint i = 0; i < a->count; i++) {
                cl_command_queue q = a->queues[i];
                cl_int err = migrate(q, p, PAGE, 0, 0, NULL, NULL);
                CHECK(err == CL_SUCCESS || err == CL_INVALID_VALUE); /* Intel's refuses no flags */
                err = advise(q, p, PAGE, 0, 0, NULL, NULL);
                CHECK(err == CL_SUCCESS || err == CL_INVALID_VALUE); /* and no advice */
                OK(mem_fill(q, p + 1, &seven, 4, 4, 0, NULL, NULL));
                OK(migrate(q, p, PAGE * 4, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
                OK(clFinish(q));
                CHECK(p[0] == i + 1 && p[1] == 7);
                p[0]++;
                p[1] = 0;
        }
        OK(free_now(a->context, p));
}

int main(void)
{
        struct api a = api_open(0);
        cl_bitfield can = 0;
        (void)clGetDeviceInfo(a.devices[0], CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, sizeof(can),
                              &can, NULL);
        if (!can) {
                fprintf(stderr, "no unified shared memory\n");
                return 77;
        }
        usm_find(&a);
        cl_program program = api_build(&a, source, "");
        queries(&a);
        errors(&a);
        in_turn(&a, program);
        reached(&a, program);
        system_calls(&a, program);
        as_host_memory(&a, program);
        hints(&a);
        beside_a_launch(&a, program);
        own_protection(&a, program);
        large(&a, program);
        OK(clReleaseProgram(program));

        /* One device: with several memories a kernel counts as a writer of all of them. */
        struct api one = api_open_first(&a);
        program = api_build(&one, source, "");
        threads(&one, program);
        OK(clReleaseProgram(program));
        api_close(&one);
        api_close(&a);
        return 0;
}
