/* Command buffers: recorded once, run as often as wanted, on one server and with data of several. servers: 2 */
#include "command_buffer.h"

enum { N = 64, BYTES = N * 4 };

static const char source[] =
        "kernel void add(global int *p, int by) { p[get_global_id(0)] += by; }"
        "kernel void sum(global const int *a, global const int *b, global int *to) {"
        "        size_t i = get_global_id(0); to[i] = a[i] + b[i]; }"
        "kernel void where(global int *p) {"
        "        p[get_global_id(0)] = (int)(get_global_size(0) * 10000 + get_local_size(0) * 100"
        "                                    + get_global_offset(0)); }";

static const size_t items = N;

static int at(const struct api *a, cl_mem m, size_t i)
{
        int v = -1;
        OK(clEnqueueReadBuffer(a->queues[0], m, CL_TRUE, i * 4, 4, &v, 0, NULL, NULL));
        return v;
}

static void set(cl_command_queue q, cl_mem m, int v)
{
        OK(clEnqueueFillBuffer(q, m, &v, 4, 0, BYTES, 0, NULL, NULL));
}

static void *add_args(cl_kernel k, cl_mem m, int by)
{
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(by), &by));
        return NULL;
}

/* A run uses the arguments and sizes of the recording. Later commands see the bytes that it
 * writes. */
static void runs_what_was_recorded(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL), to = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, 0);
        CHECK(cb_state(b) == RECORDING);
        EXPECT(CL_INVALID_OPERATION, cb.enqueue(0, NULL, b, 0, NULL, NULL));
        add_args(add, m, 5);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        add_args(add, m, 7);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.copy(b, NULL, NULL, m, to, 0, 0, BYTES, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        CHECK(cb_state(b) == EXECUTABLE);
        EXPECT(CL_INVALID_OPERATION, cb.finalize(b));
        add_args(add, to, 1000);
        OK(clReleaseKernel(add));
        for (cl_uint i = 0; i < 4; i++) {
                /* The data comes from each server in turn, and goes there. */
                cl_command_queue other = a->queues[i % a->count];
                set(other, m, (int)i);
                OK(clFinish(other));
                OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
                CHECK(at(a, to, N - 1) == (int)i + 12);
                int v;
                OK(clEnqueueReadBuffer(other, m, CL_TRUE, 0, 4, &v, 0, NULL, NULL));
                CHECK(v == (int)i + 12);
        }
        /* Twice in a row, released before it is complete. */
        set(q, m, 0);
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(cb.retain(b));
        OK(cb.release(b));
        OK(cb.release(b));
        CHECK(at(a, to, 3) == 24);
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(to));
}

/* NULL: the device has none. */
static cl_command_queue unordered_queue(struct api *a, cl_command_queue_properties more)
{
        cl_int err;
        cl_command_queue q = clCreateCommandQueue(
                a->context, a->devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | more, &err);
        if (err == CL_INVALID_QUEUE_PROPERTIES)
                return NULL;
        OK(err);
        return q;
}

/* Sync points and barriers order what an out-of-order queue would not; substitutes of either kind work. */
static void orders_by_sync_points(struct api *a, cl_program program)
{
        cl_command_queue q = unordered_queue(a, CL_QUEUE_PROFILING_ENABLE);
        if (!q)
                return;
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL), n = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, 0);
        int zero = 0;
        cl_uint one, two, three;
        OK(cb.fill(b, NULL, NULL, m, &zero, 4, 0, BYTES, 0, NULL, &one, NULL));
        add_args(add, m, 1);
        OK(cb.kernel(b, q, NULL, add, 1, NULL, &items, NULL, 1, &one, &two, NULL));
        add_args(add, m, 2);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 1, &two, &three, NULL));
        OK(cb.barrier(b, NULL, NULL, 0, NULL, NULL, NULL));
        OK(cb.copy(b, NULL, NULL, m, n, 0, 0, BYTES, 0, NULL, &one, NULL));
        OK(cb.barrier(b, NULL, NULL, 1, &one, NULL, NULL));
        add_args(add, n, 4);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        /* Nothing to copy. */
        OK(cb.copy(b, NULL, NULL, m, n, 0, 0, 0, 0, NULL, NULL, NULL));
        EXPECT(INVALID_SYNC_POINT_WAIT_LIST, cb.barrier(b, NULL, NULL, 1, NULL, NULL, NULL));
        EXPECT(INVALID_SYNC_POINT_WAIT_LIST, cb.barrier(b, NULL, NULL, 0, &one, NULL, NULL));
        two = 99;
        EXPECT(INVALID_SYNC_POINT_WAIT_LIST, cb.barrier(b, NULL, NULL, 1, &two, NULL, NULL));
        OK(cb.finalize(b));
        for (int i = 0; i < 20; i++) {
                cl_event before, event;
                set(a->queues[0], n, -1);
                OK(clEnqueueMarkerWithWaitList(a->queues[0], 0, NULL, &before));
                cl_command_queue on = i % 2 ? a->queues[0] : q;
                OK(cb.enqueue(1, &on, b, 1, &before, &event));
                OK(clWaitForEvents(1, &event));
                CHECK(at(a, n, 5) == 7);
                cl_command_type type;
                cl_command_queue queue;
                OK(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
                OK(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL));
                CHECK(type == 0x12A8 && queue == on);
                cl_ulong start = 0, end = 0;
                if (on == q) {
                        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &start,
                                                   NULL));
                        OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &end, NULL));
                        CHECK(start && start <= end);
                }
                OK(clReleaseEvent(before));
                OK(clReleaseEvent(event));
        }
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
        OK(clReleaseCommandQueue(q));
}

