/* The errors of clEnqueueNDRangeKernel and clEnqueueTask, and the sizes that they allow.
 * servers: 2 */
#include "api.h"

static const char source[] =
        "kernel void set(global int *p) { p[get_global_id(0)] = 1; }\n"
        "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void sized(global int *p)\n"
        "{ p[get_global_id(1) * get_global_size(0) + get_global_id(0)] = get_local_size(0); }\n";

static cl_int launch(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *global,
                     const size_t *local)
{
        return clEnqueueNDRangeKernel(q, k, dims, NULL, global, local, 0, NULL, NULL);
}

/* Or a later one. */
static int is_version(const struct api *a, const char *version)
{
        char text[128];
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_VERSION, sizeof(text), text, NULL));
        return strncmp(text, version, strlen(version)) >= 0;
}

static void errors(struct api *a)
{
        cl_command_queue q = a->queues[0];
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "set");
        cl_mem m = api_buffer(a, 0, 4096, NULL);
        size_t sizes[3] = { 0 }, max = 0;
        const size_t eight[3] = { 8, 1, 1 }, three[3] = { 3, 1, 1 }, zero[3] = { 0, 1, 1 };
        EXPECT(CL_INVALID_COMMAND_QUEUE, launch(NULL, k, 1, eight, NULL));
        EXPECT(CL_INVALID_KERNEL, launch(q, NULL, 1, eight, NULL));
        EXPECT(CL_INVALID_KERNEL_ARGS, launch(q, k, 1, eight, NULL));
        EXPECT(CL_INVALID_KERNEL_ARGS, clEnqueueTask(q, k, 0, NULL, NULL));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        EXPECT(CL_INVALID_WORK_DIMENSION, launch(q, k, 0, eight, NULL));
        EXPECT(CL_INVALID_WORK_DIMENSION, launch(q, k, 4, eight, NULL));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 1, eight, three));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 1, eight, zero));
        EXPECT(CL_INVALID_EVENT_WAIT_LIST,
               clEnqueueNDRangeKernel(q, k, 1, NULL, eight, NULL, 1, NULL, NULL));
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes,
                           NULL));
        const size_t wide[1] = { sizes[0] + 1 };
        EXPECT(CL_INVALID_WORK_ITEM_SIZE, launch(q, k, 1, wide, wide));
        OK(clGetKernelWorkGroupInfo(k, a->devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof(max), &max,
                                    NULL));
        if (max <= sizes[0] && sizes[1] > 1) {
                const size_t many[2] = { max, 2 };
                EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 2, many, many));
        }
        /* Beyond the device's sizes, which may be wider than the program's. */
        const size_t far = SIZE_MAX - 4;
        cl_uint bits;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_ADDRESS_BITS, sizeof(bits), &bits, NULL));
        if (bits <= 8 * sizeof(far))
                EXPECT(CL_INVALID_GLOBAL_OFFSET,
                       clEnqueueNDRangeKernel(q, k, 1, &far, eight, NULL, 0, NULL, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
}

/* "If global_work_size is NULL or the value in any passed dimension is zero, then the kernel command will
 * trivially succeed"; its event is a kernel's. */
static void nothing(struct api *a)
{
        if (!is_version(a, "OpenCL 2.1"))
                return;
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "set");
        cl_mem m = api_buffer(a, 0, 4096, NULL);
        const size_t none[2] = { 4, 0 };
        cl_event e;
        cl_command_type type;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(a->queues[0], k, 2, NULL, none, NULL, 0, NULL, &e));
        OK(clWaitForEvents(1, &e));
        OK(clGetEventInfo(e, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
        CHECK(type == CL_COMMAND_NDRANGE_KERNEL);
        OK(clReleaseEvent(e));
        OK(launch(a->queues[0], k, 1, NULL, NULL));
        OK(clFinish(a->queues[0]));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
}

static void required(struct api *a)
{
        cl_command_queue q = a->queues[0];
        cl_program p = api_build(a, source, NULL);
        cl_kernel k = api_kernel(p, "sized");
        cl_mem m = api_buffer(a, 0, 4096, NULL);
        const size_t global[2] = { 8, 4 }, local[2] = { 4, 2 }, other[2] = { 2, 4 };
        const size_t odd[2] = { 8, 3 }, flat[2] = { 8, 1 };
        cl_int out[32];
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 2, global, other));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 1, global, local));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, clEnqueueTask(q, k, 0, NULL, NULL));
        OK(launch(q, k, 2, global, local));
        /* Not given, it is the required one, which has to fit, too. */
        OK(launch(q, k, 2, global, NULL));
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
        for (int i = 0; i < 32; i++)
                CHECK(out[i] == 4);
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 2, odd, NULL));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, launch(q, k, 1, flat, NULL));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseMemObject(m));
}

static cl_program compiled(struct api *a, const char *text, const char *options)
{
        cl_int e;
        cl_program p = clCreateProgramWithSource(a->context, 1, &text, NULL, &e);
        OK(e);
        OK(clCompileProgram(p, 0, NULL, options, 0, NULL, NULL, NULL, NULL));
        return p;
}

/* Launch "set" with a last work-group that is smaller. */
static cl_int uneven(struct api *a, cl_program p, cl_mem m)
{
        const size_t global = 10, local = 4;
        cl_kernel k = api_kernel(p, "set");
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        cl_int e = launch(a->queues[0], k, 1, &global, &local);
        OK(clFinish(a->queues[0]));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        return e;
}

/* The program's version and options decide whether work-groups may be smaller at the end. */
static void non_uniform(struct api *a)
{
        static const char other[] = "int unused(int x) { return x; }\n";
        cl_bool has = CL_FALSE;
        cl_int e;
        if (clGetDeviceInfo(a->devices[0], CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, sizeof(has),
                            &has, NULL) != CL_SUCCESS)
                has = CL_FALSE;
        cl_int fits = has ? CL_SUCCESS : CL_INVALID_WORK_GROUP_SIZE;
        const char *std = has ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
        char options[64];
        cl_mem m = api_buffer(a, 0, 4096, NULL);
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, uneven(a, api_build(a, source, NULL), m));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, uneven(a, api_build(a, source, "-cl-std=CL1.2"), m));
        EXPECT(fits, uneven(a, api_build(a, source, std), m));
        /* The option is "missing before version 2.0": a compiler may refuse it then. */
        snprintf(options, sizeof(options), "%s -cl-uniform-work-group-size", std);
        if (has)
                EXPECT(CL_INVALID_WORK_GROUP_SIZE, uneven(a, api_build(a, source, options), m));

        /* "[...] then all input programs must support non-uniform work-groups." */
        cl_program inputs[2] = { compiled(a, source, std), compiled(a, other, std) };
        cl_program old = compiled(a, other, NULL);
        cl_program p = clLinkProgram(a->context, 0, NULL, NULL, 2, inputs, NULL, NULL, &e);
        OK(e);
        EXPECT(fits, uneven(a, p, m));
        OK(clReleaseProgram(inputs[1]));
        inputs[1] = old;
        p = clLinkProgram(a->context, 0, NULL, NULL, 2, inputs, NULL, NULL, &e);
        OK(e);
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, uneven(a, p, m));
        OK(clReleaseProgram(inputs[0]));
        OK(clReleaseProgram(old));
        OK(clReleaseMemObject(m));
}

int main(void)
{
        struct api a = api_open(0);
        errors(&a);
        nothing(&a);
        required(&a);
        if (is_version(&a, "OpenCL 2.0"))
                non_uniform(&a);
        api_close(&a);
        printf("launch: %u devices\n", a.count);
        return 0;
}
