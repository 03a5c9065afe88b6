/* Masks of device types, as programs pass them: unknown bits beside known ones count for nothing. servers: 1 */
#include "api.h"

static const cl_device_type unknown = (cl_device_type)1 << 40 | (cl_device_type)1 << 33;

/* Return the number of devices, or the error as a negative number. clCreateContextFromType must say the same. */
static int devices_of(cl_platform_id platform, cl_device_type type)
{
        cl_context_properties list[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0 };
        cl_uint count = 0, in_context = 0;
        cl_int err, status = clGetDeviceIDs(platform, type, 0, NULL, &count);
        cl_context context = clCreateContextFromType(list, type, NULL, NULL, &err);
        EXPECT(status, err);
        if (status != CL_SUCCESS)
                return status; /* PoCL 3.1 returns a pointer here, too */
        OK(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof(in_context), &in_context,
                            NULL));
        CHECK(in_context == count && count > 0);
        OK(clReleaseContext(context));
        return (int)count;
}

int main(void)
{
        static const cl_device_type types[] = {
                CL_DEVICE_TYPE_CPU,    CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                CL_DEVICE_TYPE_CUSTOM, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU
        };
        cl_platform_id platform;
        OK(clGetPlatformIDs(1, &platform, NULL));
        int all = devices_of(platform, CL_DEVICE_TYPE_ALL);
        CHECK(all > 0);
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                CHECK(devices_of(platform, types[i] | unknown) == devices_of(platform, types[i]));
        CHECK(devices_of(platform, ~(cl_device_type)0) == all); /* OpenCV */
        /* An error is what there is without a known bit; natively CL_DEVICE_NOT_FOUND, too. */
        CHECK(devices_of(platform, 0) < 0);
        CHECK(devices_of(platform, unknown) < 0);
        CHECK(devices_of(platform, CL_DEVICE_TYPE_ALL & ~(cl_device_type)0x1f) < 0);
        return 0;
}