/* Lists of sync points may have any length. */
static void waits_for_many_sync_points(struct api *a, cl_program program)
{
        enum { MANY = 140000 };
        cl_command_queue q = unordered_queue(a, 0);
        if (!q)
                return;
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL), n = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, 0);
        cl_uint *syncs = api_alloc(MANY * sizeof(*syncs)), last;
        const int zero = 0;
        OK(cb.fill(b, NULL, NULL, m, &zero, 4, 0, BYTES, 0, NULL, &last, NULL));
        add_args(add, m, 1);
        for (int i = 0; i < 3; i++)
                OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 1, &last, &last, NULL));
        /* Only the first entry of the long list names the latest command. */
        for (cl_uint i = 0; i < MANY; i++)
                syncs[i] = 1;
        syncs[0] = last;
        OK(cb.copy(b, NULL, NULL, m, n, 0, 0, BYTES, MANY, syncs, &last, NULL));
        add_args(add, n, 4);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 1, &last, &last, NULL));
        syncs[MANY - 1] = last + 1;
        EXPECT(INVALID_SYNC_POINT_WAIT_LIST, cb.barrier(b, NULL, NULL, MANY, syncs, NULL, NULL));
        OK(cb.finalize(b));
        for (int i = 0; i < 3; i++) {
                OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
                OK(clFinish(q));
                CHECK(at(a, n, 0) == 7 && at(a, n, N - 1) == 7);
        }
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
        OK(clReleaseCommandQueue(q));
        free(syncs);
}

/* Behind a user event, which may also fail: then nothing is run. */
static void waits_as_any_command(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_int err;
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, SIMULTANEOUS_USE);
        add_args(add, m, 1);
        for (int i = 0; i < 3; i++)
                OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        for (int status = 0; status >= -7; status -= 7) {
                cl_event gate = clCreateUserEvent(a->context, &err), event;
                OK(err);
                set(q, m, 0);
                OK(clFinish(q));
                OK(cb.enqueue(0, NULL, b, 1, &gate, &event));
                OK(clFlush(q));
                CHECK(api_status(event) > 0);
                OK(clSetUserEventStatus(gate, status));
                EXPECT(status ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS,
                       clWaitForEvents(1, &event));
                CHECK(api_status(event) ==
                      (status ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : 0));
                CHECK(at(a, m, 9) == (status ? 0 : 3));
                OK(clReleaseEvent(event));
                OK(clReleaseEvent(gate));
        }
        /* An event of the other server. */
        cl_event there;
        set(q, m, 0);
        OK(clFinish(q));
        OK(clEnqueueMarkerWithWaitList(api_queue(a, 1), 0, NULL, &there));
        OK(clFlush(api_queue(a, 1)));
        OK(cb.enqueue(0, NULL, b, 1, &there, NULL));
        OK(clReleaseEvent(there));
        OK(clFinish(q));
        CHECK(at(a, m, 9) == 3);
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
}

