/* mover [ROUNDS [small|builtin]]: buffers of 1 byte to 64 MiB go from the first device to the last and
 * back, with ThreadSanitizer to 8 MiB. Others go the other way at the same time. After each journey
 * every byte is compared.
 * Prints "round" after each. `small`: up to 5 MiB. `builtin`: up to 1 MiB, on custom devices, with a
 * built-in kernel, which an emulated machine computes slowly. */
#include "../api/api.h"

enum { SIZES_MAX = 16 };

static const size_t sizes[] = { 1,      5,         4096,          16385,         65537,  131071,
                                131072, 300 << 10, (1 << 20) + 1, (2 << 20) + 7, 5 << 20 };
enum { LARGE_SIZES = 2 }; /* of these */
/* ThreadSanitizer watches each access to a byte. These are still many times what a link holds. */
#ifdef __SANITIZE_THREAD__
static const size_t huge[] = { (4 << 20) + 3, 8 << 20 };
#else
static const size_t huge[] = { (16 << 20) + 3, 64 << 20 };
#endif

static const char source[] =
        "__kernel void add(__global uchar *p, uchar x) { p[get_global_id(0)] += x; }\n";

static struct api a;
static cl_kernel kernel;
static cl_mem ones; /* of the built-in kernel, which adds two arrays */

static uint8_t expected(size_t i, unsigned seed)
{
        return (uint8_t)((i * 2654435761u + seed) >> 13);
}

static cl_mem fill(cl_command_queue q, size_t size, unsigned seed)
{
        uint8_t *data = malloc(size);
        CHECK(data);
        for (size_t i = 0; i < size; i++)
                data[i] = expected(i, seed);
        cl_mem m = api_buffer(&a, CL_MEM_READ_WRITE, size, NULL);
        OK(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, size, data, 0, NULL, NULL));
        free(data);
        return m;
}

/* A kernel there changes every byte: so that is where they are now. */
static void move(cl_command_queue to, cl_mem m, size_t size)
{
        cl_uchar one = 1;
        OK(clSetKernelArg(kernel, 0, sizeof(m), &m));
        if (ones) {
                OK(clSetKernelArg(kernel, 1, sizeof(ones), &ones));
                OK(clSetKernelArg(kernel, 2, sizeof(m), &m));
        } else {
                OK(clSetKernelArg(kernel, 1, sizeof(one), &one));
        }
        OK(clEnqueueNDRangeKernel(to, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
        OK(clFlush(to));
}

static void compare(cl_command_queue q, cl_mem m, size_t size, unsigned seed, unsigned added)
{
        uint8_t *data = calloc(1, size);
        CHECK(data);
        OK(clEnqueueReadBuffer(q, m, CL_TRUE, 0, size, data, 0, NULL, NULL));
        for (size_t i = 0; i < size; i++)
                CHECK(data[i] == (uint8_t)(expected(i, seed) + added));
        free(data);
        OK(clReleaseMemObject(m));
}

/* All of them at once. */
static void journey(const size_t *list, size_t count)
{
        cl_command_queue first = a.queues[0], last = a.queues[a.count - 1];
        cl_mem out[SIZES_MAX], home[SIZES_MAX];
        for (unsigned i = 0; i < count; i++) {
                out[i] = fill(first, list[i], i);
                home[i] = fill(last, list[i], 77 + i);
        }
        for (unsigned leg = 0; leg < 2; leg++)
                for (size_t i = 0; i < count; i++) {
                        move(leg ? first : last, out[i], list[i]);
                        move(leg ? last : first, home[i], list[i]);
                }
        OK(clFinish(first));
        OK(clFinish(last));
        for (unsigned i = 0; i < count; i++) {
                /* Where it was last, and where it has to be brought to. */
                compare(i % 2 ? first : last, out[i], list[i], i, 2);
                compare(i % 2 ? last : first, home[i], list[i], 77 + i, 2);
        }
}

static cl_program open_builtin(void)
{
        static const char name[] = "pocl.add.i8";
        const size_t size = sizes[sizeof(sizes) / sizeof(*sizes) - LARGE_SIZES - 1];
        const cl_uchar one = 1;
        cl_int err;
        a = api_open_type(CL_DEVICE_TYPE_CUSTOM, 0);
        cl_program p = clCreateProgramWithBuiltInKernels(a.context, a.count, a.devices, name, &err);
        OK(err);
        kernel = api_kernel(p, name);
        ones = api_buffer(&a, CL_MEM_READ_WRITE, size, NULL);
        OK(clEnqueueFillBuffer(a.queues[0], ones, &one, 1, 0, size, 0, NULL, NULL));
        OK(clFinish(a.queues[0]));
        return p;
}

static cl_program open_source(void)
{
        a = api_open(0);
        cl_program p = api_build(&a, source, "");
        kernel = api_kernel(p, "add");
        return p;
}

int main(int argc, char **argv)
{
        cl_program program =
                argc > 2 && !strcmp(argv[2], "builtin") ? open_builtin() : open_source();
        int rounds = argc > 1 ? atoi(argv[1]) : 1;
        int all = argc <= 2;
        size_t count = sizeof(sizes) / sizeof(*sizes) - (ones ? LARGE_SIZES : 0);
        for (int i = 0; i < rounds; i++) {
                journey(sizes, count);
                if (all)
                        journey(huge, sizeof(huge) / sizeof(*huge));
                printf("round\n");
                fflush(stdout);
        }
        if (ones)
                OK(clReleaseMemObject(ones));
        OK(clReleaseKernel(kernel));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
