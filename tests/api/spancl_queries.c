/* Every query of contexts, queues, memory objects, samplers and events: sizes, places that are too small, names
 * that do not exist, and values that must be what was given. servers: 2 */
#include "api.h"

/* The value's size is `bytes`, and the rules of every clGet*Info hold. */
#define QUERY(get, object, name, bytes)                                                       \
        do {                                                                                  \
                char place_[512];                                                             \
                size_t size_ = 0, again_ = 0;                                                 \
                OK(get(object, name, 0, NULL, &size_));                                       \
                CHECK(size_ <= sizeof(place_) && size_ == (bytes));                           \
                OK(get(object, name, 0, NULL, NULL));                                         \
                OK(get(object, name, size_, place_, &again_));                                \
                CHECK(again_ == size_);                                                       \
                OK(get(object, name, sizeof(place_), place_, NULL));                          \
                if (size_)                                                                    \
                        EXPECT(CL_INVALID_VALUE, get(object, name, size_ - 1, place_, NULL)); \
        } while (0)

#define NO_QUERY(get, object, name)                                             \
        do {                                                                    \
                char place_[512];                                               \
                EXPECT(CL_INVALID_VALUE, get(object, name, 512, place_, NULL)); \
                EXPECT(CL_INVALID_VALUE, get(object, name, 0, NULL, NULL));     \
        } while (0)

/* The value is this. */
#define IS(get, object, name, type, ...)                              \
        do {                                                          \
                type value_;                                          \
                OK(get(object, name, sizeof(value_), &value_, NULL)); \
                CHECK(value_ == (type)(__VA_ARGS__));                 \
        } while (0)

/* The value is this list, byte for byte. */
#define IS_LIST(get, object, name, list, bytes)                          \
        do {                                                             \
                char place_[512];                                        \
                size_t size_ = 999;                                      \
                OK(get(object, name, sizeof(place_), place_, &size_));   \
                CHECK(size_ == (bytes) && !memcmp(place_, list, size_)); \
        } while (0)

