/* Devices of different native implementations, of one server and of several, in one context: buffers,
 * images, programs and events go from any to any. With an argument there have to be so many
 * implementations, else the status is 77. */

#include <CL/cl_ext.h>

#include "api.h"

enum { SKIP = 77, N = 4096, SIDE = 32 };

static const char text[] = "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }\n"
                           "kernel void copy(global const uint *from, global uint *to) {"
                           " size_t i = get_global_id(0); to[i] = from[i] + 1; }\n";

static void device_text(cl_device_id d, cl_device_info what, char value[256])
{
        value[0] = '\0';
        OK(clGetDeviceInfo(d, what, 256, value, NULL));
}

/* Number of native implementations, as far as their devices tell. */
static cl_uint implementations(const struct api *a)
{
        static char all[API_DEVICES_MAX][600];
        cl_uint count = 0;
        for (cl_uint i = 0; i < a->count; i++) {
                char version[256], driver[256], both[600];
                device_text(a->devices[i], CL_DEVICE_VERSION, version);
                device_text(a->devices[i], CL_DRIVER_VERSION, driver);
                snprintf(both, sizeof(both), "%s, %s", version, driver);
                cl_uint known = 0;
                while (known < count && strcmp(all[known], both) != 0)
                        known++;
                if (known < count)
                        continue;
                strcpy(all[count++], both);
                printf("%s\n", both);
        }
        return count;
}

static cl_int launch(const struct api *a, cl_uint device, cl_kernel k, cl_uint waits,
                     const cl_event *wait, cl_event *ret)
{
        size_t size = N;
        return clEnqueueNDRangeKernel(a->queues[device], k, 1, NULL, &size, NULL, waits, wait, ret);
}

