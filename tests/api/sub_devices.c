/* Sub-devices: their queries, their lifetime, and work on them. servers: 2 */
#include "api.h"

static cl_ulong number(cl_device_id d, cl_device_info name)
{
        cl_ulong v = 0;
        OK(clGetDeviceInfo(d, name, sizeof(v), &v, NULL));
        return v;
}

/* Return true if the device names this way to divide it. */
static int offers(cl_device_id d, cl_device_partition_property name)
{
        cl_device_partition_property list[16];
        size_t size;
        OK(clGetDeviceInfo(d, CL_DEVICE_PARTITION_PROPERTIES, sizeof(list), list, &size));
        for (size_t i = 0; i < size / sizeof(list[0]); i++)
                if (list[i] == name)
                        return 1;
        return 0;
}

static void errors(cl_device_id d)
{
        cl_device_id out[64];
        cl_uint n = 77;
        cl_device_partition_property unknown[] = { 0x7777, 1, 0 };
        EXPECT(CL_INVALID_VALUE, clCreateSubDevices(d, unknown, 64, out, &n));
        cl_device_partition_property zero[] = { CL_DEVICE_PARTITION_EQUALLY, 0, 0 };
        EXPECT(CL_INVALID_VALUE, clCreateSubDevices(d, zero, 64, out, &n));
        cl_device_partition_property one[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        EXPECT(CL_INVALID_VALUE, clCreateSubDevices(d, one, 0, out, &n));
        EXPECT(CL_INVALID_VALUE, clCreateSubDevices(d, one, 1, out, &n));
        EXPECT(CL_INVALID_VALUE, clCreateSubDevices(d, NULL, 64, out, &n));
        CHECK(n == 77);
        if (offers(d, CL_DEVICE_PARTITION_BY_COUNTS)) {
                cl_device_partition_property many[] = {
                        CL_DEVICE_PARTITION_BY_COUNTS,
                        (cl_device_partition_property)number(d, CL_DEVICE_MAX_COMPUTE_UNITS), 1,
                        CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0
                };
                EXPECT(CL_INVALID_DEVICE_PARTITION_COUNT, clCreateSubDevices(d, many, 64, out, &n));
        }
}

/* The 0 behind the counts ends the properties: the call reads nothing after it. */
static void counts_end_once(cl_device_id d)
{
        cl_device_partition_property one[] = { CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                               CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0x7777 };
        cl_device_id sub;
        cl_uint n = 0;
        if (!offers(d, CL_DEVICE_PARTITION_BY_COUNTS))
                return;
        OK(clCreateSubDevices(d, one, 1, &sub, &n));
        CHECK(n == 1 && number(sub, CL_DEVICE_MAX_COMPUTE_UNITS) == 1);
        OK(clReleaseDevice(sub));
}

static void lifetime(cl_device_id d, cl_device_id sub)
{
        CHECK(number(sub, CL_DEVICE_REFERENCE_COUNT) == 1);
        OK(clRetainDevice(sub));
        CHECK(number(sub, CL_DEVICE_REFERENCE_COUNT) == 2);
        OK(clReleaseDevice(sub));
        CHECK(number(sub, CL_DEVICE_REFERENCE_COUNT) == 1);
        /* The root's stays. */
        OK(clRetainDevice(d));
        CHECK(number(d, CL_DEVICE_REFERENCE_COUNT) == 1);
        OK(clReleaseDevice(d));
}

static void queries(cl_device_id d, cl_device_id sub)
{
        cl_device_id parent = NULL;
        cl_device_partition_property type[8];
        size_t size;
        OK(clGetDeviceInfo(sub, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL));
        CHECK(parent == d);
        OK(clGetDeviceInfo(sub, CL_DEVICE_PARTITION_TYPE, sizeof(type), type, &size));
        CHECK(size == 3 * sizeof(type[0]));
        CHECK(type[0] == CL_DEVICE_PARTITION_EQUALLY && type[1] == 1 && type[2] == 0);
        CHECK(number(sub, CL_DEVICE_MAX_COMPUTE_UNITS) == 1);
        CHECK(number(sub, CL_DEVICE_TYPE) ==
                      (number(d, CL_DEVICE_TYPE) & ~(cl_ulong)CL_DEVICE_TYPE_DEFAULT) ||
              number(sub, CL_DEVICE_TYPE) == number(d, CL_DEVICE_TYPE));
        /* An undivided device: no list, or a list that is 0. */
        type[0] = 77;
        OK(clGetDeviceInfo(d, CL_DEVICE_PARTITION_TYPE, sizeof(type), type, &size));
        CHECK(size == 0 || type[0] == 0);
}

enum { N = 4096 };

static const char source[] = "kernel void count(global int *a, int by)\n"
                             "{ a[get_global_id(0)] += by + get_global_id(0); }\n";

static void launch(cl_command_queue q, cl_kernel k, cl_mem m, cl_int by)
{
        size_t all = N;
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clSetKernelArg(k, 1, sizeof(by), &by));
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &all, NULL, 0, NULL, NULL));
        OK(clFinish(q));
}

