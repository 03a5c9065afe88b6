/* Coarse-grained shared virtual memory over the devices of several servers: the same addresses everywhere,
 * also inside it; every command; what is not allowed. */

#include "api.h"

static const char source[] =
        "struct node { __global struct node *next; ulong value; };\n"
        "__kernel void build(__global struct node *nodes, uint count, __global struct node *end) {\n"
        "        for (uint i = 0; i < count; i++) {\n"
        "                nodes[i].next = &nodes[i] == end - 1 ? 0 : &nodes[i + 1];\n"
        "                nodes[i].value = i;\n"
        "        }\n"
        "}\n"
        "__kernel void walk(__global const struct node *head, ulong add) {\n"
        "        for (__global struct node *n = head->next; n; n = n->next)\n"
        "                n->value += add;\n"
        "}\n"
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void sum(__global const uint *a, __global uint *b) {\n"
        "        b[get_global_id(0)] += a[get_global_id(0)];\n"
        "}\n"
        "__kernel void through(__global ulong *where) {\n"
        "        *(__global uint *)where[0] += 5;\n"
        "}\n";

/* A device's pointer has the device's width: that of a 32-bit program's is half of it. */
struct node {
        union {
                struct node *next;
                cl_ulong address;
        };
        cl_ulong value;
};

enum { NODES = 5000, N = 20000 };

static cl_uint host[N], back[N];

static void *alloc(struct api *a, size_t size)
{
        void *p = clSVMAlloc(a->context, CL_MEM_READ_WRITE, size, 0);
        CHECK(p);
        CHECK((uintptr_t)p % 128 == 0);
        return p;
}

static void run(cl_command_queue q, cl_kernel k, size_t count)
{
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &count, NULL, 0, NULL, NULL));
}

static void set_uint(cl_kernel k, cl_uint index, cl_uint value)
{
        OK(clSetKernelArg(k, index, sizeof(value), &value));
}

/* A list that a kernel builds on each device in turn is walked by kernels on all others and by the
 * host. */
static void linked_list(struct api *a, cl_program program)
{
        cl_kernel build = api_kernel(program, "build"), walk = api_kernel(program, "walk");
        struct node *nodes = alloc(a, (NODES + 1) * sizeof(*nodes));
        for (cl_uint first = 0; first < a->count; first++) {
                cl_ulong expected = 0;
                OK(clSetKernelArgSVMPointer(build, 0, nodes));
                set_uint(build, 1, NODES);
                OK(clSetKernelArgSVMPointer(build, 2, nodes + NODES));
                run(a->queues[first], build, 1);
                OK(clFinish(a->queues[first]));
                for (cl_uint i = 0; i < a->count; i++) {
                        cl_command_queue q = api_queue(a, first + i + 1);
                        cl_ulong more = i + 7;
                        expected += more;
                        OK(clSetKernelArgSVMPointer(walk, 0, nodes));
                        OK(clSetKernelArg(walk, 1, sizeof(more), &more));
                        run(q, walk, 1);
                        OK(clFinish(q));
                }
                cl_command_queue q = a->queues[first];
                OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, nodes, NODES * sizeof(*nodes), 0, NULL,
                                   NULL));
                cl_ulong count = 0;
                for (struct node *n = nodes; n; n = n->next, count++)
                        CHECK(n->value == count + (count ? expected : 0));
                CHECK(count == NODES);
                OK(clEnqueueSVMUnmap(q, nodes, 0, NULL, NULL));
                OK(clFinish(q));
        }
        clSVMFree(a->context, nodes);
        OK(clReleaseKernel(build));
        OK(clReleaseKernel(walk));
}