static void contexts(struct api *a)
{
        const cl_context_properties list[] = { CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE,
                                               CL_CONTEXT_PLATFORM,
                                               (cl_context_properties)a->platform, 0 };
        const cl_context_properties empty[] = { 0 };
        const cl_context_properties twice[] = { CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)a->platform,
                                                CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)a->platform, 0 };
        const cl_context_properties null[] = { CL_CONTEXT_PLATFORM, 0, 0 };
        const cl_context_properties unknown[] = { 0x7777, 0, 0 };
        cl_device_id doubled[2 * API_DEVICES_MAX], found[2 * API_DEVICES_MAX];
        cl_int e;
        for (cl_uint i = 0; i < 2 * a->count; i++)
                doubled[i] = a->devices[i % a->count];
        /* "Duplicate devices specified in devices are ignored." */
        cl_context x = clCreateContext(list, 2 * a->count, doubled, NULL, NULL, &e);
        OK(e);
        QUERY(clGetContextInfo, x, CL_CONTEXT_REFERENCE_COUNT, sizeof(cl_uint));
        QUERY(clGetContextInfo, x, CL_CONTEXT_NUM_DEVICES, sizeof(cl_uint));
        QUERY(clGetContextInfo, x, CL_CONTEXT_DEVICES, a->count * sizeof(cl_device_id));
        QUERY(clGetContextInfo, x, CL_CONTEXT_PROPERTIES, sizeof(list));
        NO_QUERY(clGetContextInfo, x, 0x1079);
        IS(clGetContextInfo, x, CL_CONTEXT_REFERENCE_COUNT, cl_uint, 1);
        IS(clGetContextInfo, x, CL_CONTEXT_NUM_DEVICES, cl_uint, a->count);
        OK(clGetContextInfo(x, CL_CONTEXT_DEVICES, sizeof(found), found, NULL));
        CHECK(!memcmp(found, a->devices, a->count * sizeof(cl_device_id)));
        IS_LIST(clGetContextInfo, x, CL_CONTEXT_PROPERTIES, list, sizeof(list));
        OK(clReleaseContext(x));
        x = clCreateContext(empty, 1, a->devices, NULL, NULL, &e);
        OK(e);
        IS_LIST(clGetContextInfo, x, CL_CONTEXT_PROPERTIES, empty, sizeof(empty));
        OK(clReleaseContext(x));
        IS_LIST(clGetContextInfo, a->context, CL_CONTEXT_PROPERTIES, "", 0);
        EXPECT(CL_INVALID_CONTEXT, clGetContextInfo(NULL, CL_CONTEXT_NUM_DEVICES, 0, NULL, NULL));

        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContext(twice, 1, a->devices, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContext(unknown, 1, a->devices, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_PLATFORM, clCreateContext(null, 1, a->devices, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateContext(NULL, 1, NULL, NULL, NULL, &error));
        doubled[1] = (cl_device_id)a->context;
        EXPECT_ERROR(CL_INVALID_DEVICE, clCreateContext(NULL, 2, doubled, NULL, NULL, &error));
        static const cl_device_type types[] = {
                CL_DEVICE_TYPE_DEFAULT,     CL_DEVICE_TYPE_CPU,    CL_DEVICE_TYPE_GPU,
                CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CUSTOM, CL_DEVICE_TYPE_ALL,
        };
        for (int i = 0; i < 6; i++) {
                cl_uint n = 0;
                cl_int has = clGetDeviceIDs(a->platform, types[i], 0, NULL, &n);
                x = clCreateContextFromType(list, types[i], NULL, NULL, &e);
                EXPECT(has, e);
                CHECK((x != NULL) == (n != 0));
                if (!x)
                        continue;
                IS(clGetContextInfo, x, CL_CONTEXT_NUM_DEVICES, cl_uint, n);
                IS_LIST(clGetContextInfo, x, CL_CONTEXT_PROPERTIES, list, sizeof(list));
                OK(clReleaseContext(x));
        }
        EXPECT_ERROR(CL_INVALID_DEVICE_TYPE,
                     clCreateContextFromType(NULL, 1 << 20, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, NULL, &e, &error));
}

static void queues(struct api *a)
{
        const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0 };
        const cl_queue_properties empty[] = { 0 };
        const cl_queue_properties twice[] = { CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, 0, 0 };
        const cl_queue_properties size[] = { CL_QUEUE_SIZE, 1024, 0 };
        const cl_queue_properties unknown[] = { 0x7777, 0, 0 };
        const cl_queue_properties bit[] = { CL_QUEUE_PROPERTIES, 1 << 20, 0 };
        const cl_queue_properties lonely[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE_DEFAULT, 0 };
        const cl_queue_properties *wrong[] = { twice, size, unknown, bit, lonely };
        cl_int e;
        cl_command_queue q =
                clCreateCommandQueueWithProperties(a->context, a->devices[0], list, &e);
        OK(e);
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_CONTEXT, sizeof(cl_context));
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_DEVICE, sizeof(cl_device_id));
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_REFERENCE_COUNT, sizeof(cl_uint));
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_PROPERTIES, sizeof(cl_command_queue_properties));
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list));
        QUERY(clGetCommandQueueInfo, q, CL_QUEUE_DEVICE_DEFAULT, sizeof(cl_command_queue));
        NO_QUERY(clGetCommandQueueInfo, q, 0x1089);
        EXPECT(CL_INVALID_COMMAND_QUEUE, clGetCommandQueueInfo(q, CL_QUEUE_SIZE, 0, NULL, NULL));
        IS(clGetCommandQueueInfo, q, CL_QUEUE_CONTEXT, cl_context, a->context);
        IS(clGetCommandQueueInfo, q, CL_QUEUE_DEVICE, cl_device_id, a->devices[0]);
        IS(clGetCommandQueueInfo, q, CL_QUEUE_PROPERTIES, cl_command_queue_properties,
           CL_QUEUE_PROFILING_ENABLE);
        IS_LIST(clGetCommandQueueInfo, q, CL_QUEUE_PROPERTIES_ARRAY, list, sizeof(list));
        OK(clReleaseCommandQueue(q));
        q = clCreateCommandQueueWithProperties(a->context, a->devices[0], empty, &e);
        OK(e);
        IS_LIST(clGetCommandQueueInfo, q, CL_QUEUE_PROPERTIES_ARRAY, empty, sizeof(empty));
        OK(clReleaseCommandQueue(q));
        IS_LIST(clGetCommandQueueInfo, a->queues[0], CL_QUEUE_PROPERTIES_ARRAY, "", 0);
        for (int i = 0; i < 5; i++)
                EXPECT_ERROR(CL_INVALID_VALUE,
                             clCreateCommandQueueWithProperties(a->context, a->devices[0], wrong[i],
                                                                &error));
        EXPECT_ERROR(CL_INVALID_CONTEXT,
                     clCreateCommandQueueWithProperties(NULL, a->devices[0], list, &error));
        EXPECT_ERROR(CL_INVALID_DEVICE,
                     clCreateCommandQueueWithProperties(a->context, NULL, list, &error));
        cl_context one = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        if (a->count > 1)
                EXPECT_ERROR(CL_INVALID_DEVICE,
                             clCreateCommandQueue(one, a->devices[1], 0, &error));
        OK(clReleaseContext(one));
}

