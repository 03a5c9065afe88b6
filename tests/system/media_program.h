/* The shared parts of the programs of system/media.py: files, and the first media device. */
#ifndef SPANCL_TESTS_MEDIA_PROGRAM_H
#define SPANCL_TESTS_MEDIA_PROGRAM_H

#include "../api/api.h"

typedef cl_int(CL_API_CALL *set_fn)(cl_mem buffer, cl_mem content_size_buffer);

/* Flags of kernels. */
enum { WORDS = 8 /* of a status */, RESET = 1 };

static struct api api;
static cl_uint media; /* the first media device */

/* The bytes of a file; the caller frees them. */
static inline void *read_file(const char *path, size_t *ret_size)
{
        FILE *f = fopen(path, "rb");
        CHECK(f && !fseek(f, 0, SEEK_END));
        *ret_size = (size_t)ftell(f);
        rewind(f);
        void *bytes = malloc(*ret_size + 1);
        CHECK(bytes && fread(bytes, 1, *ret_size, f) == *ret_size);
        fclose(f);
        return bytes;
}

/* Open all devices. Returns the program of the media device's built-in kernels, whose names go to `names`. Without
 * `kernel` among them the test is skipped. */
static inline cl_program open_media(const char *kernel, char *names, size_t size)
{
        cl_int err;
        api = api_open_type(CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CUSTOM,
                            CL_QUEUE_PROFILING_ENABLE);
        for (media = 0; media < api.count; media++) {
                cl_device_type type;
                OK(clGetDeviceInfo(api.devices[media], CL_DEVICE_TYPE, sizeof(type), &type, NULL));
                if (type == CL_DEVICE_TYPE_CUSTOM)
                        break;
        }
        CHECK(media < api.count);
        OK(clGetDeviceInfo(api.devices[media], CL_DEVICE_BUILT_IN_KERNELS, size, names, NULL));
        if (!strstr(names, kernel))
                exit(77);
        cl_program p =
                clCreateProgramWithBuiltInKernels(api.context, 1, &api.devices[media], names, &err);
        OK(err);
        return p;
}

static inline cl_mem buffer_of(size_t size, const void *bytes)
{
        return api_buffer(&api, CL_MEM_READ_WRITE | (bytes ? CL_MEM_COPY_HOST_PTR : 0), size,
                          (void *)(uintptr_t)bytes);
}

#endif
