/* Features that only some devices have: IL and its constants, sub-groups, images in buffers,
 * variables of programs, the generic address space, queues on the device, pipes. Each is tried
 * where a device offers it. */
#include "api.h"

#include <CL/cl_ext.h>

static int tried;

static cl_ulong number(cl_device_id d, cl_device_info name)
{
        cl_ulong v = 0;
        clGetDeviceInfo(d, name, sizeof(v), &v, NULL);
        return v;
}

static int has_extension(cl_device_id d, const char *name)
{
        static char text[16384];
        OK(clGetDeviceInfo(d, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
        const char *at = strstr(text, name);
        return at && (at[strlen(name)] == ' ' || !at[strlen(name)]);
}

static int device_has_il(cl_device_id d)
{
        char text[1024] = "";
        clGetDeviceInfo(d, CL_DEVICE_IL_VERSION, sizeof(text), text, NULL);
        return strstr(text, "SPIR-V") != NULL;
}

static int has_feature(cl_device_id d, const char *name)
{
        static cl_name_version list[256];
        size_t size = 0;
        if (clGetDeviceInfo(d, CL_DEVICE_OPENCL_C_FEATURES, sizeof(list), list, &size) !=
            CL_SUCCESS)
                return 0;
        for (size_t i = 0; i < size / sizeof(list[0]); i++)
                if (!strcmp(list[i].name, name))
                        return 1;
        return 0;
}

/* A context of one device. */
struct one {
        cl_device_id device;
        cl_context context;
        cl_command_queue queue;
};

static cl_program build(const struct one *o, const char *source, const char *options)
{
        cl_int err;
        cl_program p = clCreateProgramWithSource(o->context, 1, &source, NULL, &err);
        OK(err);
        err = clBuildProgram(p, 1, &o->device, options, NULL, NULL);
        if (err != CL_SUCCESS) {
                char log[4096] = "";
                clGetProgramBuildInfo(p, o->device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL);
                fprintf(stderr, "%s\n", log);
        }
        OK(err);
        return p;
}

/* Launch a kernel that has one buffer, and read what it wrote. */
static void run(const struct one *o, cl_kernel k, size_t items, size_t group, cl_uint *out,
                size_t count)
{
        cl_int err;
        cl_mem m = clCreateBuffer(o->context, CL_MEM_READ_WRITE, count * sizeof(*out), NULL, &err);
        OK(err);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(o->queue, k, 1, NULL, &items, group ? &group : NULL, 0, NULL,
                                  NULL));
        OK(clEnqueueReadBuffer(o->queue, m, CL_TRUE, 0, count * sizeof(*out), out, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
}

/* kernel void store(global uint *a) { *a = constant 7, which is 41 */
static const cl_uint module[] = {
        0x07230203, 0x00010000, 0x00070000, 0x00000009, 0x00000000, 0x00020011, 0x00000004,
        0x00020011, 0x00000006, 0x0003000e, 0x00000002, 0x00000002, 0x0005000f, 0x00000006,
        0x00000001, 0x726f7473, 0x00000065, 0x00030003, 0x00000003, 0x00018e70, 0x00040047,
        0x00000002, 0x00000001, 0x00000007, 0x00020013, 0x00000003, 0x00040015, 0x00000004,
        0x00000020, 0x00000000, 0x00040020, 0x00000005, 0x00000005, 0x00000004, 0x00040021,
        0x00000006, 0x00000003, 0x00000005, 0x00040032, 0x00000004, 0x00000002, 0x00000029,
        0x00050036, 0x00000003, 0x00000001, 0x00000000, 0x00000006, 0x00030037, 0x00000005,
        0x00000007, 0x000200f8, 0x00000008, 0x0005003e, 0x00000007, 0x00000002, 0x00000002,
        0x00000004, 0x000100fd, 0x00010038,
};

static void il(const struct one *o)
{
        cl_int err;
        cl_uint value = 0, constant = 97;
        if (!device_has_il(o->device))
                return;
        tried++;
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateProgramWithIL(o->context, module, 0, &error));
        cl_program p = clCreateProgramWithIL(o->context, module, sizeof(module), &err);
        OK(err);
        size_t size = 0;
        char back[sizeof(module)];
        OK(clGetProgramInfo(p, CL_PROGRAM_IL, sizeof(back), back, &size));
        CHECK(size == sizeof(module) && !memcmp(back, module, size));
        OK(clBuildProgram(p, 1, &o->device, "", NULL, NULL));
        cl_kernel k = api_kernel(p, "store");
        cl_uint args = 0;
        OK(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL));
        CHECK(args == 1);
        run(o, k, 1, 0, &value, 1);
        CHECK(value == 41);
        OK(clReleaseKernel(k));
        EXPECT(CL_INVALID_SPEC_ID,
               clSetProgramSpecializationConstant(p, 8, sizeof(constant), &constant));
        EXPECT(CL_INVALID_VALUE, clSetProgramSpecializationConstant(p, 7, 1, &constant));
        OK(clSetProgramSpecializationConstant(p, 7, sizeof(constant), &constant));
        OK(clBuildProgram(p, 1, &o->device, "", NULL, NULL));
        k = api_kernel(p, "store");
        run(o, k, 1, 0, &value, 1);
        CHECK(value == 97);
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

static void sub_groups(const struct one *o)
{
        if (!number(o->device, CL_DEVICE_MAX_NUM_SUB_GROUPS))
                return;
        tried++;
        cl_program p =
                build(o,
                      "kernel void who(global uint *a) { uint i = get_global_id(0);\n"
                      "a[2 * i] = get_sub_group_size(); a[2 * i + 1] = get_num_sub_groups(); }\n",
                      number(o->device, CL_DEVICE_NUMERIC_VERSION) >= CL_MAKE_VERSION(3, 0, 0)
                              ? "-cl-std=CL3.0"
                              : "-cl-std=CL2.0");
        cl_kernel k = api_kernel(p, "who");
        enum { GROUP = 64 };
        static cl_uint out[2 * GROUP];
        size_t local = GROUP, size = 0, groups = 0, most = 0, back[3] = { 0 };
        OK(clGetKernelSubGroupInfo(k, o->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                                   sizeof(local), &local, sizeof(size), &size, NULL));
        OK(clGetKernelSubGroupInfo(k, o->device, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE,
                                   sizeof(local), &local, sizeof(groups), &groups, NULL));
        OK(clGetKernelSubGroupInfo(k, o->device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, NULL,
                                   sizeof(most), &most, NULL));
        run(o, k, GROUP, GROUP, out, 2 * GROUP);
        /* 0: PoCL 6 does not know it. */
        CHECK(out[0] <= size && out[1] == groups && (groups <= most || !most));
        OK(clGetKernelSubGroupInfo(k, o->device, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT,
                                   sizeof(groups), &groups, sizeof(back[0]), back, NULL));
        CHECK(back[0] > 0);
        EXPECT(CL_INVALID_VALUE,
               clGetKernelSubGroupInfo(k, o->device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 0,
                                       NULL, sizeof(size), &size, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

static void local_size(const struct api *a, const struct one *o)
{
        clGetKernelSuggestedLocalWorkSizeKHR_fn suggest;
        void *found = clGetExtensionFunctionAddressForPlatform(
                a->platform, "clGetKernelSuggestedLocalWorkSizeKHR");
        if (!found || !has_extension(o->device, "cl_khr_suggested_local_work_size"))
                return;
        tried++;
        memcpy(&suggest, &found, sizeof(suggest));
        cl_program p = build(o, "kernel void id(global uint *a) { *a = get_local_size(0); }\n", "");
        cl_kernel k = api_kernel(p, "id");
        size_t all = 1024, local = 0;
        cl_uint used = 0;
        cl_int err;
        cl_mem m = clCreateBuffer(o->context, 0, sizeof(used), NULL, &err);
        OK(err);
        EXPECT(CL_INVALID_KERNEL_ARGS, suggest(o->queue, k, 1, NULL, &all, &local));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        const size_t none = 0, most = SIZE_MAX, sizes[4] = { 1, 1, 1, 1 };
        EXPECT(CL_INVALID_COMMAND_QUEUE, suggest(NULL, k, 1, NULL, &all, &local));
        EXPECT(CL_INVALID_KERNEL, suggest(o->queue, NULL, 1, NULL, &all, &local));
        EXPECT(CL_INVALID_WORK_DIMENSION, suggest(o->queue, k, 0, NULL, &all, &local));
        EXPECT(CL_INVALID_WORK_DIMENSION, suggest(o->queue, k, 4, NULL, sizes, &local));
        EXPECT(CL_INVALID_GLOBAL_WORK_SIZE, suggest(o->queue, k, 1, NULL, NULL, &local));
        EXPECT(CL_INVALID_GLOBAL_WORK_SIZE, suggest(o->queue, k, 1, NULL, &none, &local));
        EXPECT(CL_INVALID_GLOBAL_OFFSET, suggest(o->queue, k, 1, &most, &all, &local));
        EXPECT(CL_INVALID_VALUE, suggest(o->queue, k, 1, NULL, &all, NULL));
        OK(suggest(o->queue, k, 1, NULL, &all, &local));
        CHECK(local > 0 && local <= all);
        run(o, k, all, 0, &used, 1);
        CHECK(used == local);
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* A 2D image on the bytes of a buffer: each sees what the other was written. */
static void image_in_buffer(const struct one *o)
{
        cl_uint align = (cl_uint)number(o->device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT);
        if (!has_extension(o->device, "cl_khr_image2d_from_buffer") || !align)
                return;
        tried++;
        enum { W = 16, H = 4 };
        cl_int err;
        size_t pitch = (W + align - 1) / align * align * 4;
        size_t origin[3] = { 0 }, region[3] = { W, H, 1 };
        cl_uint *bytes = api_alloc(pitch * H), pixels[W * H];
        api_pattern(bytes, pitch * H, 5);
        cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        cl_mem b = clCreateBuffer(o->context, CL_MEM_COPY_HOST_PTR, pitch * H, bytes, &err);
        OK(err);
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                               .image_width = W,
                               .image_height = H,
                               .image_row_pitch = pitch,
                               .mem_object = b };
        cl_mem image = clCreateImage(o->context, 0, &format, &desc, NULL, &err);
        OK(err);
        OK(clEnqueueReadImage(o->queue, image, CL_TRUE, origin, region, 0, 0, pixels, 0, NULL,
                              NULL));
        for (size_t y = 0; y < H; y++)
                CHECK(!memcmp(pixels + y * W, bytes + y * pitch / 4, W * 4));
        cl_program p =
                build(o,
                      "kernel void turn(read_only image2d_t i, global uint *a, uint pitch) {\n"
                      "int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
                      "uint4 v = read_imageui(i, at);\n"
                      "a[at.y * pitch + at.x] = v.x | v.y << 8 | v.z << 16 | v.w << 24; }\n",
                      "");
        cl_kernel k = api_kernel(p, "turn");
        cl_mem out = clCreateBuffer(o->context, 0, sizeof(pixels), NULL, &err);
        OK(err);
        cl_uint width = W, color[4] = { 1, 2, 3, 4 };
        OK(clSetKernelArg(k, 0, sizeof(image), &image));
        OK(clSetKernelArg(k, 1, sizeof(out), &out));
        OK(clSetKernelArg(k, 2, sizeof(width), &width));
        OK(clEnqueueNDRangeKernel(o->queue, k, 2, NULL, region, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(o->queue, out, CL_TRUE, 0, sizeof(pixels), pixels, 0, NULL, NULL));
        for (size_t y = 0; y < H; y++)
                CHECK(!memcmp(pixels + y * W, bytes + y * pitch / 4, W * 4));
        OK(clEnqueueFillImage(o->queue, image, color, origin, region, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(o->queue, b, CL_TRUE, 0, pitch * H, bytes, 0, NULL, NULL));
        CHECK(bytes[0] == 0x04030201 && bytes[(H - 1) * pitch / 4 + W - 1] == 0x04030201);
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(out));
        OK(clReleaseMemObject(image));
        OK(clReleaseMemObject(b));
        free(bytes);
}

/* A program's variable lives from launch to launch. */
static void variables(const struct one *o)
{
        if (!has_feature(o->device, "__opencl_c_program_scope_global_variables"))
                return;
        tried++;
        cl_program p = build(o,
                             "global uint calls = 5;\n"
                             "kernel void count(global uint *a) { *a = ++calls; }\n",
                             "-cl-std=CL3.0");
        cl_kernel k = api_kernel(p, "count");
        cl_uint value = 0;
        size_t size = 0;
        run(o, k, 1, 0, &value, 1);
        CHECK(value == 6);
        run(o, k, 1, 0, &value, 1);
        CHECK(value == 7);
        OK(clGetProgramBuildInfo(p, o->device, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                                 sizeof(size), &size, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

static void generic(const struct one *o)
{
        if (!has_feature(o->device, "__opencl_c_generic_address_space"))
                return;
        tried++;
        cl_program p = build(o,
                             "uint both(uint *p) { return *p * 2; }\n"
                             "kernel void add(global uint *a) { uint own = 20; *a = 1;\n"
                             "*a = both(&own) + both(a); }\n",
                             "-cl-std=CL3.0");
        cl_kernel k = api_kernel(p, "add");
        cl_uint value = 0;
        run(o, k, 1, 0, &value, 1);
        CHECK(value == 42);
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

/* A kernel that launches another one: on the default queue, and on one that it is given. */
static void device_queues(const struct one *o)
{
        cl_device_id d = o->device;
        cl_int err;
        if (!number(d, CL_DEVICE_MAX_ON_DEVICE_QUEUES) ||
            !has_feature(d, "__opencl_c_device_enqueue"))
                return;
        tried++;
        cl_command_queue_properties bits =
                CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE;
        cl_queue_properties all[] = { CL_QUEUE_PROPERTIES, bits | CL_QUEUE_ON_DEVICE_DEFAULT, 0 };
        cl_queue_properties other[] = { CL_QUEUE_PROPERTIES, bits, CL_QUEUE_SIZE, 16384, 0 };
        cl_queue_properties in_order[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0 };
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateCommandQueueWithProperties(o->context, d, in_order, &error));
        cl_command_queue first = clCreateCommandQueueWithProperties(o->context, d, all, &err);
        OK(err);
        /* There is one default queue. */
        cl_command_queue again = clCreateCommandQueueWithProperties(o->context, d, all, &err), q;
        OK(err);
        CHECK(again == first);
        OK(clReleaseCommandQueue(again));
        OK(clGetCommandQueueInfo(o->queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(q), &q, NULL));
        CHECK(q == first);
        cl_command_queue second = clCreateCommandQueueWithProperties(o->context, d, other, &err);
        OK(err);
        CHECK(second != first);
        cl_uint size = 0;
        OK(clGetCommandQueueInfo(second, CL_QUEUE_SIZE, sizeof(size), &size, NULL));
        CHECK(size >= 16384);
        EXPECT(CL_INVALID_COMMAND_QUEUE,
               clGetCommandQueueInfo(o->queue, CL_QUEUE_SIZE, sizeof(size), &size, NULL));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clFinish(second));
        EXPECT(CL_INVALID_COMMAND_QUEUE, clEnqueueMarkerWithWaitList(second, 0, NULL, NULL));

        cl_program p = build(
                o,
                "kernel void by_default(global uint *a) {\n"
                "enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64),\n"
                "^{ a[get_global_id(0)] = get_global_id(0) + 1; }); }\n"
                "kernel void on(global uint *a, queue_t q) {\n"
                "enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64),\n"
                "^{ a[get_global_id(0)] = get_global_id(0) + 2; }); }\n",
                "-cl-std=CL3.0");
        cl_uint out[64] = { 0 };
        cl_kernel k = api_kernel(p, "by_default");
        run(o, k, 1, 0, out, 64);
        for (cl_uint i = 0; i < 64; i++)
                CHECK(out[i] == i + 1);
        if (number(d, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES) &
            CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT) {
                EXPECT(CL_INVALID_COMMAND_QUEUE,
                       clSetDefaultDeviceCommandQueue(o->context, d, o->queue));
                OK(clSetDefaultDeviceCommandQueue(o->context, d, second));
                OK(clGetCommandQueueInfo(o->queue, CL_QUEUE_DEVICE_DEFAULT, sizeof(q), &q, NULL));
                CHECK(q == second);
        }
        OK(clReleaseKernel(k));
        k = api_kernel(p, "on");
        EXPECT(CL_INVALID_DEVICE_QUEUE, clSetKernelArg(k, 1, sizeof(o->queue), &o->queue));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 1, 1, &second));
        OK(clSetKernelArg(k, 1, sizeof(second), &second));
        run(o, k, 1, 0, out, 64);
        for (cl_uint i = 0; i < 64; i++)
                CHECK(out[i] == i + 2);
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseCommandQueue(second));
        OK(clReleaseCommandQueue(first));
}

/* A pipe is neither buffer nor image, and made of nothing but its sizes. */
static void pipe_errors(const struct one *o, cl_mem pipe)
{
        cl_uint big = 0, value = 0;
        size_t size = 1, origin[3] = { 0 }, region[3] = { 1, 1, 1 };
        cl_pipe_properties some[] = { CL_PIPE_PACKET_SIZE, 4, 0 };
        cl_buffer_region part = { 0, 4 };
        cl_int err;
        OK(clGetDeviceInfo(o->device, CL_DEVICE_PIPE_MAX_PACKET_SIZE, sizeof(big), &big, NULL));
        EXPECT_ERROR(CL_INVALID_CONTEXT, clCreatePipe(NULL, 0, 4, 4, NULL, &error));
        if (big < CL_UINT_MAX)
                EXPECT_ERROR(CL_INVALID_PIPE_SIZE,
                             clCreatePipe(o->context, 0, big + 1, 4, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreatePipe(o->context, CL_MEM_READ_ONLY, 4, 4, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreatePipe(o->context, 0, 4, 4, some, &error));

        cl_mem m = clCreateBuffer(o->context, CL_MEM_READ_WRITE, 64, NULL, &err);
        OK(err);
        EXPECT(CL_INVALID_MEM_OBJECT,
               clGetPipeInfo(m, CL_PIPE_PACKET_SIZE, sizeof(value), &value, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clGetPipeInfo(NULL, CL_PIPE_PACKET_SIZE, sizeof(value), &value, NULL));
        EXPECT(CL_INVALID_VALUE, clGetPipeInfo(pipe, CL_PIPE_PACKET_SIZE, 3, &value, NULL));
        EXPECT(CL_INVALID_VALUE, clGetPipeInfo(pipe, CL_MEM_SIZE, sizeof(value), &value, NULL));
        OK(clGetPipeInfo(pipe, CL_PIPE_PROPERTIES, 0, NULL, &size));
        CHECK(size == 0);

        cl_command_queue q = o->queue;
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueWriteBuffer(q, pipe, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueCopyBuffer(q, pipe, m, 0, 0, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueCopyBuffer(q, m, pipe, 0, 0, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT, clEnqueueFillBuffer(q, pipe, &value, 4, 0, 4, 0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadBufferRect(q, pipe, CL_TRUE, origin, origin, region, 0, 0, 0, 0, &value,
                                       0, NULL, NULL));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadImage(q, pipe, CL_TRUE, origin, region, 0, 0, &value, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT, clEnqueueMapBuffer(q, pipe, CL_TRUE, CL_MAP_READ, 0, 4,
                                                               0, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT,
                     clCreateSubBuffer(pipe, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error));
        EXPECT(CL_INVALID_MEM_OBJECT,
               clGetImageInfo(pipe, CL_IMAGE_WIDTH, sizeof(size), &size, NULL));
        OK(clReleaseMemObject(m));
}

/* Packets that one kernel puts into a pipe come out in another. */
static void pipes(const struct one *o)
{
        cl_device_id d = o->device;
        cl_int err;
        if (!number(d, CL_DEVICE_MAX_PIPE_ARGS) || !has_feature(d, "__opencl_c_pipes"))
                return;
        tried++;
        enum { N = 32 };
        EXPECT_ERROR(CL_INVALID_PIPE_SIZE, clCreatePipe(o->context, 0, 0, N, NULL, &error));
        EXPECT_ERROR(CL_INVALID_PIPE_SIZE, clCreatePipe(o->context, 0, 4, 0, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreatePipe(o->context, CL_MEM_USE_HOST_PTR, 4, N, NULL, &error));
        cl_mem pipe = clCreatePipe(o->context, 0, sizeof(cl_uint), N, NULL, &err);
        OK(err);
        cl_uint value = 0;
        cl_mem_object_type type = 0;
        OK(clGetPipeInfo(pipe, CL_PIPE_PACKET_SIZE, sizeof(value), &value, NULL));
        CHECK(value == sizeof(cl_uint));
        OK(clGetPipeInfo(pipe, CL_PIPE_MAX_PACKETS, sizeof(value), &value, NULL));
        CHECK(value == N);
        OK(clGetMemObjectInfo(pipe, CL_MEM_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_MEM_OBJECT_PIPE);
        EXPECT(CL_INVALID_MEM_OBJECT,
               clEnqueueReadBuffer(o->queue, pipe, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        pipe_errors(o, pipe);
        cl_program p = build(o,
                             "kernel void put(global uint *a, write_only pipe uint to) {\n"
                             "uint v = get_global_id(0) * 3 + 1;\n"
                             "a[get_global_id(0)] = write_pipe(to, &v) == 0; }\n"
                             "kernel void take(global uint *a, read_only pipe uint from) {\n"
                             "uint v = 0; read_pipe(from, &v); a[get_global_id(0)] = v; }\n",
                             "-cl-std=CL3.0");
        cl_kernel put = api_kernel(p, "put"), take = api_kernel(p, "take");
        cl_uint out[N], sum = 0;
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(put, 1, 4, &pipe));
        cl_mem buffer = clCreateBuffer(o->context, CL_MEM_READ_WRITE, 64, NULL, &err);
        OK(err);
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(put, 1, sizeof(buffer), &buffer));
        EXPECT(CL_INVALID_MEM_OBJECT, clSetKernelArg(put, 0, sizeof(pipe), &pipe));
        OK(clReleaseMemObject(buffer));
        OK(clSetKernelArg(put, 1, sizeof(pipe), &pipe));
        OK(clSetKernelArg(take, 1, sizeof(pipe), &pipe));
        run(o, put, N, 0, out, N);
        for (cl_uint i = 0; i < N; i++)
                CHECK(out[i] == 1);
        run(o, take, N, 0, out, N);
        for (cl_uint i = 0; i < N; i++)
                sum += out[i];
        CHECK(sum == 3 * N * (N - 1) / 2 + N);
        OK(clReleaseKernel(put));
        OK(clReleaseKernel(take));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(pipe));
}

int main(void)
{
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_int err;
                struct one o = { .device = a.devices[i] };
                o.context = clCreateContext(NULL, 1, &o.device, NULL, NULL, &err);
                OK(err);
                o.queue = clCreateCommandQueue(o.context, o.device, 0, &err);
                OK(err);
                il(&o);
                sub_groups(&o);
                local_size(&a, &o);
                image_in_buffer(&o);
                variables(&o);
                generic(&o);
                device_queues(&o);
                pipes(&o);
                OK(clReleaseCommandQueue(o.queue));
                OK(clReleaseContext(o.context));
        }
        api_close(&a);
        if (!tried) {
                printf("no device has any of it\n");
                return 77;
        }
        printf("%d features tried\n", tried);
        return 0;
}