static void moves_boxes_and_pixels(struct api *a)
{
        cl_command_queue q = a->queues[0];
        cl_int err;
        cl_bool images = CL_FALSE;
        unsigned char data[256], got[256];
        api_pattern(data, sizeof(data), 5);
        cl_mem from = api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(data), data);
        cl_mem to = api_buffer(a, 0, sizeof(data), NULL);
        const size_t zero[3] = { 0 }, shift[3] = { 4, 2, 0 }, box[3] = { 8, 8, 1 };
        const size_t pixels[3] = { 8, 8, 1 };
        void *b = cb_create(1, &q, 0);
        memset(got, 0, 4);
        OK(cb.fill(b, NULL, NULL, to, got, 1, 0, 256, 0, NULL, NULL, NULL));
        OK(cb.copy_rect(b, NULL, NULL, from, to, shift, zero, box, 16, 0, 16, 0, 0, NULL, NULL,
                        NULL));
        OK(cb.finalize(b));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(api_queue(a, 1), to, CL_TRUE, 0, 256, got, 0, NULL, NULL));
        for (int i = 0; i < 256; i++)
                CHECK(got[i] == (i % 16 < 8 && i / 16 < 8 ? data[i + 36] : 0));
        OK(cb.release(b));

        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, NULL));
        if (images) {
                const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
                const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                             .image_width = 8,
                                             .image_height = 8 };
                cl_mem one = clCreateImage(a->context, 0, &format, &desc, NULL, &err);
                OK(err);
                cl_mem two = clCreateImage(a->context, 0, &format, &desc, NULL, &err);
                OK(err);
                const cl_uint color[4] = { 1, 2, 3, 4 };
                const size_t half[3] = { 8, 4, 1 };
                b = cb_create(1, &q, 0);
                OK(cb.buffer_to_image(b, NULL, NULL, from, one, 0, zero, pixels, 0, NULL, NULL,
                                      NULL));
                OK(cb.copy_image(b, NULL, NULL, one, two, zero, zero, pixels, 0, NULL, NULL, NULL));
                OK(cb.fill_image(b, NULL, NULL, two, color, zero, half, 0, NULL, NULL, NULL));
                OK(cb.image_to_buffer(b, NULL, NULL, two, to, zero, pixels, 0, 0, NULL, NULL,
                                      NULL));
                EXPECT(CL_INVALID_MEM_OBJECT,
                       cb.fill_image(b, NULL, NULL, to, color, zero, half, 0, NULL, NULL, NULL));
                OK(cb.finalize(b));
                for (int i = 0; i < 2; i++)
                        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
                OK(clEnqueueReadBuffer(q, to, CL_TRUE, 0, 256, got, 0, NULL, NULL));
                for (int i = 0; i < 256; i++)
                        CHECK(got[i] == (i < 128 ? i % 4 + 1 : data[i]));
                OK(cb.release(b));
                OK(clReleaseMemObject(one));
                OK(clReleaseMemObject(two));
        }
        OK(clReleaseMemObject(from));
        OK(clReleaseMemObject(to));
}