static void mems(struct api *a)
{
        static char host[4096];
        const cl_mem_properties empty[] = { 0 }, unknown[] = { 0x7777, 0, 0 };
        cl_int e;
        cl_mem m = clCreateBufferWithProperties(
                a->context, empty, CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY,
                sizeof(host), host, &e);
        OK(e);
        const cl_buffer_region region = { 1024, 512 };
        cl_mem s = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
        OK(e);
        static const struct {
                cl_mem_info name;
                size_t size;
        } names[] = {
                { CL_MEM_TYPE, sizeof(cl_mem_object_type) },
                { CL_MEM_FLAGS, sizeof(cl_mem_flags) },
                { CL_MEM_SIZE, sizeof(size_t) },
                { CL_MEM_HOST_PTR, sizeof(void *) },
                { CL_MEM_MAP_COUNT, sizeof(cl_uint) },
                { CL_MEM_REFERENCE_COUNT, sizeof(cl_uint) },
                { CL_MEM_CONTEXT, sizeof(cl_context) },
                { CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem) },
                { CL_MEM_OFFSET, sizeof(size_t) },
                { CL_MEM_USES_SVM_POINTER, sizeof(cl_bool) },
        };
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                QUERY(clGetMemObjectInfo, m, names[i].name, names[i].size);
                QUERY(clGetMemObjectInfo, s, names[i].name, names[i].size);
        }
        NO_QUERY(clGetMemObjectInfo, m, 0x110B);
        EXPECT(CL_INVALID_MEM_OBJECT, clGetMemObjectInfo(NULL, CL_MEM_SIZE, 0, NULL, NULL));
        IS(clGetMemObjectInfo, m, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
        IS(clGetMemObjectInfo, m, CL_MEM_FLAGS, cl_mem_flags,
           CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY);
        IS(clGetMemObjectInfo, m, CL_MEM_HOST_PTR, void *, host);
        IS(clGetMemObjectInfo, m, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
        IS(clGetMemObjectInfo, m, CL_MEM_OFFSET, size_t, 0);
        /* Properties that a sub-buffer inherits. */
        IS(clGetMemObjectInfo, s, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
        IS(clGetMemObjectInfo, s, CL_MEM_FLAGS, cl_mem_flags,
           CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY);
        IS(clGetMemObjectInfo, s, CL_MEM_HOST_PTR, void *, host + 1024);
        IS(clGetMemObjectInfo, s, CL_MEM_SIZE, size_t, 512);
        IS(clGetMemObjectInfo, s, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, m);
        IS(clGetMemObjectInfo, s, CL_MEM_OFFSET, size_t, 1024);
        IS(clGetMemObjectInfo, s, CL_MEM_CONTEXT, cl_context, a->context);
        IS_LIST(clGetMemObjectInfo, m, CL_MEM_PROPERTIES, empty, sizeof(empty));
        IS_LIST(clGetMemObjectInfo, s, CL_MEM_PROPERTIES, "", 0);
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateBufferWithProperties(a->context, unknown, 0, 1, NULL, &error));
        EXPECT_ERROR(CL_INVALID_MEM_OBJECT,
                     clCreateSubBuffer(s, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region,
                                       &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateSubBuffer(m, CL_MEM_HOST_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
                                       &region, &error));
        EXPECT_ERROR(CL_INVALID_VALUE,
                     clCreateSubBuffer(m, CL_MEM_COPY_HOST_PTR, CL_BUFFER_CREATE_TYPE_REGION,
                                       &region, &error));
        OK(clReleaseMemObject(s));
        OK(clReleaseMemObject(m));
}

static void images(struct api *a)
{
        static const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
        const cl_mem_properties empty[] = { 0 };
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY,
                               .image_width = 7,
                               .image_height = 5,
                               .image_array_size = 3 };
        static const struct {
                cl_image_info name;
                size_t size;
        } names[] = {
                { CL_IMAGE_FORMAT, sizeof(cl_image_format) },
                { CL_IMAGE_ELEMENT_SIZE, sizeof(size_t) },
                { CL_IMAGE_ROW_PITCH, sizeof(size_t) },
                { CL_IMAGE_SLICE_PITCH, sizeof(size_t) },
                { CL_IMAGE_WIDTH, sizeof(size_t) },
                { CL_IMAGE_HEIGHT, sizeof(size_t) },
                { CL_IMAGE_DEPTH, sizeof(size_t) },
                { CL_IMAGE_ARRAY_SIZE, sizeof(size_t) },
                { CL_IMAGE_BUFFER, sizeof(cl_mem) },
                { CL_IMAGE_NUM_MIP_LEVELS, sizeof(cl_uint) },
                { CL_IMAGE_NUM_SAMPLES, sizeof(cl_uint) },
        };
        cl_int e;
        cl_mem m = clCreateImageWithProperties(a->context, empty, 0, &format, &desc, NULL, &e);
        OK(e);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                QUERY(clGetImageInfo, m, names[i].name, names[i].size);
        NO_QUERY(clGetImageInfo, m, CL_MEM_SIZE);
        IS(clGetImageInfo, m, CL_IMAGE_ROW_PITCH, size_t, 28);
        IS(clGetImageInfo, m, CL_IMAGE_SLICE_PITCH, size_t, 140);
        IS(clGetImageInfo, m, CL_IMAGE_DEPTH, size_t, 0);
        IS(clGetImageInfo, m, CL_IMAGE_ARRAY_SIZE, size_t, 3);
        IS(clGetImageInfo, m, CL_IMAGE_BUFFER, cl_mem, NULL);
        IS(clGetMemObjectInfo, m, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_IMAGE2D_ARRAY);
        IS_LIST(clGetMemObjectInfo, m, CL_MEM_PROPERTIES, empty, sizeof(empty));
        OK(clReleaseMemObject(m));

        /* In a buffer: access and host access are the buffer's. */
        cl_mem b = api_buffer(a, CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 1024, NULL);
        desc = (cl_image_desc){ .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                .image_width = 64,
                                .mem_object = b };
        m = clCreateImage(a->context, 0, &format, &desc, NULL, &e);
        OK(e);
        IS(clGetMemObjectInfo, m, CL_MEM_FLAGS, cl_mem_flags,
           CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY);
        IS(clGetMemObjectInfo, m, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, b);
        IS(clGetImageInfo, m, CL_IMAGE_BUFFER, cl_mem, b);
        char out[16];
        const size_t zero[3] = { 0 }, four[3] = { 4, 1, 1 };
        size_t row;
        EXPECT(CL_INVALID_OPERATION,
               clEnqueueReadImage(a->queues[0], m, CL_TRUE, zero, four, 0, 0, out, 0, NULL, NULL));
        EXPECT_ERROR(CL_INVALID_OPERATION,
                     clEnqueueMapImage(a->queues[0], m, CL_TRUE, CL_MAP_READ, zero, four, &row,
                                       NULL, 0, NULL, NULL, &error));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(b));
}

