/* refusals: print the groups. refusals GROUP NAME...: run the calls of one, but not those of these names.
 * refusals -p: print the platform's name. */
#include "refusals.h"

const cl_image_format rgba8 = { CL_RGBA, CL_UNSIGNED_INT8 };
const size_t zero3[3] = { 0, 0, 0 }, one3[3] = { 1, 1, 1 };

static const struct {
        const char *name;
        void (*run)(struct world *w);
} groups[] = {
        { "context", group_context },
        { "queue", group_queue },
        { "devices", group_devices },
        { "queries", group_queries },
        { "events", group_events },
        { "buffers", group_buffers },
        { "sub_buffers", group_sub_buffers },
        { "transfers", group_transfers },
        { "rects", group_rects },
        { "copies", group_copies },
        { "maps", group_maps },
        { "images", group_images },
        { "image_transfers", group_image_transfers },
        { "image_copies", group_image_copies },
        { "samplers", group_samplers },
        { "programs", group_programs },
        { "builds", group_builds },
        { "links", group_links },
        { "kernels", group_kernels },
        { "args", group_args },
        { "launches", group_launches },
        { "svm", group_svm },
};
enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

/* ---- codes ---------------------------------------------------------------------------------- */

#define CODE(name)          \
        {                   \
                name, #name \
        }
