/* The platform, its devices as mirrors, contexts; and both versions of the loader's interface.
 * servers: 2 */

#include "api.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static int names(const char *list, const char *name, size_t size)
{
        const char *at = list;
        while ((at = strstr(at, name)) &&
               ((at != list && at[-1] != ' ') || (at[size] && at[size] != ' ')))
                at += size;
        return at != NULL;
}

/* The platform's extensions are its own, and "each extension that is supported by all devices". */
static void extensions(struct api *a)
{
        static char ours[8192], theirs[API_DEVICES_MAX][8192];
        static cl_name_version list[256];
        size_t size, count = 0, common = 0;
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_EXTENSIONS, sizeof(ours), ours, NULL));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof(list), list,
                             &size));
        CHECK(names(ours, "cl_khr_icd", 10));
        CHECK(!strcmp(list[0].name, "cl_khr_icd") && list[0].version == CL_MAKE_VERSION(1, 0, 0));
        for (const char *p = ours; p; p = strchr(p + 1, ' '))
                count++;
        CHECK(size == count * sizeof(list[0]));
        for (size_t i = 0; i < count; i++)
                CHECK(names(ours, list[i].name, strlen(list[i].name)));
        for (cl_uint i = 0; i < a->count; i++)
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_EXTENSIONS, sizeof(theirs[i]),
                                   theirs[i], NULL));
        for (const char *p = strtok(theirs[0], " "); p; p = strtok(NULL, " ")) {
                cl_uint have = 1;
                while (have < a->count && names(theirs[have], p, strlen(p)))
                        have++;
                CHECK(names(ours, p, strlen(p)) == (have >= a->count));
                common++;
        }
        CHECK(common > 1);
}

static void platform(struct api *a)
{
        char text[256];
        size_t size;
        cl_uint count;
        EXPECT(CL_INVALID_VALUE, clGetPlatformInfo(a->platform, 0x7777, 0, NULL, &size));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_NAME, 0, NULL, &size));
        CHECK(size == 7);
        EXPECT(CL_INVALID_VALUE, clGetPlatformInfo(a->platform, CL_PLATFORM_NAME, 6, text, NULL));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_VENDOR, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "SpanCL"));
        CHECK(!setenv("SPANCL_PLATFORM_VENDOR", "Somebody", 1));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_VENDOR, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "Somebody"));
        CHECK(!unsetenv("SPANCL_PLATFORM_VENDOR"));
        CHECK(!setenv("SPANCL_PLATFORM_NAME", "Something", 1));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_NAME, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "Something"));
        CHECK(!unsetenv("SPANCL_PLATFORM_NAME"));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_NAME, 7, text, NULL));
        CHECK(!strcmp(text, "SpanCL"));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_VERSION, sizeof(text), text, NULL));
        CHECK(!strncmp(text, "OpenCL 3.0 SpanCL ", 18));
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_ICD_SUFFIX_KHR, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "SPANCL"));
        cl_version version;
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_NUMERIC_VERSION, sizeof(version), &version,
                             NULL));
        CHECK(version == CL_MAKE_VERSION(3, 0, 0));
        cl_ulong resolution = 0;
        OK(clGetPlatformInfo(a->platform, CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof(resolution),
                             &resolution, NULL));
        CHECK(resolution == 1);
        OK(clUnloadPlatformCompiler(a->platform));

        EXPECT(CL_INVALID_DEVICE_TYPE, clGetDeviceIDs(a->platform, 0, 0, NULL, &count));
        EXPECT(CL_INVALID_DEVICE_TYPE,
               clGetDeviceIDs(a->platform, (cl_device_type)1 << 40, 0, NULL, &count));
        EXPECT(CL_INVALID_DEVICE_TYPE, clGetDeviceIDs(a->platform, 1 << 5, 0, NULL, &count));
        EXPECT(CL_INVALID_VALUE,
               clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_ALL, 0, a->devices, NULL));
        EXPECT(CL_INVALID_VALUE, clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_ALL, 1, NULL, NULL));
        EXPECT(CL_DEVICE_NOT_FOUND,
               clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_CUSTOM, 0, NULL, &count));
        CHECK(count == 0);
        OK(clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_DEFAULT, 0, NULL, &count));
        CHECK(count == 1);
        for (int bit = 5; bit < 64; bit++) {
                OK(clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_DEFAULT | (cl_device_type)1 << bit, 0,
                                  NULL, &count));
                CHECK(count == 1);
        }
        cl_device_id first = NULL;
        OK(clGetDeviceIDs(a->platform, CL_DEVICE_TYPE_ALL, 1, &first, &count));
        CHECK(count == a->count && first == a->devices[0]);
}

static cl_ulong number(cl_device_id d, cl_device_info name)
{
        cl_ulong v = 0;
        OK(clGetDeviceInfo(d, name, sizeof(v), &v, NULL));
        return v;
}