/* CL_MEM_HOST_* count for every transfer from and to the host, and are inherited. */
static void host_access(struct api *a)
{
        static const cl_mem_flags flags[] = { 0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY,
                                              CL_MEM_HOST_NO_ACCESS };
        const size_t zero[3] = { 0 }, box[3] = { 4, 2, 1 };
        cl_command_queue q = a->queues[0];
        char data[64] = { 0 };
        for (int i = 0; i < 8; i++) {
                cl_int e;
                cl_mem root = api_buffer(a, flags[i % 4], 4096, NULL), m = root;
                const cl_buffer_region region = { 0, 64 };
                if (i >= 4)
                        m = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
                cl_int read = i % 4 > 1 ? CL_INVALID_OPERATION : CL_SUCCESS;
                cl_int write = i % 2 ? CL_INVALID_OPERATION : CL_SUCCESS;
                EXPECT(read, clEnqueueReadBuffer(q, m, CL_TRUE, 0, 4, data, 0, NULL, NULL));
                EXPECT(read, clEnqueueReadBufferRect(q, m, CL_TRUE, zero, zero, box, 0, 0, 0, 0,
                                                     data, 0, NULL, NULL));
                EXPECT(write, clEnqueueWriteBuffer(q, m, CL_TRUE, 0, 4, data, 0, NULL, NULL));
                EXPECT(write, clEnqueueWriteBufferRect(q, m, CL_TRUE, zero, zero, box, 0, 0, 0, 0,
                                                       data, 0, NULL, NULL));
                static const cl_map_flags maps[] = { CL_MAP_READ, CL_MAP_WRITE,
                                                     CL_MAP_WRITE_INVALIDATE_REGION };
                for (int k = 0; k < 3; k++) {
                        void *p =
                                clEnqueueMapBuffer(q, m, CL_TRUE, maps[k], 0, 4, 0, NULL, NULL, &e);
                        EXPECT(k ? write : read, e);
                        if (p)
                                OK(clEnqueueUnmapMemObject(q, m, p, 0, NULL, NULL));
                }
                /* "[...] is ignored by" copies and fills. */
                OK(clEnqueueCopyBuffer(q, m, m, 0, 32, 16, 0, NULL, NULL));
                OK(clEnqueueFillBuffer(q, m, data, 1, 0, 16, 0, NULL, NULL));
                OK(clFinish(q));
                if (m != root)
                        OK(clReleaseMemObject(m));
                OK(clReleaseMemObject(root));
        }
}