/* The host builds under a map, in two allocations, and kernels follow. */
static void host_builds(struct api *a, cl_program program)
{
        cl_kernel walk = api_kernel(program, "walk"), clone;
        struct node *head = alloc(a, sizeof(*head)), *rest = alloc(a, 10 * sizeof(*rest));
        cl_command_queue q = a->queues[0];
        OK(clEnqueueSVMMap(q, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, head, sizeof(*head), 0,
                           NULL, NULL));
        OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_WRITE, rest, 10 * sizeof(*rest), 0, NULL, NULL));
        *head = (struct node){ .address = (uintptr_t)&rest[9], .value = 1000 };
        for (int i = 0; i < 10; i++)
                rest[i] = (struct node){ .address = i ? (uintptr_t)&rest[i - 1] : 0,
                                         .value = (cl_ulong)i };
        OK(clEnqueueSVMUnmap(q, head, 0, NULL, NULL));
        OK(clEnqueueSVMUnmap(q, rest, 0, NULL, NULL));
        OK(clFinish(q));

        const void *others[] = { &rest[4] };
        cl_ulong more = 3, all = 0;
        cl_int err;
        OK(clSetKernelArgSVMPointer(walk, 0, head));
        OK(clSetKernelArg(walk, 1, sizeof(more), &more));
        OK(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(others), others));
        clone = clCloneKernel(walk, &err);
        OK(err);
        for (cl_uint i = 0; i < 2 * a->count; i++) {
                run(a->queues[i / 2], i & 1 ? clone : walk, 1);
                OK(clFinish(a->queues[i / 2]));
                all += more;
        }
        OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, &rest[2], 3 * sizeof(*rest), 0,
                           NULL, NULL));
        for (int i = 2; i < 5; i++) {
                CHECK(rest[i].value == (cl_ulong)i + all);
                CHECK(rest[i].next == &rest[i - 1]);
        }
        OK(clEnqueueSVMUnmap(q, &rest[2], 0, NULL, NULL));
        OK(clFinish(q));
        OK(clReleaseKernel(clone));
        OK(clReleaseKernel(walk));
        clSVMFree(a->context, head);
        clSVMFree(a->context, rest);
}

/* memcpy in every direction, fills, ranges in the middle, kernels between, on device after device. */
static void copies(struct api *a, cl_program program)
{
        cl_kernel k = api_kernel(program, "add"), sum = api_kernel(program, "sum");
        cl_uint *x = alloc(a, sizeof(host)), *y = alloc(a, sizeof(host));
        api_pattern(host, sizeof(host), 3);
        OK(clEnqueueSVMMemcpy(a->queues[0], CL_TRUE, x, host, sizeof(host), 0, NULL, NULL));
        for (cl_uint i = 0; i < a->count; i++) {
                OK(clSetKernelArgSVMPointer(k, 0, x));
                set_uint(k, 1, 10);
                run(a->queues[i], k, N);
                OK(clFinish(a->queues[i]));
        }
        cl_command_queue last = a->queues[a->count - 1], q = a->queues[0];
        cl_event copied;
        OK(clEnqueueSVMMemcpy(last, CL_FALSE, y, x, sizeof(host), 0, NULL, &copied));
        OK(clFlush(last));
        OK(clEnqueueSVMMemcpy(q, CL_TRUE, back, y, sizeof(back), 1, &copied, NULL));
        OK(clReleaseEvent(copied));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == host[i] + 10 * a->count);

        /* A pattern into the middle, a piece from one place of an allocation to another. */
        const cl_uint pattern[4] = { 1, 2, 3, 4 };
        OK(clEnqueueSVMMemFill(q, y + 1000, pattern, sizeof(pattern), 1600, 0, NULL, NULL));
        OK(clEnqueueSVMMemcpy(q, CL_TRUE, y, y + 1001, 400, 0, NULL, NULL));
        OK(clEnqueueSVMMemcpy(last, CL_TRUE, back, y, sizeof(back), 0, NULL, NULL));
        for (size_t i = 0; i < N; i++) {
                cl_uint expected = host[i] + 10 * a->count;
                if (i < 100)
                        expected = pattern[(i + 1) % 4];
                if (i >= 1000 && i < 1400)
                        expected = pattern[i % 4];
                CHECK(back[i] == expected);
        }

        /* Pointers into the middle as arguments; a constant input stays where it is. */
        OK(clSetKernelArgSVMPointer(sum, 0, x + 16));
        OK(clSetKernelArgSVMPointer(sum, 1, y + 2000));
        run(last, sum, 100);
        OK(clFinish(last));
        OK(clEnqueueSVMMemcpy(q, CL_TRUE, back, y + 1999, 102 * 4, 0, NULL, NULL));
        CHECK(back[0] == host[1999] + 10 * a->count);
        CHECK(back[101] == host[2100] + 10 * a->count);
        for (size_t i = 0; i < 100; i++)
                CHECK(back[i + 1] == host[2000 + i] + host[16 + i] + 20 * a->count);

        /* Neither is SVM; nothing at all. */
        OK(clEnqueueSVMMemcpy(q, CL_TRUE, back, host, sizeof(host), 0, NULL, NULL));
        CHECK(!memcmp(back, host, sizeof(host)));
        OK(clFinish(q));
        clSVMFree(a->context, x);
        clSVMFree(a->context, y);
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(sum));
}