static void devices(struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++) {
                cl_device_id d = a->devices[i], parent = d;
                cl_platform_id p = NULL;
                OK(clGetDeviceInfo(d, CL_DEVICE_PLATFORM, sizeof(p), &p, NULL));
                CHECK(p == a->platform);
                OK(clGetDeviceInfo(d, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL));
                CHECK(!parent);
                OK(clRetainDevice(d));
                CHECK(number(d, CL_DEVICE_REFERENCE_COUNT) == 1);
                OK(clReleaseDevice(d));
                CHECK(number(d, CL_DEVICE_AVAILABLE) == CL_TRUE);
                CHECK(number(d, CL_DEVICE_MAX_COMPUTE_UNITS) > 0);
                /* The masks. */
                CHECK(number(d, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_FALSE);
                CHECK(!(number(d, CL_DEVICE_SVM_CAPABILITIES) &
                        ~(cl_ulong)CL_DEVICE_SVM_COARSE_GRAIN_BUFFER));
                CHECK(number(d, CL_DEVICE_EXECUTION_CAPABILITIES) == CL_EXEC_KERNEL);
                char text[4096];
                OK(clGetDeviceInfo(d, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
                CHECK(strstr(text, "cl_khr_create_command_queue"));
                CHECK(strstr(text, "cl_khr_command_buffer "));
                CHECK(!strstr(text, "cl_khr_gl_sharing"));
                /* Both lists say the same. */
                cl_name_version list[64];
                size_t size = 0;
                if (clGetDeviceInfo(d, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list,
                                    &size) == CL_SUCCESS) {
                        for (size_t k = 0; k < size / sizeof(list[0]); k++)
                                CHECK(strstr(text, list[k].name));
                }
                EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, 0x7777, 0, NULL, &size));
                OK(clGetDeviceInfo(d, CL_DEVICE_NAME, 0, NULL, &size));
                EXPECT(CL_INVALID_VALUE, clGetDeviceInfo(d, CL_DEVICE_NAME, size - 1, text, NULL));
                OK(clGetDeviceInfo(d, CL_DEVICE_NAME, size, text, NULL));
                CHECK(strlen(text) == size - 1);
        }
}

/* Times of events lie between readings of the timers. */
static void timers(void)
{
        struct api a = api_open(CL_QUEUE_PROFILING_ENABLE);
        cl_ulong host, device, before, after, t[4];
        EXPECT(CL_INVALID_DEVICE, clGetHostTimer(NULL, &host));
        EXPECT(CL_INVALID_VALUE, clGetHostTimer(a.devices[0], NULL));
        EXPECT(CL_INVALID_DEVICE, clGetDeviceAndHostTimer(NULL, &device, &host));
        EXPECT(CL_INVALID_VALUE, clGetDeviceAndHostTimer(a.devices[0], NULL, &host));
        EXPECT(CL_INVALID_VALUE, clGetDeviceAndHostTimer(a.devices[0], &device, NULL));
        for (cl_uint i = 0; i < a.count; i++) {
                cl_event e;
                int zero = 0;
                cl_mem m = api_buffer(&a, 0, 4096, NULL);
                OK(clGetHostTimer(a.devices[i], &before));
                OK(clGetDeviceAndHostTimer(a.devices[i], &device, &host));
                CHECK(before <= host);
                OK(clEnqueueFillBuffer(a.queues[i], m, &zero, sizeof(zero), 0, 4096, 0, NULL, &e));
                OK(clFinish(a.queues[i]));
                for (cl_uint k = 0; k < 4; k++)
                        OK(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_QUEUED + k, sizeof(t[k]),
                                                   &t[k], NULL));
                CHECK(device <= t[0] && t[0] <= t[1] && t[1] <= t[2] && t[2] <= t[3]);
                OK(clGetDeviceAndHostTimer(a.devices[i], &device, &host));
                OK(clGetHostTimer(a.devices[i], &after));
                CHECK(t[3] <= device && host <= after);
                OK(clReleaseEvent(e));
                OK(clReleaseMemObject(m));
        }
        api_close(&a);
}

/* Digits in the order of the calls. */
static atomic_int order;

/* The native implementation judges one part that is the whole device: PoCL 3.1 makes it, others fail. */
static void whole_device(struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++) {
                cl_device_partition_property offered[16] = { 0 };
                cl_device_id out;
                cl_uint units, n = 77;
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_PARTITION_PROPERTIES, sizeof(offered),
                                   offered, NULL));
                OK(clGetDeviceInfo(a->devices[i], CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units),
                                   &units, NULL));
                cl_device_partition_property all[] = { CL_DEVICE_PARTITION_EQUALLY, units, 0 };
                bool can = false;
                for (int k = 0; k < 16; k++)
                        can |= offered[k] == CL_DEVICE_PARTITION_EQUALLY;
                cl_int r = clCreateSubDevices(a->devices[i], all, 1, &out, &n);
                if (r == CL_SUCCESS) {
                        CHECK(can && n == 1);
                        OK(clReleaseDevice(out));
                        n = 77;
                } else {
                        CHECK(r == (can ? CL_DEVICE_PARTITION_FAILED : CL_INVALID_VALUE));
                }
                all[1]++;
                EXPECT(can ? CL_INVALID_DEVICE_PARTITION_COUNT : CL_INVALID_VALUE,
                       clCreateSubDevices(a->devices[i], all, 1, &out, &n));
                CHECK(n == 77);
        }
}