static void samplers(struct api *a)
{
        const cl_sampler_properties list[] = { CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR,
                                               CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0 };
        cl_int e;
        cl_sampler s = clCreateSamplerWithProperties(a->context, list, &e);
        OK(e);
        QUERY(clGetSamplerInfo, s, CL_SAMPLER_REFERENCE_COUNT, sizeof(cl_uint));
        QUERY(clGetSamplerInfo, s, CL_SAMPLER_CONTEXT, sizeof(cl_context));
        QUERY(clGetSamplerInfo, s, CL_SAMPLER_NORMALIZED_COORDS, sizeof(cl_bool));
        QUERY(clGetSamplerInfo, s, CL_SAMPLER_ADDRESSING_MODE, sizeof(cl_addressing_mode));
        QUERY(clGetSamplerInfo, s, CL_SAMPLER_FILTER_MODE, sizeof(cl_filter_mode));
        NO_QUERY(clGetSamplerInfo, s, 0x1159);
        IS_LIST(clGetSamplerInfo, s, CL_SAMPLER_PROPERTIES, list, sizeof(list));
        IS(clGetSamplerInfo, s, CL_SAMPLER_ADDRESSING_MODE, cl_addressing_mode, CL_ADDRESS_CLAMP);
        OK(clReleaseSampler(s));
}