static void check_sum(const struct api *a, cl_uint device, cl_mem m, cl_uint expected)
{
        static cl_uint out[N];
        memset(out, 0, sizeof(out));
        OK(clEnqueueReadBuffer(a->queues[device], m, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
        for (cl_uint i = 0; i < N; i++)
                CHECK(out[i] == i + expected);
}

static cl_mem numbers(const struct api *a)
{
        static cl_uint in[N];
        for (cl_uint i = 0; i < N; i++)
                in[i] = i;
        return api_buffer(a, CL_MEM_COPY_HOST_PTR, sizeof(in), in);
}

/* One buffer visits all devices, twice there and back, in a chain of events; nothing waits for it before
 * the end. It is held until the whole chain is there. */
static void chain(struct api *a, cl_kernel add)
{
        cl_int err;
        cl_uint sum = 0;
        cl_mem m = numbers(a);
        cl_event last = clCreateUserEvent(a->context, &err), start = last;
        OK(err);
        OK(clRetainEvent(start));
        OK(clSetKernelArg(add, 0, sizeof(m), &m));
        for (cl_uint i = 0; i < 4 * a->count; i++) {
                cl_uint device = (i / a->count) % 2 ? a->count - 1 - i % a->count : i % a->count;
                cl_uint n = i + 1;
                cl_event next;
                OK(clSetKernelArg(add, 1, sizeof(n), &n));
                OK(launch(a, device, add, 1, &last, &next));
                OK(clReleaseEvent(last));
                last = next;
                sum += n;
        }
        OK(clSetUserEventStatus(start, CL_COMPLETE));
        OK(clWaitForEvents(1, &last));
        CHECK(api_status(last) == CL_COMPLETE);
        for (cl_uint i = 0; i < a->count; i++)
                check_sum(a, i, m, sum);
        OK(clReleaseEvent(start));
        OK(clReleaseEvent(last));
        OK(clReleaseMemObject(m));
}

/* A failure goes along a chain over all devices; what does not depend on it works. */
static void failure(struct api *a, cl_kernel add)
{
        cl_int err;
        cl_uint n = 1;
        cl_mem m = numbers(a), other = numbers(a);
        cl_event events[API_DEVICES_MAX + 1];
        events[0] = clCreateUserEvent(a->context, &err);
        OK(err);
        OK(clSetKernelArg(add, 0, sizeof(m), &m));
        OK(clSetKernelArg(add, 1, sizeof(n), &n));
        for (cl_uint i = 0; i < a->count; i++)
                OK(launch(a, i, add, 1, &events[i], &events[i + 1]));
        OK(clSetUserEventStatus(events[0], -7));
        EXPECT(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, clWaitForEvents(1, &events[a->count]));
        for (cl_uint i = 1; i <= a->count; i++)
                CHECK(api_status(events[i]) < 0);
        OK(clSetKernelArg(add, 0, sizeof(other), &other));
        for (cl_uint i = 0; i < a->count; i++)
                OK(launch(a, i, add, 0, NULL, NULL));
        check_sum(a, 0, other, a->count);
        for (cl_uint i = 0; i <= a->count; i++)
                OK(clReleaseEvent(events[i]));
        OK(clReleaseMemObject(m));
        OK(clReleaseMemObject(other));
}

/* From each device to each other one, as an argument, as a copy and as a map. */
static void pairs(struct api *a, cl_kernel copy)
{
        for (cl_uint i = 0; i < a->count; i++) {
                for (cl_uint j = 0; j < a->count; j++) {
                        cl_int err;
                        cl_mem m = numbers(a), n = api_buffer(a, 0, N * 4, NULL);
                        OK(clSetKernelArg(copy, 0, sizeof(m), &m));
                        OK(clSetKernelArg(copy, 1, sizeof(n), &n));
                        OK(launch(a, i, copy, 0, NULL, NULL));
                        OK(clSetKernelArg(copy, 0, sizeof(n), &n));
                        OK(clSetKernelArg(copy, 1, sizeof(m), &m));
                        OK(clFinish(a->queues[i]));
                        OK(launch(a, j, copy, 0, NULL, NULL));
                        OK(clFinish(a->queues[j]));
                        OK(clEnqueueCopyBuffer(a->queues[i], m, n, 0, 0, N * 4, 0, NULL, NULL));
                        OK(clFinish(a->queues[i]));
                        cl_uint *p = clEnqueueMapBuffer(a->queues[j], n, CL_TRUE,
                                                        CL_MAP_READ | CL_MAP_WRITE, 0, N * 4, 0,
                                                        NULL, NULL, &err);
                        OK(err);
                        for (cl_uint k = 0; k < N; k++) {
                                CHECK(p[k] == k + 2);
                                p[k]++;
                        }
                        OK(clEnqueueUnmapMemObject(a->queues[j], n, p, 0, NULL, NULL));
                        OK(clFinish(a->queues[j]));
                        check_sum(a, i, n, 3);
                        OK(clReleaseMemObject(m));
                        OK(clReleaseMemObject(n));
                }
        }
}

/* Each device works on a part of its own of one buffer, at the same time. */
static void parts(struct api *a, cl_program program)
{
        enum { PART = 16384 };
        cl_int err;
        cl_mem m = api_buffer(a, 0, (size_t)PART * a->count, NULL);
        static const cl_uint zero;
        OK(clEnqueueFillBuffer(a->queues[0], m, &zero, 4, 0, (size_t)PART * a->count, 0, NULL,
                               NULL));
        OK(clFinish(a->queues[0]));
        cl_mem part[API_DEVICES_MAX];
        for (cl_uint i = 0; i < a->count; i++) {
                cl_buffer_region region = { (size_t)PART * i, PART };
                part[i] = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
                OK(err);
                cl_kernel add = api_kernel(program, "add");
                cl_uint n = i + 1;
                OK(clSetKernelArg(add, 0, sizeof(part[i]), &part[i]));
                OK(clSetKernelArg(add, 1, sizeof(n), &n));
                OK(launch(a, i, add, 0, NULL, NULL));
                OK(clReleaseKernel(add));
        }
        for (cl_uint i = 0; i < a->count; i++)
                OK(clFinish(a->queues[i]));
        cl_uint *out = api_alloc((size_t)PART * a->count);
        OK(clEnqueueReadBuffer(a->queues[a->count - 1], m, CL_TRUE, 0, (size_t)PART * a->count, out,
                               0, NULL, NULL));
        for (cl_uint i = 0; i < a->count * PART / 4; i++)
                CHECK(out[i] == i / (PART / 4) + 1);
        free(out);
        for (cl_uint i = 0; i < a->count; i++)
                OK(clReleaseMemObject(part[i]));
        OK(clReleaseMemObject(m));
}

static int has_images(cl_device_id d)
{
        cl_bool has = CL_FALSE;
        OK(clGetDeviceInfo(d, CL_DEVICE_IMAGE_SUPPORT, sizeof(has), &has, NULL));
        return has;
}

static cl_mem image(const struct api *a)
{
        cl_int err;
        cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
        cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                               .image_width = SIDE,
                               .image_height = SIDE };
        cl_mem m = clCreateImage(a->context, 0, &format, &desc, NULL, &err);
        OK(err);
        return m;
}

/* An image is copied from device to device. */
static void images(struct api *a)
{
        size_t origin[3] = { 0 }, region[3] = { SIDE, SIDE, 1 };
        static cl_uint in[SIDE * SIDE], out[SIDE * SIDE];
        api_pattern(in, sizeof(in), 9);
        cl_mem m = NULL;
        for (cl_uint i = 0; i < a->count; i++) {
                if (!has_images(a->devices[i]))
                        continue;
                cl_mem next = image(a);
                if (m) {
                        OK(clEnqueueCopyImage(a->queues[i], m, next, origin, origin, region, 0,
                                              NULL, NULL));
                        OK(clReleaseMemObject(m));
                } else {
                        OK(clEnqueueWriteImage(a->queues[i], next, CL_TRUE, origin, region, 0, 0,
                                               in, 0, NULL, NULL));
                }
                m = next;
                OK(clFinish(a->queues[i]));
                memset(out, 0, sizeof(out));
                OK(clEnqueueReadImage(a->queues[i], m, CL_TRUE, origin, region, 0, 0, out, 0, NULL,
                                      NULL));
                CHECK(!memcmp(in, out, sizeof(in)));
        }
        if (m)
                OK(clReleaseMemObject(m));
}

/* A program that is built, compiled and linked for all devices works on each. A build for a
 * subset works only there. */
static void programs(struct api *a)
{
        cl_int err;
        const char *parts[2] = { "uint more(uint n);\n"
                                 "kernel void add(global uint *p, uint n)"
                                 " { p[get_global_id(0)] += more(n); }\n",
                                 "uint more(uint n);\nuint more(uint n) { return n + 10; }\n" };
        cl_program objects[2];
        for (int i = 0; i < 2; i++) {
                objects[i] = clCreateProgramWithSource(a->context, 1, &parts[i], NULL, &err);
                OK(err);
                OK(clCompileProgram(objects[i], 0, NULL, "", 0, NULL, NULL, NULL, NULL));
        }
        cl_program linked = clLinkProgram(a->context, 0, NULL, "", 2, objects, NULL, NULL, &err);
        OK(err);
        cl_kernel add = api_kernel(linked, "add");
        cl_uint n = 1, sum = 0;
        cl_mem m = numbers(a);
        OK(clSetKernelArg(add, 0, sizeof(m), &m));
        OK(clSetKernelArg(add, 1, sizeof(n), &n));
        for (cl_uint i = 0; i < a->count; i++) {
                OK(launch(a, i, add, 0, NULL, NULL));
                OK(clFinish(a->queues[i]));
                sum += 11;
        }
        check_sum(a, 0, m, sum);
        OK(clReleaseKernel(add));
        OK(clReleaseProgram(linked));
        for (int i = 0; i < 2; i++)
                OK(clReleaseProgram(objects[i]));

        const char *source = text;
        for (cl_uint i = 0; i < a->count; i++) {
                cl_program p = clCreateProgramWithSource(a->context, 1, &source, NULL, &err);
                OK(err);
                OK(clBuildProgram(p, 1, &a->devices[i], "", NULL, NULL));
                add = api_kernel(p, "add");
                EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(add, 1, 8, &m));
                OK(clSetKernelArg(add, 0, sizeof(m), &m));
                OK(clSetKernelArg(add, 1, sizeof(n), &n));
                for (cl_uint j = 0; j < a->count; j++) {
                        if (j != i)
                                EXPECT(CL_INVALID_PROGRAM_EXECUTABLE,
                                       launch(a, j, add, 0, NULL, NULL));
                }
                OK(launch(a, i, add, 0, NULL, NULL));
                OK(clFinish(a->queues[i]));
                sum += n;
                check_sum(a, i, m, sum);
                OK(clReleaseKernel(add));
                OK(clReleaseProgram(p));
        }
        OK(clReleaseMemObject(m));
}