/* Several queues, of one device; those of different servers can't be in one. */
static void spans_queues(struct api *a, cl_program program)
{
        cl_int err;
        cl_command_queue two[2] = { a->queues[0],
                                    clCreateCommandQueue(a->context, a->devices[0], 0, &err) };
        OK(err);
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(2, two, DEVICE_SIDE_SYNC);
        cl_uint sync;
        int zero = 0;
        OK(cb.fill(b, two[0], NULL, m, &zero, 4, 0, BYTES, 0, NULL, &sync, NULL));
        add_args(add, m, 3);
        OK(cb.kernel(b, two[1], NULL, add, 1, NULL, &items, NULL, 1, &sync, &sync, NULL));
        add_args(add, m, 4);
        OK(cb.kernel(b, two[0], NULL, add, 1, NULL, &items, NULL, 1, &sync, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, cb.barrier(b, NULL, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        for (int i = 0; i < 10; i++) {
                cl_event event;
                cl_command_queue queue = two[0], swapped[2] = { two[1], two[0] };
                OK(cb.enqueue(2, i % 2 ? swapped : two, b, 0, NULL, &event));
                OK(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL));
                CHECK(!queue);
                OK(clFinish(two[1]));
                CHECK(api_status(event) == CL_COMPLETE);
                OK(clReleaseEvent(event));
                CHECK(at(a, m, 8) == 7);
        }
        OK(cb.release(b));
        if (a->count > 1) {
                cl_uint count = 0;
                cl_device_id list[API_DEVICES_MAX];
                OK(clGetDeviceInfo(a->devices[0], 0x12AB, sizeof(count), &count, NULL));
                OK(clGetDeviceInfo(a->devices[0], 0x12AC, sizeof(list), list, NULL));
                CHECK(count >= 1 && list[0] == a->devices[0]);
                two[1] = a->queues[a->count - 1];
                if (count < a->count)
                        EXPECT_ERROR(INCOMPATIBLE_COMMAND_QUEUE, cb.create(2, two, NULL, &error));
        }
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
}

/* The number of devices on the server of device 0, and its sub-devices, which are memory of their own, in one
 * context; 0: there is only the one. */
static cl_uint neighbours(const struct api *a, cl_device_id ret[API_DEVICES_MAX])
{
        const cl_device_partition_property ones[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        cl_uint count = 0, subs = 0;
        OK(clGetDeviceInfo(a->devices[0], 0x12AB, sizeof(count), &count, NULL));
        OK(clGetDeviceInfo(a->devices[0], 0x12AC, API_DEVICES_MAX * sizeof(*ret), ret, NULL));
        CHECK(count >= 1 && count <= API_DEVICES_MAX);
        if (count < API_DEVICES_MAX / 2 &&
            clCreateSubDevices(a->devices[0], ones, API_DEVICES_MAX / 2, ret + count, &subs) ==
                    CL_SUCCESS)
                count += subs < API_DEVICES_MAX / 2 ? subs : API_DEVICES_MAX / 2;
        return count > 1 ? count : 0;
}

/* However many commands are recorded before one that data has to be moved for. */
static void anywhere(struct api *a, cl_kernel add, cl_mem m)
{
        cl_command_queue *q = a->queues;
        for (cl_uint before = 0; before <= 16; before++) {
                void *b = cb_create(a->count, a->queues, 0);
                cl_uint sync = 0;
                for (cl_uint i = 0; i < before; i++)
                        OK(cb.barrier(b, q[0], NULL, 0, NULL, &sync, NULL));
                for (cl_uint i = 0; i < 2; i++) {
                        add_args(add, m, 1);
                        OK(cb.kernel(b, i ? q[a->count - 1] : q[0], NULL, add, 1, NULL, &items,
                                     NULL, sync > 0, sync ? &sync : NULL, &sync, NULL));
                }
                OK(cb.finalize(b));
                set(q[0], m, (int)before);
                OK(clFinish(q[0]));
                OK(cb.enqueue(a->count, a->queues, b, 0, NULL, NULL));
                CHECK(at(a, m, 3) == (int)before + 2);
                for (cl_uint i = 0; i < a->count; i++)
                        OK(clFinish(q[i]));
                OK(cb.release(b));
        }
}

/* Devices of one server whose memories differ: data moves between them in the middle of the recording. */
static void spans_domains(const struct api *outer)
{
        struct api in = { .platform = outer->platform }, *a = &in;
        cl_int err;
        a->count = neighbours(outer, a->devices);
        if (!a->count)
                return;
        a->context = clCreateContext(NULL, a->count, a->devices, NULL, NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < a->count; i++) {
                a->queues[i] = clCreateCommandQueue(a->context, a->devices[i], 0, &err);
                OK(err);
        }
        cl_program program = api_build(a, source, "");
        cl_kernel add = api_kernel(program, "add"), sum = api_kernel(program, "sum");
        cl_mem m = api_buffer(a, 0, BYTES, NULL), other = api_buffer(a, 0, BYTES, NULL),
               to = api_buffer(a, 0, BYTES, NULL);
        EXPECT_ERROR(
                CL_INVALID_PROPERTY,
                cb.create(a->count, a->queues, (cl_properties[]){ FLAGS, MUTABLE, 0 }, &error));
        void *b = cb_create(a->count, a->queues, 0);
        cl_uint last = a->count - 1, sync = 0, half;
        cl_command_queue *q = a->queues;
        /* Each adds to what the one before has left; what is not written comes from outside. */
        for (cl_uint i = 0; i < 2 * a->count; i++) {
                add_args(add, m, 1);
                OK(cb.kernel(b, q[i % a->count], NULL, add, 1, NULL, &items, NULL, i > 0,
                             i ? &sync : NULL, &sync, NULL));
        }
        /* Halves from different places. */
        int hundred = 100, thousand = 1000;
        OK(cb.fill(b, q[0], NULL, other, &hundred, 4, 0, BYTES / 2, 1, &sync, &half, NULL));
        OK(cb.fill(b, q[last], NULL, other, &thousand, 4, BYTES / 2, BYTES / 2, 1, &sync, &sync,
                   NULL));
        OK(clSetKernelArg(sum, 0, sizeof(m), &m));
        OK(clSetKernelArg(sum, 1, sizeof(other), &other));
        OK(clSetKernelArg(sum, 2, sizeof(to), &to));
        OK(cb.kernel(b, q[0], NULL, sum, 1, NULL, &items, NULL, 2, (cl_uint[]){ half, sync }, &sync,
                     NULL));
        add_args(add, to, 7);
        OK(cb.kernel(b, q[last], NULL, add, 1, NULL, &items, NULL, 1, &sync, NULL, NULL));
        OK(cb.finalize(b));
        int each = 2 * (int)a->count;
        for (int round = 0; round < 6; round++) {
                cl_command_queue from = q[(cl_uint)round % a->count];
                set(from, m, 10 * round);
                cl_event ready, over;
                OK(clEnqueueMarkerWithWaitList(from, 0, NULL, &ready));
                OK(cb.enqueue(a->count, q, b, 1, &ready, &over));
                OK(cb.enqueue(a->count, q, b, 1, &over, NULL));
                CHECK(at(a, to, 3) == 10 * round + 2 * each + 107);
                CHECK(at(a, to, N - 1) == 10 * round + 2 * each + 1007);
                CHECK(at(a, m, 5) == 10 * round + 2 * each && at(a, other, 0) == 100);
                for (cl_uint i = 0; i < a->count; i++)
                        OK(clFinish(q[i]));
                CHECK(api_status(over) == CL_COMPLETE);
                OK(clReleaseEvent(ready));
                OK(clReleaseEvent(over));
        }
        OK(cb.release(b));
        anywhere(a, add, m);
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(other));
        OK(clReleaseMemObject(to));
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(sum));
        OK(clReleaseProgram(program));
        api_close(a);
        for (cl_uint i = 0; i < a->count; i++)
                OK(clReleaseDevice(a->devices[i]));
}

static void can_be_changed(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel add = api_kernel(program, "add"), where = api_kernel(program, "where");
        cl_mem m = api_buffer(a, 0, BYTES, NULL), n = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, MUTABLE | SIMULTANEOUS_USE), *first, *second;
        const size_t four = 4, two = 2;
        add_args(add, m, 5);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, &first));
        OK(clSetKernelArg(where, 0, sizeof(n), &n));
        OK(cb.kernel(b, NULL, NULL, where, 1, NULL, &items, &four, 0, NULL, NULL, &second));
        int by = 100;
        struct dispatch_arg arg = { 1, sizeof(by), &by };
        struct dispatch_config change = { .command = first, .num_args = 1, .args = &arg };
        EXPECT(CL_INVALID_OPERATION, cb_update(b, &change));
        OK(cb.finalize(b));
        set(q, m, 0);
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        /* Change the command buffer while a run is held, and after. Each run executes the
         * recording of the time when it was enqueued. */
        cl_int err;
        cl_event gate = clCreateUserEvent(a->context, &err);
        OK(err);
        OK(cb.enqueue(0, NULL, b, 1, &gate, NULL));
        OK(cb_update(b, &change));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        OK(clReleaseEvent(gate));
        CHECK(at(a, m, 1) == 110);
        CHECK(at(a, n, 0) == N * 10000 + 400);

        /* Sizes and offset; the other buffer, whose data is elsewhere. */
        const size_t sixteen = 16, twenty = 20;
        struct dispatch_config sizes = { .command = second,
                                         .work_dim = 1,
                                         .offset = &twenty,
                                         .global = &sixteen,
                                         .local = &two };
        OK(cb_update(b, &sizes));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        CHECK(at(a, n, 20) == 16 * 10000 + 220 && at(a, n, 35) == 16 * 10000 + 220);
        CHECK(at(a, n, 36) == N * 10000 + 400);
        size_t v = 0;
        OK(cb.command_info(second, 0x12A5, sizeof(v), &v, NULL));
        CHECK(v == 20);
        OK(cb.command_info(second, 0x12A7, sizeof(v), &v, NULL));
        CHECK(v == 2);
        cl_kernel kernel;
        OK(cb.command_info(second, 0x12A3, sizeof(kernel), &kernel, NULL));
        CHECK(kernel == where);
        cl_mem moved = api_buffer(a, 0, BYTES, NULL);
        set(api_queue(a, 1), moved, 1);
        OK(clFinish(api_queue(a, 1)));
        struct dispatch_arg mem = { 0, sizeof(moved), &moved };
        change.args = &mem;
        OK(cb_update(b, &change));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        CHECK(at(a, moved, 7) == 101);

        /* All or nothing. */
        by = 3;
        change.args = &arg;
        struct dispatch_config wrong = { .command = second, .local = &items, .global = &four };
        const cl_uint types[2] = { 0, 0 };
        const void *configs[2] = { &change, &wrong };
        cl_int e = cb.update(b, 2, types, configs);
        CHECK(e != CL_SUCCESS);
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        CHECK(at(a, moved, 7) == 201);
        OK(clReleaseMemObject(moved));

        struct dispatch_arg bad = { 7, 4, &by };
        change.args = &bad;
        EXPECT(CL_INVALID_ARG_INDEX, cb_update(b, &change));
        bad = (struct dispatch_arg){ 1, 8, &by };
        EXPECT(CL_INVALID_ARG_SIZE, cb_update(b, &change));
        change.num_args = 0;
        EXPECT(CL_INVALID_VALUE, cb_update(b, &change));
        change = (struct dispatch_config){ .command = first, .work_dim = 2 };
        EXPECT(CL_INVALID_OPERATION, cb_update(b, &change));
        change.command = b;
        EXPECT(INVALID_MUTABLE_COMMAND, cb_update(b, &change));
        EXPECT(CL_INVALID_VALUE, cb.update(b, 1, NULL, configs));
        EXPECT(CL_INVALID_VALUE, cb.update(b, 0, types, NULL));
        OK(cb.update(b, 0, NULL, NULL));
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(where));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(n));
}