static void events(struct api *a)
{
        cl_int e, fill = 0;
        cl_ulong time;
        cl_command_queue q =
                clCreateCommandQueue(a->context, a->devices[0], CL_QUEUE_PROFILING_ENABLE, &e);
        OK(e);
        cl_mem m = api_buffer(a, 0, 64, NULL);
        cl_event gate = clCreateUserEvent(a->context, &e), event;
        OK(e);
        OK(clEnqueueFillBuffer(q, m, &fill, 4, 0, 64, 1, &gate, &event));
        QUERY(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, sizeof(cl_command_queue));
        QUERY(clGetEventInfo, event, CL_EVENT_CONTEXT, sizeof(cl_context));
        QUERY(clGetEventInfo, event, CL_EVENT_COMMAND_TYPE, sizeof(cl_command_type));
        QUERY(clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(cl_int));
        QUERY(clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT, sizeof(cl_uint));
        NO_QUERY(clGetEventInfo, event, 0x11D5);
        IS(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, cl_command_queue, q);
        IS(clGetEventInfo, event, CL_EVENT_CONTEXT, cl_context, a->context);
        IS(clGetEventInfo, event, CL_EVENT_COMMAND_TYPE, cl_command_type, CL_COMMAND_FILL_BUFFER);
        IS(clGetEventInfo, gate, CL_EVENT_COMMAND_QUEUE, cl_command_queue, NULL);
        IS(clGetEventInfo, gate, CL_EVENT_COMMAND_TYPE, cl_command_type, CL_COMMAND_USER);
        IS(clGetEventInfo, gate, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_int, CL_SUBMITTED);
        EXPECT(CL_PROFILING_INFO_NOT_AVAILABLE,
               clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL));
        EXPECT(CL_INVALID_EVENT, clSetUserEventStatus(event, CL_COMPLETE));
        EXPECT(CL_INVALID_VALUE, clSetUserEventStatus(gate, CL_SUBMITTED));
        OK(clSetUserEventStatus(gate, CL_COMPLETE));
        EXPECT(CL_INVALID_OPERATION, clSetUserEventStatus(gate, -5));
        OK(clWaitForEvents(1, &event));
        for (cl_profiling_info name = CL_PROFILING_COMMAND_QUEUED;
             name <= CL_PROFILING_COMMAND_COMPLETE; name++)
                QUERY(clGetEventProfilingInfo, event, name, sizeof(cl_ulong));
        NO_QUERY(clGetEventProfilingInfo, event, 0x1285);
        EXPECT(CL_PROFILING_INFO_NOT_AVAILABLE,
               clGetEventProfilingInfo(gate, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL));
        cl_context other = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        cl_event foreign = clCreateUserEvent(other, &e);
        OK(e);
        const cl_event both[2] = { gate, foreign };
        EXPECT(CL_INVALID_CONTEXT, clWaitForEvents(2, both));
        EXPECT(CL_INVALID_CONTEXT, clEnqueueMarkerWithWaitList(q, 2, both, NULL));
        const cl_event wrong[2] = { gate, (cl_event)m };
        EXPECT(CL_INVALID_EVENT, clWaitForEvents(2, wrong));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST, clEnqueueBarrierWithWaitList(q, 2, wrong, NULL));
        OK(clReleaseEvent(foreign));
        OK(clReleaseContext(other));
        OK(clReleaseEvent(event));
        OK(clReleaseEvent(gate));
        OK(clReleaseMemObject(m));
        OK(clReleaseCommandQueue(q));
}

/* Of the kernel's argument 0 and of the program on the first device. */
static cl_device_id first_device;

static cl_int arg_info(cl_kernel k, cl_kernel_arg_info name, size_t size, void *value, size_t *ret)
{
        return clGetKernelArgInfo(k, 0, name, size, value, ret);
}

static cl_int group_info(cl_kernel k, cl_kernel_work_group_info name, size_t size, void *value,
                         size_t *ret)
{
        return clGetKernelWorkGroupInfo(k, first_device, name, size, value, ret);
}

static cl_int build_info(cl_program p, cl_program_build_info name, size_t size, void *value,
                         size_t *ret)
{
        return clGetProgramBuildInfo(p, first_device, name, size, value, ret);
}