/* An address in SVM, to SVM that the kernel was told of, freed and allocated anew. */
static void many(struct api *a, cl_program program)
{
        enum { COUNT = 300 };
        static cl_uint *p[COUNT];
        cl_kernel k = api_kernel(program, "through");
        cl_ulong *where = alloc(a, sizeof(*where));
        for (int i = 0; i < COUNT; i++) {
                const cl_uint zero = 0;
                p[i] = alloc(a, 4 + (size_t)i * 100);
                for (int j = 0; j < i; j++)
                        CHECK((char *)p[i] >= (char *)p[j] + 4 + j * 100 ||
                              (char *)p[i] + 4 + i * 100 <= (char *)p[j]);
                OK(clEnqueueSVMMemFill(a->queues[0], p[i], &zero, 4, 4, 0, NULL, NULL));
        }
        OK(clFinish(a->queues[0]));
        OK(clSetKernelArgSVMPointer(k, 0, where));
        OK(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(p), p));
        for (int i = 0; i < COUNT; i += 7) {
                cl_command_queue q = api_queue(a, (unsigned)i);
                cl_ulong at = (cl_ulong)(uintptr_t)p[i];
                OK(clEnqueueSVMMemcpy(q, CL_TRUE, where, &at, sizeof(at), 0, NULL, NULL));
                run(q, k, 1);
                OK(clFinish(q));
        }
        for (int i = 0; i < COUNT; i++) {
                cl_uint got;
                OK(clEnqueueSVMMemcpy(a->queues[0], CL_TRUE, &got, p[i], 4, 0, NULL, NULL));
                CHECK(got == (i % 7 ? 0 : 5));
                if (i % 2)
                        clSVMFree(a->context, p[i]);
        }
        for (int i = 1; i < COUNT; i += 2)
                p[i] = alloc(a, 64);
        for (int i = 0; i < COUNT; i++)
                clSVMFree(a->context, p[i]);
        clSVMFree(a->context, where);
        clSVMFree(a->context, NULL);
        OK(clReleaseKernel(k));
}