/* One buffer, written by each device of a context in turn. The program is built for the first `built`. */
static void work(const cl_device_id *devices, cl_uint count, cl_uint built)
{
        cl_int err, data[N] = { 0 };
        const char *text = source;
        cl_uint n = 0;
        cl_context x = clCreateContext(NULL, count, devices, NULL, NULL, &err);
        OK(err);
        cl_program p = clCreateProgramWithSource(x, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(p, built, built ? devices : NULL, "", NULL, NULL));
        cl_kernel k = clCreateKernel(p, "count", &err);
        OK(err);
        cl_mem m = clCreateBuffer(x, CL_MEM_COPY_HOST_PTR, sizeof(data), data, &err);
        OK(err);
        for (cl_uint i = 0; i < count; i++) {
                cl_build_status status;
                size_t group = 0;
                OK(clGetProgramBuildInfo(p, devices[i], CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                         &status, NULL));
                CHECK(status == CL_BUILD_SUCCESS);
                OK(clGetKernelWorkGroupInfo(k, devices[i], CL_KERNEL_WORK_GROUP_SIZE, sizeof(group),
                                            &group, NULL));
                CHECK(group > 0);
                cl_command_queue q = clCreateCommandQueue(x, devices[i], 0, &err);
                OK(err);
                launch(q, k, m, (cl_int)i);
                OK(clReleaseCommandQueue(q));
        }
        cl_command_queue q = clCreateCommandQueue(x, devices[0], 0, &err);
        OK(err);
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
        for (cl_int i = 0; i < N; i++)
                CHECK(data[i] == (cl_int)(count * (count - 1) / 2) + i * (cl_int)count);

        size_t sizes[16] = { 0 };
        OK(clGetProgramInfo(p, CL_PROGRAM_NUM_DEVICES, sizeof(n), &n, NULL));
        OK(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
        CHECK(n >= 1 && sizes[0] > 0);
        OK(clReleaseCommandQueue(q));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
        OK(clReleaseContext(x));
}

/* A queue still works when the application has released its sub-device. */
static void outlive(cl_device_id d)
{
        cl_device_partition_property by[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        cl_device_id subs[64];
        cl_uint count;
        cl_int err, value = 0, pattern = 42;
        OK(clCreateSubDevices(d, by, 64, subs, &count));
        cl_context x = clCreateContext(NULL, 1, subs, NULL, NULL, &err);
        OK(err);
        cl_command_queue q = clCreateCommandQueue(x, subs[0], 0, &err);
        OK(err);
        cl_mem m = clCreateBuffer(x, 0, sizeof(value), NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < count; i++)
                OK(clReleaseDevice(subs[i]));
        OK(clEnqueueFillBuffer(q, m, &pattern, sizeof(pattern), 0, sizeof(value), 0, NULL, NULL));
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
        CHECK(value == 42);
        OK(clReleaseMemObject(m));
        OK(clReleaseCommandQueue(q));
        OK(clReleaseContext(x));
}

int main(void)
{
        struct api a = api_open(0);
        cl_device_id subs[64], mixed[3];
        cl_uint count = 0, again = 0;
        cl_device_partition_property by[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        for (cl_uint i = 0; i < a.count; i++) {
                cl_device_id d = a.devices[i];
                if (!offers(d, CL_DEVICE_PARTITION_EQUALLY) ||
                    number(d, CL_DEVICE_MAX_COMPUTE_UNITS) < 2) {
                        printf("device %u can't be divided\n", i);
                        return 77;
                }
                errors(d);
                counts_end_once(d);
                OK(clCreateSubDevices(d, by, 0, NULL, &count));
                CHECK(count == number(d, CL_DEVICE_MAX_COMPUTE_UNITS) && count <= 64);
                OK(clCreateSubDevices(d, by, count, subs, &again));
                CHECK(again == count);
                lifetime(d, subs[0]);
                queries(d, subs[0]);
                work(subs, 2, 0);
                mixed[0] = d;
                mixed[1] = subs[1];
                mixed[2] = a.devices[(i + 1) % a.count];
                work(mixed, a.count > 1 ? 3 : 2, 0);
                /* "[...] the program binary associated with the parent device will be used." */
                work(mixed, 2, 1);
                for (cl_uint k = 0; k < count; k++)
                        OK(clReleaseDevice(subs[k]));
                outlive(d);
        }
        api_close(&a);
        printf("%u sub-devices of each of %u devices work\n", count, a.count);
        return 0;
}