/* Arguments may be set after the recording, if it was declared. */
static void can_be_completed(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel sum = api_kernel(program, "sum");
        int one[N], two[N];
        for (int i = 0; i < N; i++)
                one[i] = i, two[i] = 1000;
        cl_mem m[3] = { api_buffer(a, CL_MEM_COPY_HOST_PTR, BYTES, one),
                        api_buffer(a, CL_MEM_COPY_HOST_PTR, BYTES, two),
                        api_buffer(a, 0, BYTES, NULL) };
        void *b = cb_create(1, &q, MUTABLE), *command;
        const cl_properties arguments[] = { UPDATABLE_FIELDS, ARGUMENTS, 0 };
        const cl_properties sizes[] = { UPDATABLE_FIELDS, SIZE, 0 };
        EXPECT(CL_INVALID_KERNEL_ARGS,
               cb.kernel(b, NULL, NULL, sum, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_KERNEL_ARGS,
               cb.kernel(b, NULL, sizes, sum, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.kernel(b, NULL, arguments, sum, 1, NULL, &items, NULL, 0, NULL, NULL, &command));
        OK(cb.finalize(b));
        CHECK(cb_state(b) == FINALIZED);
        EXPECT(CL_INVALID_OPERATION, cb.enqueue(0, NULL, b, 0, NULL, NULL));
        struct dispatch_arg args[3];
        for (cl_uint i = 0; i < 3; i++)
                args[i] = (struct dispatch_arg){ i, sizeof(m[i]), &m[i] };
        struct dispatch_config some = { .command = command, .num_args = 2, .args = args };
        struct dispatch_config rest = { .command = command, .num_args = 1, .args = args + 2 };
        OK(cb_update(b, &some));
        CHECK(cb_state(b) == FINALIZED);
        OK(cb_update(b, &rest));
        CHECK(cb_state(b) == EXECUTABLE);
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        CHECK(at(a, m[2], 33) == 1033);
        rest = (struct dispatch_config){ .command = command, .global = &items };
        EXPECT(CL_INVALID_OPERATION, cb_update(b, &rest));
        OK(cb.release(b));
        OK(clReleaseKernel(sum));
        for (int i = 0; i < 3; i++)
                OK(clReleaseMemObject(m[i]));
}

/* Overwrite the memory of freed objects. */
static void overwrite_freed(cl_context context)
{
        cl_int err;
        enum { FREED = 200, BLOCKS = 64 };
        static void *blocks[BLOCKS];
        for (int i = 0; i < FREED; i++) {
                cl_event e = clCreateUserEvent(context, &err);
                OK(err);
                OK(clReleaseEvent(e));
        }
        for (size_t size = 64; size <= 1024; size += 16) {
                for (int i = 0; i < BLOCKS; i++)
                        memset(blocks[i] = malloc(size), 0xff, size);
                for (int i = 0; i < BLOCKS; i++)
                        free(blocks[i]);
        }
}

/* An argument that will be replaced need not exist when the launch is recorded. */
static void replaces_what_is_gone(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel sum = api_kernel(program, "sum");
        int one[N];
        for (int i = 0; i < N; i++)
                one[i] = i;
        cl_mem from = api_buffer(a, CL_MEM_COPY_HOST_PTR, BYTES, one),
               to = api_buffer(a, 0, BYTES, NULL), gone = api_buffer(a, 0, BYTES, NULL);
        OK(clSetKernelArg(sum, 0, sizeof(gone), &gone));
        OK(clSetKernelArg(sum, 1, sizeof(from), &from));
        OK(clSetKernelArg(sum, 2, sizeof(to), &to));
        OK(clReleaseMemObject(gone));
        overwrite_freed(a->context);
        void *b = cb_create(1, &q, MUTABLE), *command;
        const cl_properties arguments[] = { UPDATABLE_FIELDS, ARGUMENTS, 0 };
        const cl_properties sizes[] = { UPDATABLE_FIELDS, SIZE, 0 };
        EXPECT(CL_INVALID_KERNEL_ARGS,
               cb.kernel(b, NULL, sizes, sum, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.kernel(b, NULL, arguments, sum, 1, NULL, &items, NULL, 0, NULL, NULL, &command));
        OK(cb.finalize(b));
        CHECK(cb_state(b) == FINALIZED);
        const struct dispatch_arg arg = { 0, sizeof(from), &from };
        const struct dispatch_config rest = { .command = command, .num_args = 1, .args = &arg };
        OK(cb_update(b, &rest));
        CHECK(cb_state(b) == EXECUTABLE);
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        CHECK(at(a, to, 21) == 42);
        OK(cb.release(b));
        OK(clReleaseKernel(sum));
        OK(clReleaseMemObject(from));
        OK(clReleaseMemObject(to));
}

/* Shared virtual memory, where the device has it. */
static void knows_shared_memory(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_device_svm_capabilities svm = 0;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
        int *p = clSVMAlloc(a->context, 0, BYTES, 0), *to = clSVMAlloc(a->context, 0, BYTES, 0);
        if (!svm || !p)
                return;
        cl_kernel add = api_kernel(program, "add");
        void *b = cb_create(1, &q, MUTABLE), *command;
        int two = 2, host[N];
        OK(cb.svm_fill(b, NULL, NULL, p, &two, 4, BYTES, 0, NULL, NULL, NULL));
        OK(clSetKernelArgSVMPointer(add, 0, p));
        OK(clSetKernelArg(add, 1, 4, &two));
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, &command));
        OK(cb.svm_memcpy(b, NULL, NULL, to, p, BYTES, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.svm_memcpy(b, NULL, NULL, host, p, BYTES, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.svm_memcpy(b, NULL, NULL, to, NULL, 4, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, to, BYTES, 0, NULL, NULL));
        CHECK(to[N - 1] == 4);
        OK(clEnqueueSVMUnmap(q, to, 0, NULL, NULL));
        /* On the destination instead, whose last run's value the copy then replaces. */
        struct dispatch_arg arg = { 0, 0, to }, bad = { 0, 0, host };
        struct dispatch_config change = { .command = command, .num_svm_args = 1, .svm_args = &arg };
        OK(cb_update(b, &change));
        OK(cb.enqueue(0, NULL, b, 0, NULL, NULL));
        OK(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, to, BYTES, 0, NULL, NULL));
        CHECK(to[N - 1] == 2);
        OK(clEnqueueSVMUnmap(q, to, 0, NULL, NULL));
        change.svm_args = &bad;
        EXPECT(CL_INVALID_ARG_VALUE, cb_update(b, &change));
        OK(clFinish(q));
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        clSVMFree(a->context, p);
        clSVMFree(a->context, to);
}

static void errors(struct api *a, cl_program program)
{
        cl_command_queue q = a->queues[0];
        cl_kernel add = api_kernel(program, "add");
        cl_mem m = api_buffer(a, 0, BYTES, NULL);
        void *b = cb_create(1, &q, 0), *handle;
        const cl_properties twice[] = { FLAGS, MUTABLE, FLAGS, MUTABLE, 0 };
        const cl_properties unknown[] = { FLAGS, 64, 0 }, wrong[] = { 0x7777, 1, 0 };
        EXPECT_ERROR(CL_INVALID_VALUE, cb.create(0, &q, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, cb.create(1, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, cb.create(1, &q, twice, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, cb.create(1, &q, unknown, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, cb.create(1, &q, wrong, &error));
        cl_command_queue none = NULL;
        EXPECT_ERROR(CL_INVALID_COMMAND_QUEUE, cb.create(1, &none, NULL, &error));
        add_args(add, m, 1);
        int zero = 0;
        EXPECT(INVALID_COMMAND_BUFFER,
               cb.fill(NULL, NULL, NULL, m, &zero, 4, 0, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.fill(b, NULL, NULL, m, &zero, 4, 0, 8, 0, NULL, NULL, &handle));
        EXPECT(CL_INVALID_VALUE, cb.fill(b, NULL, wrong, m, &zero, 4, 0, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.fill(b, NULL, NULL, m, &zero, 3, 0, 9, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               cb.fill(b, NULL, NULL, NULL, &zero, 4, 0, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, cb.fill(b, (cl_command_queue)a->context, NULL, m, &zero, 4,
                                                 0, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_MEM_COPY_OVERLAP, cb.copy(b, NULL, NULL, m, m, 0, 4, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_KERNEL,
               cb.kernel(b, NULL, NULL, NULL, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_WORK_DIMENSION,
               cb.kernel(b, NULL, NULL, add, 4, NULL, &items, NULL, 0, NULL, NULL, NULL));
        const cl_properties groups[] = { ASSERTS, 1, 0 };
        EXPECT(CL_INVALID_VALUE,
               cb.kernel(b, NULL, groups, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.finalize(b));
        EXPECT(CL_INVALID_OPERATION,
               cb.fill(b, NULL, NULL, m, &zero, 4, 0, 8, 0, NULL, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.enqueue(0, &q, b, 0, NULL, NULL));
        EXPECT(CL_INVALID_VALUE, cb.enqueue(1, NULL, b, 0, NULL, NULL));
        cl_command_queue two[2] = { q, q };
        EXPECT(CL_INVALID_VALUE, cb.enqueue(2, two, b, 0, NULL, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, cb.enqueue(1, &none, b, 0, NULL, NULL));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, cb.enqueue(0, NULL, b, 1, NULL, NULL));
        if (a->count > 1)
                EXPECT(CL_INVALID_DEVICE, cb.enqueue(1, &a->queues[1], b, 0, NULL, NULL));
        cl_uint value;
        EXPECT(CL_INVALID_VALUE, cb.info(b, STATE, 1, &value, NULL));
        EXPECT(CL_INVALID_VALUE, cb.info(b, 0x7777, 4, &value, NULL));
        EXPECT(INVALID_COMMAND_BUFFER, cb.info(NULL, STATE, 4, &value, NULL));
        EXPECT(INVALID_MUTABLE_COMMAND, cb.command_info(NULL, 0x12A0, 8, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_OPERATION, cb.remap(b, CL_FALSE, 1, &q, 0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, cb.remap(b, CL_FALSE, 2, two, 0, NULL, NULL, &error));
        /* Empty, it is complete at once. */
        cl_event event;
        OK(cb.enqueue(0, NULL, b, 0, NULL, &event));
        OK(clWaitForEvents(1, &event));
        OK(clReleaseEvent(event));
        OK(cb.release(b));
        EXPECT(INVALID_COMMAND_BUFFER, cb.release(b));
        /* Never finished. */
        b = cb_create(1, &q, 0);
        OK(cb.kernel(b, NULL, NULL, add, 1, NULL, &items, NULL, 0, NULL, NULL, NULL));
        OK(cb.release(b));
        OK(clReleaseKernel(add));
        OK(clReleaseMemObject(m));
}

int main(void)
{
        struct api a = api_open(0);
        cb_load(a.platform);
        cl_program program = api_build(&a, source, "");
        runs_what_was_recorded(&a, program);
        orders_by_sync_points(&a, program);
        waits_for_many_sync_points(&a, program);
        waits_as_any_command(&a, program);
        moves_boxes_and_pixels(&a);
        spans_queues(&a, program);
        spans_domains(&a);
        can_be_changed(&a, program);
        can_be_completed(&a, program);
        replaces_what_is_gone(&a, program);
        knows_shared_memory(&a, program);
        errors(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        printf("command buffers: %u devices\n", a.count);
        return 0;
}