/* Buffers whose bytes are SVM, and their sub-buffers. */
static void buffers(struct api *a, cl_program program)
{
        cl_int err;
        cl_bool uses;
        cl_kernel k = api_kernel(program, "add");
        cl_uint *x = alloc(a, sizeof(host));
        cl_mem m = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof(host), x);
        cl_mem plain = api_buffer(a, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof(host), back);
        cl_buffer_region half = { 4096, 4096 };
        cl_mem sub = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &err);
        OK(err);
        OK(clGetMemObjectInfo(m, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL));
        CHECK(uses == CL_TRUE);
        OK(clGetMemObjectInfo(plain, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL));
        CHECK(uses == CL_FALSE);
        cl_mem parent;
        void *pointer;
        OK(clGetMemObjectInfo(m, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
        CHECK(parent == NULL);
        OK(clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
        CHECK(parent == m);
        OK(clGetMemObjectInfo(m, CL_MEM_HOST_PTR, sizeof(pointer), &pointer, NULL));
        CHECK(pointer == x);

        cl_command_queue q = a->queues[0], last = a->queues[a->count - 1];
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, sizeof(host), host, 0, NULL, NULL));
        OK(clSetKernelArg(k, 0, sizeof(sub), &sub));
        set_uint(k, 1, 1);
        run(last, k, 1024);
        OK(clFinish(last));
        OK(clSetKernelArgSVMPointer(k, 0, x + 1024));
        run(q, k, 1024);
        OK(clFinish(q));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        run(last, k, N);
        OK(clFinish(last));
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(back), back, 0, NULL, NULL));
        for (size_t i = 0; i < N; i++)
                CHECK(back[i] == host[i] + 1 + (i >= 1024 && i < 2048 ? 2 : 0));
        cl_uint *mapped =
                clEnqueueMapBuffer(last, sub, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, NULL, &err);
        OK(err);
        CHECK(mapped == x + 1024);
        CHECK(mapped[5] == host[1029] + 3);
        OK(clEnqueueUnmapMemObject(last, sub, mapped, 0, NULL, NULL));
        OK(clFinish(last));
        OK(clReleaseMemObject(sub));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(plain));
        OK(clReleaseKernel(k));
        clSVMFree(a->context, x);
}

/* Each half of a device in a context of its own, and both with the whole. */
static void sub_devices(struct api *a)
{
        const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        cl_uint units = 0, n = 0;
        cl_int err;
        struct api s = { .platform = a->platform };
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof(units),
                           &units, NULL));
        if (units < 2 || units > API_DEVICES_MAX / 2)
                return;
        OK(clCreateSubDevices(a->devices[0], halves, API_DEVICES_MAX / 2, s.devices, &n));
        for (int with_root = 0; with_root < 2; with_root++) {
                s.count = n;
                if (with_root)
                        s.devices[s.count++] = a->devices[0];
                s.context = clCreateContext(NULL, s.count, s.devices, NULL, NULL, &err);
                OK(err);
                for (cl_uint i = 0; i < s.count; i++) {
                        s.queues[i] = clCreateCommandQueue(s.context, s.devices[i], 0, &err);
                        OK(err);
                }
                cl_program program = api_build(&s, source, "");
                linked_list(&s, program);
                copies(&s, program);
                OK(clReleaseProgram(program));
                api_close(&s);
        }
        for (cl_uint i = 0; i < n; i++)
                OK(clReleaseDevice(s.devices[i]));
}

struct freed {
        cl_command_queue queue;
        cl_uint count;
        void *pointers[2];
        cl_context context;
        int calls;
};

static void CL_CALLBACK on_free(cl_command_queue queue, cl_uint count, void *pointers[], void *user)
{
        struct freed *f = user;
        f->queue = queue;
        f->count = count;
        for (cl_uint i = 0; i < count; i++) {
                f->pointers[i] = pointers[i];
                clSVMFree(f->context, pointers[i]);
        }
        f->calls++;
}

static cl_command_type type_of(cl_event e)
{
        cl_command_type type = 0;
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        OK(clReleaseEvent(e));
        return type;
}