static cl_uint align_of(cl_device_id d)
{
        cl_uint bits = 0;
        OK(clGetDeviceInfo(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL));
        return bits / 8;
}

/* A sub-buffer that is aligned for one device only is no argument on the other. This holds for
 * launches, and for queries that ask for a local size. */
static void aligned(struct api *a, cl_kernel add)
{
        static clGetKernelSuggestedLocalWorkSizeKHR_fn suggest;
        void *found = clGetExtensionFunctionAddressForPlatform(
                a->platform, "clGetKernelSuggestedLocalWorkSizeKHR");
        CHECK(found);
        memcpy(&suggest, &found, sizeof(suggest));
        for (cl_uint i = 0; i < a->count * a->count; i++) {
                cl_uint fits = i / a->count, not = i % a->count, n = 1;
                cl_uint small = align_of(a->devices[fits]), large = align_of(a->devices[not ]);
                if (small % large == 0)
                        continue;
                cl_int err;
                const size_t size = N;
                size_t local;
                const cl_buffer_region region = { small, N * sizeof(cl_uint) };
                cl_mem all = api_buffer(a, 0, small + region.size, NULL);
                cl_mem part =
                        clCreateSubBuffer(all, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
                OK(err);
                OK(clSetKernelArg(add, 0, sizeof(part), &part));
                OK(clSetKernelArg(add, 1, sizeof(n), &n));
                EXPECT(CL_MISALIGNED_SUB_BUFFER_OFFSET, launch(a, not, add, 0, NULL, NULL));
                EXPECT(CL_MISALIGNED_SUB_BUFFER_OFFSET,
                       suggest(a->queues[not ], add, 1, NULL, &size, &local));
                OK(launch(a, fits, add, 0, NULL, NULL));
                OK(clFinish(a->queues[fits]));
                OK(clReleaseMemObject(part));
                OK(clReleaseMemObject(all));
        }
}

int main(int argc, char **argv)
{
        struct api a = api_open(0);
        cl_uint different = implementations(&a);
        if (argc > 1 && different < (cl_uint)atoi(argv[1])) {
                printf("skipped: %u native implementation\n", different);
                api_close(&a);
                return SKIP;
        }
        cl_program p = api_build(&a, text, "");
        cl_kernel add = api_kernel(p, "add"), copy = api_kernel(p, "copy");
        chain(&a, add);
        failure(&a, add);
        pairs(&a, copy);
        parts(&a, p);
        images(&a);
        programs(&a);
        aligned(&a, add);
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(copy));
        OK(clReleaseProgram(p));
        printf("spancl_mixed: %u devices of %u implementations\n", a.count, different);
        api_close(&a);
        return 0;
}