static void programs(struct api *a)
{
        static const char source[] = "kernel void one(global const uint *from, uint n) {}\n"
                                     "kernel void two(global uint *to) { *to = 1; }\n";
        const size_t n = a->count;
        first_device = a->devices[0];
        cl_program p = api_build(a, source, "-cl-kernel-arg-info");
        QUERY(clGetProgramInfo, p, CL_PROGRAM_REFERENCE_COUNT, sizeof(cl_uint));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_CONTEXT, sizeof(cl_context));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_NUM_DEVICES, sizeof(cl_uint));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_DEVICES, n * sizeof(cl_device_id));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_SOURCE, sizeof(source));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_IL, 0);
        QUERY(clGetProgramInfo, p, CL_PROGRAM_BINARY_SIZES, n * sizeof(size_t));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_NUM_KERNELS, sizeof(size_t));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_KERNEL_NAMES, sizeof("one;two"));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, sizeof(cl_bool));
        QUERY(clGetProgramInfo, p, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT, sizeof(cl_bool));
        NO_QUERY(clGetProgramInfo, p, 0x1158);
        IS(clGetProgramInfo, p, CL_PROGRAM_NUM_DEVICES, cl_uint, n);
        IS_LIST(clGetProgramInfo, p, CL_PROGRAM_DEVICES, a->devices, n * sizeof(cl_device_id));
        IS_LIST(clGetProgramInfo, p, CL_PROGRAM_SOURCE, source, sizeof(source));
        size_t size;
        void *places[API_DEVICES_MAX] = { NULL }; /* no binary is wanted */
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, 0, NULL, &size));
        CHECK(size == n * sizeof(places[0]));
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARIES, size, places, NULL));
        EXPECT(CL_INVALID_VALUE, clGetProgramInfo(p, CL_PROGRAM_BINARIES, size - 1, places, NULL));
        EXPECT(CL_INVALID_PROGRAM, clGetProgramInfo(NULL, CL_PROGRAM_SOURCE, 0, NULL, NULL));

        QUERY(build_info, p, CL_PROGRAM_BUILD_STATUS, sizeof(cl_build_status));
        QUERY(build_info, p, CL_PROGRAM_BUILD_OPTIONS, sizeof("-cl-kernel-arg-info"));
        QUERY(build_info, p, CL_PROGRAM_BINARY_TYPE, sizeof(cl_program_binary_type));
        QUERY(build_info, p, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, sizeof(size_t));
        NO_QUERY(build_info, p, 0x1186);
        EXPECT(CL_INVALID_DEVICE,
               clGetProgramBuildInfo(p, NULL, CL_PROGRAM_BUILD_STATUS, 0, NULL, NULL));
        EXPECT(CL_INVALID_PROGRAM, build_info(NULL, CL_PROGRAM_BUILD_STATUS, 0, NULL, NULL));

        cl_kernel k = api_kernel(p, "one");
        QUERY(clGetKernelInfo, k, CL_KERNEL_FUNCTION_NAME, sizeof("one"));
        QUERY(clGetKernelInfo, k, CL_KERNEL_NUM_ARGS, sizeof(cl_uint));
        QUERY(clGetKernelInfo, k, CL_KERNEL_REFERENCE_COUNT, sizeof(cl_uint));
        QUERY(clGetKernelInfo, k, CL_KERNEL_CONTEXT, sizeof(cl_context));
        QUERY(clGetKernelInfo, k, CL_KERNEL_PROGRAM, sizeof(cl_program));
        NO_QUERY(clGetKernelInfo, k, 0x1196);
        EXPECT(CL_INVALID_KERNEL, clGetKernelInfo(NULL, CL_KERNEL_NUM_ARGS, 0, NULL, NULL));
        QUERY(arg_info, k, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(cl_uint));
        QUERY(arg_info, k, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(cl_uint));
        QUERY(arg_info, k, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(cl_kernel_arg_type_qualifier));
        QUERY(arg_info, k, CL_KERNEL_ARG_TYPE_NAME, sizeof("uint*"));
        QUERY(arg_info, k, CL_KERNEL_ARG_NAME, sizeof("from"));
        NO_QUERY(arg_info, k, 0x119B);
        EXPECT(CL_INVALID_KERNEL, arg_info(NULL, CL_KERNEL_ARG_NAME, 0, NULL, NULL));
        EXPECT(CL_INVALID_ARG_INDEX, clGetKernelArgInfo(k, 2, CL_KERNEL_ARG_NAME, 0, NULL, NULL));
        QUERY(group_info, k, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size_t));
        QUERY(group_info, k, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, 3 * sizeof(size_t));
        QUERY(group_info, k, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(cl_ulong));
        QUERY(group_info, k, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof(size_t));
        QUERY(group_info, k, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(cl_ulong));
        NO_QUERY(group_info, k, 0x11B6);
        EXPECT(CL_INVALID_KERNEL, group_info(NULL, CL_KERNEL_WORK_GROUP_SIZE, 0, NULL, NULL));

        /* Arguments are of the kernel's context. */
        cl_int e;
        cl_context x = clCreateContext(NULL, 1, a->devices, NULL, NULL, &e);
        OK(e);
        cl_mem foreign = clCreateBuffer(x, 0, 64, NULL, &e);
        OK(e);
        EXPECT(CL_INVALID_CONTEXT, clSetKernelArg(k, 0, sizeof(foreign), &foreign));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 1, 1, &size));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 1, 8, &size));
        EXPECT(CL_INVALID_KERNEL, clSetKernelArg(NULL, 0, 4, &size));
        OK(clReleaseMemObject(foreign));
        OK(clReleaseContext(x));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

int main(void)
{
        struct api a = api_open(0);
        contexts(&a);
        queues(&a);
        mems(&a);
        images(&a);
        host_access(&a);
        samplers(&a);
        events(&a);
        programs(&a);
        api_close(&a);
        printf("queries: %u devices\n", a.count);
        return 0;
}