static const struct {
        cl_int code;
        const char *name;
} codes[] = {
        CODE(CL_SUCCESS),
        CODE(CL_DEVICE_NOT_FOUND),
        CODE(CL_DEVICE_NOT_AVAILABLE),
        CODE(CL_COMPILER_NOT_AVAILABLE),
        CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        CODE(CL_OUT_OF_RESOURCES),
        CODE(CL_OUT_OF_HOST_MEMORY),
        CODE(CL_PROFILING_INFO_NOT_AVAILABLE),
        CODE(CL_MEM_COPY_OVERLAP),
        CODE(CL_IMAGE_FORMAT_MISMATCH),
        CODE(CL_IMAGE_FORMAT_NOT_SUPPORTED),
        CODE(CL_BUILD_PROGRAM_FAILURE),
        CODE(CL_MAP_FAILURE),
        CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET),
        CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        CODE(CL_COMPILE_PROGRAM_FAILURE),
        CODE(CL_LINKER_NOT_AVAILABLE),
        CODE(CL_LINK_PROGRAM_FAILURE),
        CODE(CL_DEVICE_PARTITION_FAILED),
        CODE(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
        CODE(CL_INVALID_VALUE),
        CODE(CL_INVALID_DEVICE_TYPE),
        CODE(CL_INVALID_PLATFORM),
        CODE(CL_INVALID_DEVICE),
        CODE(CL_INVALID_CONTEXT),
        CODE(CL_INVALID_QUEUE_PROPERTIES),
        CODE(CL_INVALID_COMMAND_QUEUE),
        CODE(CL_INVALID_HOST_PTR),
        CODE(CL_INVALID_MEM_OBJECT),
        CODE(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
        CODE(CL_INVALID_IMAGE_SIZE),
        CODE(CL_INVALID_SAMPLER),
        CODE(CL_INVALID_BINARY),
        CODE(CL_INVALID_BUILD_OPTIONS),
        CODE(CL_INVALID_PROGRAM),
        CODE(CL_INVALID_PROGRAM_EXECUTABLE),
        CODE(CL_INVALID_KERNEL_NAME),
        CODE(CL_INVALID_KERNEL_DEFINITION),
        CODE(CL_INVALID_KERNEL),
        CODE(CL_INVALID_ARG_INDEX),
        CODE(CL_INVALID_ARG_VALUE),
        CODE(CL_INVALID_ARG_SIZE),
        CODE(CL_INVALID_KERNEL_ARGS),
        CODE(CL_INVALID_WORK_DIMENSION),
        CODE(CL_INVALID_WORK_GROUP_SIZE),
        CODE(CL_INVALID_WORK_ITEM_SIZE),
        CODE(CL_INVALID_GLOBAL_OFFSET),
        CODE(CL_INVALID_EVENT_WAIT_LIST),
        CODE(CL_INVALID_EVENT),
        CODE(CL_INVALID_OPERATION),
        CODE(CL_INVALID_GL_OBJECT),
        CODE(CL_INVALID_BUFFER_SIZE),
        CODE(CL_INVALID_MIP_LEVEL),
        CODE(CL_INVALID_GLOBAL_WORK_SIZE),
        CODE(CL_INVALID_PROPERTY),
        CODE(CL_INVALID_IMAGE_DESCRIPTOR),
        CODE(CL_INVALID_COMPILER_OPTIONS),
        CODE(CL_INVALID_LINKER_OPTIONS),
        CODE(CL_INVALID_DEVICE_PARTITION_COUNT),
        CODE(CL_INVALID_PIPE_SIZE),
        CODE(CL_INVALID_DEVICE_QUEUE),
        CODE(CL_INVALID_SPEC_ID),
        CODE(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
};

static const char *code_name(cl_int code)
{
        static char text[24];
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                if (codes[i].code == code)
                        return codes[i].name;
        snprintf(text, sizeof(text), "%d", code);
        return text;
}

void need(const char *file, int line, cl_int code)
{
        if (code == CL_SUCCESS)
                return;
        fprintf(stderr, "%s:%d: %s\n", file, line, code_name(code));
        exit(1);
}

bool wanted(struct world *w, const char *name)
{
        for (char **p = w->left_out; *p; p++)
                if (!strcmp(*p, name))
                        return false;
        printf("? %s\n", name);
        fflush(stdout);
        return true;
}

void say(struct world *w, const char *name, cl_int code)
{
        printf("%s.%s: %s\n", w->group, name, code_name(code));
        fflush(stdout);
}

/* ---- commands ------------------------------------------------------------------------------- */

static void pattern(uint8_t *to, size_t size, unsigned seed)
{
        uint32_t x = seed * 2654435761u + 1;
        for (size_t i = 0; i < size; i++) {
                x = x * 1664525u + 1013904223u;
                to[i] = (uint8_t)(x >> 24);
        }
}

static uint32_t hash(uint32_t h, const uint8_t *from, size_t size)
{
        for (size_t i = 0; i < size; i++)
                h = (h ^ from[i]) * 16777619u;
        return h;
}

static size_t image_size(cl_mem image, size_t region[3])
{
        size_t depth = 0;
        NEED(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof(size_t), &region[0], NULL));
        NEED(clGetImageInfo(image, CL_IMAGE_HEIGHT, sizeof(size_t), &region[1], NULL));
        NEED(clGetImageInfo(image, CL_IMAGE_DEPTH, sizeof(size_t), &depth, NULL));
        region[2] = depth ? depth : 1;
        return region[0] * region[1] * region[2] * PIXEL;
}

void run_begin(struct world *w)
{
        static uint8_t data[SIZE];
        cl_mem buffers[] = { w->a, w->b }, images[] = { w->image, w->image3d };
        pattern(w->host, SIZE, 1);
        for (unsigned i = 0; i < 2; i++) {
                pattern(data, SIZE, 2 + i);
                NEED(clEnqueueWriteBuffer(w->queue, buffers[i], CL_TRUE, 0, SIZE, data, 0, NULL,
                                          NULL));
        }
        for (unsigned i = 0; w->images && i < 2; i++) {
                size_t region[3];
                image_size(images[i], region);
                pattern(data, SIZE, 4 + i);
                NEED(clEnqueueWriteImage(w->queue, images[i], CL_TRUE, zero3, region, 0, 0, data, 0,
                                         NULL, NULL));
        }
        w->event = NULL;
}

static uint32_t digest(struct world *w)
{
        static uint8_t data[SIZE];
        cl_mem buffers[] = { w->a, w->b }, images[] = { w->image, w->image3d };
        uint32_t h = hash(2166136261u, w->host, SIZE);
        for (unsigned i = 0; i < 2; i++) {
                NEED(clEnqueueReadBuffer(w->queue, buffers[i], CL_TRUE, 0, SIZE, data, 0, NULL,
                                         NULL));
                h = hash(h, data, SIZE);
        }
        for (unsigned i = 0; w->images && i < 2; i++) {
                size_t region[3], size = image_size(images[i], region);
                NEED(clEnqueueReadImage(w->queue, images[i], CL_TRUE, zero3, region, 0, 0, data, 0,
                                        NULL, NULL));
                h = hash(h, data, size);
        }
        return h;
}

void run_end(struct world *w, const char *name, cl_int code)
{
        if (code != CL_SUCCESS) {
                say(w, name, code);
                return;
        }
        cl_int status = CL_COMPLETE, finished = clFinish(w->queue);
        if (w->event) {
                NEED(clGetEventInfo(w->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                    &status, NULL));
                NEED(clReleaseEvent(w->event));
                w->event = NULL;
        }
        printf("%s.%s: CL_SUCCESS", w->group, name);
        if (status != CL_COMPLETE || finished != CL_SUCCESS)
                printf(", then %s\n", code_name(status != CL_COMPLETE ? status : finished));
        else
                printf(" %08x\n", digest(w));
        fflush(stdout);
}

void map_end(struct world *w, const char *name, cl_mem mem, void *pointer)
{
        if (w->err == CL_SUCCESS && pointer) {
                NEED(clFinish(w->queue));
                ((uint8_t *)pointer)[0] = 0x5a;
                NEED(clEnqueueUnmapMemObject(w->queue, mem, pointer, 0, NULL, NULL));
        }
        run_end(w, name, w->err);
}

/* ---- what the groups share ------------------------------------------------------------------ */

cl_mem buffer_new(struct world *w, cl_mem_flags flags, size_t size, void *host)
{
        cl_mem m = clCreateBuffer(w->context, flags, size, host, &w->err);
        NEED(w->err);
        return m;
}

cl_program program_new(struct world *w, const char *source)
{
        cl_program p = clCreateProgramWithSource(w->context, 1, &source, NULL, &w->err);
        NEED(w->err);
        return p;
}

cl_program program_built(struct world *w, const char *source, const char *options)
{
        cl_program p = program_new(w, source);
        NEED(clBuildProgram(p, 0, NULL, options, NULL, NULL));
        return p;
}

cl_kernel kernel_new(cl_program program, const char *name)
{
        cl_int err;
        cl_kernel k = clCreateKernel(program, name, &err);
        NEED(err);
        return k;
}

cl_ulong device_number(struct world *w, cl_device_info name)
{
        cl_ulong value = 0;
        (void)clGetDeviceInfo(w->device, name, sizeof(value), &value, NULL);
        return value;
}

static cl_mem image_new(struct world *w, cl_context context, cl_mem_flags flags, size_t depth)
{
        const cl_image_desc desc = {
                .image_type = depth ? CL_MEM_OBJECT_IMAGE3D : CL_MEM_OBJECT_IMAGE2D,
                .image_width = W,
                .image_height = H,
                .image_depth = depth,
        };
        cl_mem m = clCreateImage(context, flags, &rgba8, &desc, NULL, &w->err);
        NEED(w->err);
        return m;
}

static void open_world(struct world *w)
{
        NEED(clGetDeviceIDs(w->platform, CL_DEVICE_TYPE_ALL, 1, &w->device, NULL));
        w->context = clCreateContext(NULL, 1, &w->device, NULL, NULL, &w->err);
        NEED(w->err);
        w->foreign_context = clCreateContext(NULL, 1, &w->device, NULL, NULL, &w->err);
        NEED(w->err);
        w->queue = clCreateCommandQueue(w->context, w->device, 0, &w->err);
        NEED(w->err);
        w->profiling_queue =
                clCreateCommandQueue(w->context, w->device, CL_QUEUE_PROFILING_ENABLE, &w->err);
        NEED(w->err);
        w->foreign_queue = clCreateCommandQueue(w->foreign_context, w->device, 0, &w->err);
        NEED(w->err);
        w->a = buffer_new(w, CL_MEM_READ_WRITE, SIZE, NULL);
        w->b = buffer_new(w, CL_MEM_READ_WRITE, SIZE, NULL);
        w->foreign = clCreateBuffer(w->foreign_context, CL_MEM_READ_WRITE, SIZE, NULL, &w->err);
        NEED(w->err);
        w->foreign_event = clCreateUserEvent(w->foreign_context, &w->err);
        NEED(w->err);
        NEED(clSetUserEventStatus(w->foreign_event, CL_COMPLETE));
        w->host = aligned_alloc(4096, 2 * SIZE);
        w->svm = device_number(w, CL_DEVICE_SVM_CAPABILITIES) != 0;
        w->images = (cl_bool)device_number(w, CL_DEVICE_IMAGE_SUPPORT);
        if (!w->images)
                return;
        w->image = image_new(w, w->context, CL_MEM_READ_WRITE, 0);
        w->image3d = image_new(w, w->context, CL_MEM_READ_WRITE, D);
        w->read_image = image_new(w, w->context, CL_MEM_READ_ONLY, 0);
        w->write_image = image_new(w, w->context, CL_MEM_WRITE_ONLY, 0);
        w->foreign_image = image_new(w, w->foreign_context, CL_MEM_READ_WRITE, 0);
        w->sampler =
                clCreateSampler(w->context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &w->err);
        NEED(w->err);
}

int main(int argc, char **argv)
{
        struct world w = { .group = argc > 1 ? argv[1] : "" };
        w.left_out = argv + (argc > 2 ? 2 : argc);
        if (argc < 2) {
                for (int i = 0; i < GROUPS; i++)
                        puts(groups[i].name);
                return 0;
        }
        NEED(clGetPlatformIDs(1, &w.platform, NULL));
        if (!strcmp(w.group, "-p")) {
                char name[256];
                NEED(clGetPlatformInfo(w.platform, CL_PLATFORM_NAME, sizeof(name), name, NULL));
                puts(name);
                return 0;
        }
        for (int i = 0; i < GROUPS; i++) {
                if (strcmp(groups[i].name, w.group) != 0)
                        continue;
                open_world(&w);
                groups[i].run(&w);
                puts("end");
                fflush(stdout);
                _Exit(0); /* how an implementation ends is no part of the comparison */
        }
        fprintf(stderr, "there is no group %s\n", w.group);
        return 2;
}