static void CL_CALLBACK destroyed(cl_context context, void *user)
{
        atomic_store(&order, atomic_load(&order) * 10 + *(const char *)user - '0');
}

static void contexts(struct api *a)
{
        cl_int err;
        cl_context_properties p = (cl_context_properties)a->platform;
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateContext(NULL, 0, a->devices, NULL, NULL, &error));
        EXPECT_ERROR(CL_INVALID_VALUE, clCreateContext(NULL, 1, a->devices, NULL, &err, &error));
        cl_context_properties twice[] = { CL_CONTEXT_PLATFORM, p, CL_CONTEXT_PLATFORM, p, 0 };
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContext(twice, 1, a->devices, NULL, NULL, &error));
        cl_context_properties unknown[] = { 0x7777, 1, 0 };
        EXPECT_ERROR(CL_INVALID_PROPERTY,
                     clCreateContext(unknown, 1, a->devices, NULL, NULL, &error));

        /* Duplicates are ignored; properties come back as given. */
        cl_context_properties list[] = { CL_CONTEXT_PLATFORM, p, CL_CONTEXT_INTEROP_USER_SYNC,
                                         CL_TRUE, 0 };
        cl_device_id same[] = { a->devices[0], a->devices[0] };
        cl_context x = clCreateContext(list, 2, same, NULL, NULL, &err);
        OK(err);
        cl_uint n;
        OK(clGetContextInfo(x, CL_CONTEXT_NUM_DEVICES, sizeof(n), &n, NULL));
        CHECK(n == 1);
        cl_context_properties back[8];
        size_t size;
        OK(clGetContextInfo(x, CL_CONTEXT_PROPERTIES, sizeof(back), back, &size));
        CHECK(size == sizeof(list) && !memcmp(back, list, size));
        OK(clGetContextInfo(x, CL_CONTEXT_REFERENCE_COUNT, sizeof(n), &n, NULL));
        CHECK(n == 1);
        OK(clRetainContext(x));
        OK(clSetContextDestructorCallback(x, destroyed, (void *)"1"));
        OK(clSetContextDestructorCallback(x, destroyed, (void *)"2"));
        EXPECT(CL_INVALID_VALUE, clSetContextDestructorCallback(x, NULL, NULL));
        OK(clReleaseContext(x));
        CHECK(!atomic_load(&order));
        OK(clReleaseContext(x));
        for (int i = 0; i < 5000 && atomic_load(&order) < 10; i++)
                usleep(1000);
        CHECK(atomic_load(&order) == 21);

        x = clCreateContextFromType(list, CL_DEVICE_TYPE_ALL, NULL, NULL, &err);
        OK(err);
        OK(clGetContextInfo(x, CL_CONTEXT_NUM_DEVICES, sizeof(n), &n, NULL));
        CHECK(n == a->count);
        OK(clReleaseContext(x));
        EXPECT_ERROR(CL_DEVICE_NOT_FOUND,
                     clCreateContextFromType(list, CL_DEVICE_TYPE_CUSTOM, NULL, NULL, &error));
}

/* A call for a feature that no device supports fails with the error that comes first. */
static void unsupported(struct api *a)
{
        for (cl_uint i = 0; i < a->count; i++)
                if (number(a->devices[i], CL_DEVICE_MAX_PIPE_ARGS))
                        return;
        EXPECT_ERROR(CL_INVALID_OPERATION, clCreatePipe(a->context, 0, 4, 4, NULL, &error));
}

/* No tag of cl_khr_icd 2.0.0, which some loaders that know it handle wrongly (api/icd.c): all slots of
 * OpenCL 1.0 are functions. */
static void table(struct api *a)
{
        const struct _cl_icd_dispatch *t = *(const struct _cl_icd_dispatch **)a->platform;
        cl_uint n = 0;
        OK(t->clGetPlatformIDs(0, NULL, &n));
        CHECK(n == 1);
        OK(t->clUnloadCompiler());
}

int main(void)
{
        struct api a = api_open(0);
        platform(&a);
        extensions(&a);
        devices(&a);
        timers();
        whole_device(&a);
        contexts(&a);
        unsupported(&a);
        table(&a);
        api_close(&a);
        return 0;
}