/* Commands behind a user event; freeing with and without a callback. */
static void events(struct api *a)
{
        cl_int err;
        cl_command_queue q = a->queues[0];
        cl_uint *x = alloc(a, sizeof(host)), *y = alloc(a, 64), *z = alloc(a, 64);
        cl_event e[6], gate = clCreateUserEvent(a->context, &err);
        OK(err);
        const cl_uint one = 1;
        const void *range[] = { x, y };
        const size_t sizes[] = { 100, 0 };
        OK(clEnqueueSVMMemFill(q, x, &one, 4, sizeof(host), 1, &gate, &e[0]));
        OK(clEnqueueSVMMap(q, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, x, 400, 0, NULL, &e[1]));
        OK(clFlush(q));
        CHECK(api_status(e[1]) > CL_COMPLETE);
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clWaitForEvents(1, &e[1]));
        CHECK(x[99] == 1);
        x[99] = 17;
        OK(clEnqueueSVMUnmap(q, x, 0, NULL, &e[2]));
        OK(clEnqueueSVMMigrateMem(api_queue(a, 1), 2, range, sizes, 0, 1, &e[2], &e[3]));
        OK(clFlush(q));
        cl_uint got[2];
        OK(clEnqueueSVMMemcpy(api_queue(a, 1), CL_TRUE, got, x + 99, 8, 1, &e[3], &e[4]));
        CHECK(got[0] == 17 && got[1] == 1);

        struct freed f = { .context = a->context };
        void *list[] = { x, y };
        OK(clEnqueueSVMFree(q, 2, list, on_free, &f, 0, NULL, &e[5]));
        list[0] = list[1] = NULL;
        OK(clWaitForEvents(1, &e[5]));
        CHECK(f.calls == 1 && f.queue == q && f.count == 2);
        CHECK(f.pointers[0] == x && f.pointers[1] == y);
        list[0] = z;
        OK(clEnqueueSVMFree(q, 1, list, NULL, NULL, 0, NULL, NULL));
        OK(clFinish(q));

        static const cl_command_type types[] = { CL_COMMAND_SVM_MEMFILL, CL_COMMAND_SVM_MAP,
                                                 CL_COMMAND_SVM_UNMAP,   CL_COMMAND_SVM_MIGRATE_MEM,
                                                 CL_COMMAND_SVM_MEMCPY,  CL_COMMAND_SVM_FREE };
        for (int i = 0; i < 6; i++)
                CHECK(type_of(e[i]) == types[i]);
        OK(clReleaseEvent(gate));
}

/* Calls that fail both natively and here. */
static void errors(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel k = api_kernel(program, "add");
        cl_uint *x = alloc(a, 4096);
        const cl_uint one = 1;
        CHECK(!clSVMAlloc(NULL, 0, 64, 0));
        CHECK(!clSVMAlloc(a->context, 0, 0, 0));
        CHECK(!clSVMAlloc(a->context, 0, 64, 3));
        CHECK(!clSVMAlloc(a->context, CL_MEM_SVM_ATOMICS, 64, 0));
        CHECK(!clSVMAlloc(a->context, 0, SIZE_MAX, 0));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemcpy(q, CL_TRUE, NULL, x, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemcpy(q, CL_TRUE, x, NULL, 4, 0, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, clEnqueueSVMMemcpy(q, CL_TRUE, x, x + 1, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE,
               clEnqueueSVMMemcpy(NULL, CL_TRUE, x, x + 8, 8, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, &one, 0, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMemFill(q, x, &one, 4, 6, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, NULL, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, x, 0, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, clEnqueueSVMUnmap(q, NULL, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, clEnqueueSVMUnmap(q, x, 1, NULL, NULL));
        EXPECT(CL_INVALID_ARG_INDEX, clSetKernelArgSVMPointer(k, 7, x));
        EXPECT(CL_INVALID_KERNEL, clSetKernelArgSVMPointer(NULL, 0, x));
        EXPECT(CL_INVALID_KERNEL, clSetKernelExecInfo(NULL, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, &x));
        OK(clReleaseKernel(k));
        clSVMFree(a->context, x);
}

int main(void)
{
        struct api a = api_open(0);
        if (!api_has_svm(&a))
                return 77;
        cl_program program = api_build(&a, source, "");
        linked_list(&a, program);
        host_builds(&a, program);
        copies(&a, program);
        many(&a, program);
        buffers(&a, program);
        events(&a);
        sub_devices(&a);
        errors(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
