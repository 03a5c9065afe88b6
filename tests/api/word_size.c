/* Sizes and pointers in answers have the program's width, whatever the width of the device's. */
#include "api.h"

#include <stdint.h>

static size_t answer_size(cl_device_id d, cl_device_info name)
{
        size_t size = 0;
        OK(clGetDeviceInfo(d, name, 0, NULL, &size));
        return size;
}

static size_t size_of(cl_device_id d, cl_device_info name)
{
        size_t value = 0;
        CHECK(answer_size(d, name) == sizeof(value));
        OK(clGetDeviceInfo(d, name, sizeof(value), &value, NULL));
        return value;
}

static void device_answers(cl_device_id d)
{
        static const cl_device_info sizes[] = {
                CL_DEVICE_MAX_WORK_GROUP_SIZE,
                CL_DEVICE_MAX_PARAMETER_SIZE,
                CL_DEVICE_PROFILING_TIMER_RESOLUTION,
                CL_DEVICE_PRINTF_BUFFER_SIZE,
        };
        static const cl_device_info of_images[] = {
                CL_DEVICE_IMAGE2D_MAX_WIDTH,    CL_DEVICE_IMAGE2D_MAX_HEIGHT,
                CL_DEVICE_IMAGE3D_MAX_WIDTH,    CL_DEVICE_IMAGE3D_MAX_HEIGHT,
                CL_DEVICE_IMAGE3D_MAX_DEPTH,    CL_DEVICE_IMAGE_MAX_BUFFER_SIZE,
                CL_DEVICE_IMAGE_MAX_ARRAY_SIZE,
        };
        cl_uint dims = 0, bits = 0;
        cl_bool images = CL_FALSE;
        size_t items[8] = { 0 };
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                CHECK(size_of(d, sizes[i]) > 0);
        OK(clGetDeviceInfo(d, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, NULL));
        for (size_t i = 0; i < sizeof(of_images) / sizeof(of_images[0]) && images; i++)
                CHECK(size_of(d, of_images[i]) > 0);
        OK(clGetDeviceInfo(d, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, sizeof(dims), &dims, NULL));
        CHECK(dims >= 3 && dims <= 8);
        CHECK(answer_size(d, CL_DEVICE_MAX_WORK_ITEM_SIZES) == dims * sizeof(size_t));
        OK(clGetDeviceInfo(d, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(items), items, NULL));
        for (cl_uint i = 0; i < dims; i++)
                CHECK(items[i] > 0);
        CHECK(answer_size(d, CL_DEVICE_PLATFORM) == sizeof(cl_platform_id));
        CHECK(answer_size(d, CL_DEVICE_PARENT_DEVICE) == sizeof(cl_device_id));
        CHECK(answer_size(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE) == sizeof(cl_ulong));
        CHECK(answer_size(d, CL_DEVICE_PARTITION_PROPERTIES) %
                      sizeof(cl_device_partition_property) ==
              0);
        OK(clGetDeviceInfo(d, CL_DEVICE_ADDRESS_BITS, sizeof(bits), &bits, NULL));
        CHECK(bits == 32 || bits == 64);
}

/* The largest object is one that the program could have in its own memory, and no larger one is made. */
static void objects(struct api *a)
{
        cl_ulong most = 0, one;
        for (cl_uint i = 0; i < a->count; i++) {
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(one), &one,
                                   NULL));
                CHECK(one > 0 && one <= PTRDIFF_MAX);
                most = one > most ? one : most;
        }
        if (sizeof(size_t) == 8)
                return; /* some implementations take more */
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE,
                     clCreateBuffer(a->context, CL_MEM_READ_WRITE, (size_t)most + 1, NULL, &error));
        EXPECT_ERROR(CL_INVALID_BUFFER_SIZE,
                     clCreateBuffer(a->context, CL_MEM_READ_WRITE, SIZE_MAX, NULL, &error));
        CHECK(!clSVMAlloc(a->context, CL_MEM_READ_WRITE, (size_t)most + 1, 0));

        /* 16384 by 16384 by 16 bytes are 4 GiB, which is 0 in 32 bits. */
        const cl_image_format format = { CL_RGBA, CL_FLOAT };
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D };
        cl_bool images = CL_FALSE;
        OK(clGetDeviceInfo(a->devices[0], CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, NULL));
        if (!images || size_of(a->devices[0], CL_DEVICE_IMAGE2D_MAX_WIDTH) < 16384)
                return;
        desc.image_width = desc.image_height = 16384;
        cl_int err;
        cl_mem image = clCreateImage(a->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
        CHECK(!image);
        CHECK(err == CL_INVALID_IMAGE_SIZE || err == CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

static void kernel_answers(struct api *a)
{
        cl_program p = api_build(a,
                                 "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
                                 "void f(__global uint *b) { b[get_global_id(0)] = 1; }\n",
                                 "");
        cl_kernel k = api_kernel(p, "f");
        for (cl_uint i = 0; i < a->count; i++) {
                cl_device_id d = a->devices[i];
                size_t size = 0, one = 0, required[3] = { 0 }, globals = 0;
                OK(clGetKernelWorkGroupInfo(k, d, CL_KERNEL_WORK_GROUP_SIZE, sizeof(one), &one,
                                            &size));
                CHECK(size == sizeof(size_t) && one >= 8);
                OK(clGetKernelWorkGroupInfo(k, d, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                            sizeof(one), &one, &size));
                CHECK(size == sizeof(size_t) && one > 0);
                OK(clGetKernelWorkGroupInfo(k, d, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                            sizeof(required), required, &size));
                CHECK(size == 3 * sizeof(size_t));
                CHECK(required[0] == 4 && required[1] == 2 && required[2] == 1);
                OK(clGetKernelWorkGroupInfo(k, d, CL_KERNEL_PRIVATE_MEM_SIZE, 0, NULL, &size));
                CHECK(size == sizeof(cl_ulong));
                OK(clGetProgramBuildInfo(p, d, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                                         sizeof(globals), &globals, &size));
                CHECK(size == sizeof(size_t) && globals == 0);
        }
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(p));
}

int main(void)
{
        struct api a = api_open(0);
        for (cl_uint i = 0; i < a.count; i++)
                device_answers(a.devices[i]);
        objects(&a);
        kernel_answers(&a);
        api_close(&a);
        printf("word_size: %zu bytes\n", sizeof(size_t));
        return 0;
}
