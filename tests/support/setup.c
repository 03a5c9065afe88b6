#include "support/setup.h"

static void on_notice(const char *text, const void *info, size_t size, void *user)
{
        ++*(unsigned *)user;
}

unsigned notices;

void setup_begin_in(struct setup *s)
{
        cl_int err;
        uint32_t by = 1;
        s->context = clCreateContext(NULL, s->count, s->devices, on_notice, &notices, &err);
        assert_int_equal(err, CL_SUCCESS);
        for (cl_uint i = 0; i < s->count; i++) {
                s->queues[i] =
                        clCreateCommandQueueWithProperties(s->context, s->devices[i], NULL, &err);
                assert_int_equal(err, CL_SUCCESS);
        }
        s->program = clCreateProgramWithBuiltInKernels(s->context, s->count, s->devices,
                                                       "spancl.inc.i32", &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clBuildProgram(s->program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
        s->inc = clCreateKernel(s->program, "spancl.inc.i32", &err);
        assert_int_equal(err, CL_SUCCESS);
        static uint32_t zeros[ITEMS];
        s->buffer = clCreateBuffer(s->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof(zeros), zeros, &err);
        assert_int_equal(err, CL_SUCCESS);
        assert_int_equal(clSetKernelArg(s->inc, 0, sizeof(cl_mem), &s->buffer), CL_SUCCESS);
        assert_int_equal(clSetKernelArg(s->inc, 1, sizeof(by), &by), CL_SUCCESS);
}

void setup_begin(struct setup *s, const struct sim_params *params)
{
        *s = (struct setup){ .sim = sim_new(params) };
        notices = 0;
        assert_int_equal(clGetDeviceIDs(sim_platform(s->sim), CL_DEVICE_TYPE_CUSTOM, 16, s->devices,
                                        &s->count),
                         CL_SUCCESS);
        setup_begin_in(s);
}

void setup_end_in(struct setup *s)
{
        assert_int_equal(clReleaseKernel(s->inc), CL_SUCCESS);
        assert_int_equal(clReleaseProgram(s->program), CL_SUCCESS);
        assert_int_equal(clReleaseMemObject(s->buffer), CL_SUCCESS);
        for (cl_uint i = 0; i < s->count; i++)
                assert_int_equal(clReleaseCommandQueue(s->queues[i]), CL_SUCCESS);
        sim_run(s->sim, 1000); /* notices that are due hold the context */
        assert_int_equal(clReleaseContext(s->context), CL_SUCCESS);
}

void setup_end(struct setup *s)
{
        setup_end_in(s);
        sim_free(s->sim);
}

cl_int setup_launch(struct setup *s, unsigned queue, cl_uint waits, const cl_event *list,
                    cl_event *ret)
{
        size_t items = ITEMS;
        return clEnqueueNDRangeKernel(s->queues[queue], s->inc, 1, NULL, &items, NULL, waits,
                                      waits ? list : NULL, ret);
}

void setup_check(struct setup *s, unsigned queue, uint32_t expected)
{
        static uint32_t got[ITEMS];
        assert_int_equal(clEnqueueReadBuffer(s->queues[queue], s->buffer, CL_TRUE, 0, sizeof(got),
                                             got, 0, NULL, NULL),
                         CL_SUCCESS);
        for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(got[i], expected);
}

cl_int command_status(cl_event e)
{
        cl_int status = 99;
        assert_int_equal(
                clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
                CL_SUCCESS);
        return status;
}

uint64_t blocked(unsigned from, unsigned to)
{
        return 1ull << (8 * from + to);
}
