#include "cli/compute.h"

#include <CL/cl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/run.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process/child.h"
#include "os/process/environment.h"
#include "os/process/library.h"
#include "os/process/library_name.h"

enum {
        ITEMS = 4096,
        LIMIT_S = 120, /* to compile and run the kernel on all devices of a server */
        DEVICES_MAX = 64,
};

static const char kernel_source[] = "kernel void doctor(global uint *out, uint seed)\n"
                                    "{\n"
                                    "        uint i = get_global_id(0);\n"
                                    "        out[i] = (i ^ seed) * 2654435761u + (i >> 3);\n"
                                    "}\n";

/* The functions of OpenCL that the check calls, as the library exports them. */
#define CALLS(X)                     \
        X(clGetPlatformIDs)          \
        X(clGetDeviceIDs)            \
        X(clGetDeviceInfo)           \
        X(clCreateContext)           \
        X(clCreateCommandQueue)      \
        X(clCreateProgramWithSource) \
        X(clBuildProgram)            \
        X(clCreateKernel)            \
        X(clCreateBuffer)            \
        X(clSetKernelArg)            \
        X(clEnqueueNDRangeKernel)    \
        X(clEnqueueReadBuffer)       \
        X(clReleaseMemObject)        \
        X(clReleaseKernel)           \
        X(clReleaseProgram)          \
        X(clReleaseCommandQueue)     \
        X(clReleaseContext)

struct opencl {
#define X(name) __typeof__(name) *name;
        CALLS(X)
#undef X
};

static bool load(const char *path, struct opencl *ret)
{
        struct library *library = library_load(path, 0);
        if (!library)
                return false;
#define X(name)                                                        \
        *(void **)(void *)&ret->name = library_symbol(library, #name); \
        if (!ret->name)                                                \
                return false;
        CALLS(X)
#undef X
        return true;
}

/* Run the kernel on a device and check the result. Returns NULL, or the call that failed. The process
 * ends soon, so failures leave objects behind. */
static const char *compute(const struct opencl *cl, cl_device_id device, cl_int *ret_error)
{
        static uint32_t out[ITEMS];
        const char *source = kernel_source;
        const size_t items = ITEMS;
        const uint32_t seed = (uint32_t)clock_now_ns();
        cl_int *e = ret_error;
        cl_context context = cl->clCreateContext(NULL, 1, &device, NULL, NULL, e);
        if (!context)
                return "clCreateContext";
        cl_command_queue queue = cl->clCreateCommandQueue(context, device, 0, e);
        if (!queue)
                return "clCreateCommandQueue";
        cl_mem buffer = cl->clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(out), NULL, e);
        if (!buffer)
                return "clCreateBuffer";
        cl_program program = cl->clCreateProgramWithSource(context, 1, &source, NULL, e);
        if (!program)
                return "clCreateProgramWithSource";
        if ((*e = cl->clBuildProgram(program, 1, &device, "", NULL, NULL)))
                return "clBuildProgram";
        cl_kernel kernel = cl->clCreateKernel(program, "doctor", e);
        if (!kernel)
                return "clCreateKernel";
        if ((*e = cl->clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer)) ||
            (*e = cl->clSetKernelArg(kernel, 1, sizeof(seed), &seed)))
                return "clSetKernelArg";
        if ((*e = cl->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL)))
                return "clEnqueueNDRangeKernel";
        if ((*e = cl->clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(out), out, 0, NULL,
                                          NULL)))
                return "clEnqueueReadBuffer";
        for (uint32_t i = 0; i < ITEMS; i++)
                if (out[i] != (i ^ seed) * 2654435761u + (i >> 3))
                        return "a wrong result";
        cl->clReleaseKernel(kernel);
        cl->clReleaseProgram(program);
        cl->clReleaseMemObject(buffer);
        cl->clReleaseCommandQueue(queue);
        cl->clReleaseContext(context);
        return NULL;
}

/* Find the devices, custom ones last, which CL_DEVICE_TYPE_ALL leaves out. Returns their number. */
static cl_uint find_devices(const struct opencl *cl, cl_device_id ret[DEVICES_MAX])
{
        static const cl_device_type types[] = { CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CUSTOM };
        cl_platform_id platform;
        cl_uint count = 0, found;
        if (cl->clGetPlatformIDs(1, &platform, NULL))
                return 0;
        for (size_t i = 0; i < array_size(types) && count < DEVICES_MAX; i++) {
                if (cl->clGetDeviceIDs(platform, types[i], DEVICES_MAX - count, ret + count,
                                       &found))
                        continue;
                count = found < DEVICES_MAX - count ? count + found : DEVICES_MAX;
        }
        return count;
}

/* Compute on all devices, in a process of its own, as a program does. Returns the exit status: enum
 * compute; `to` gets a line. */
static int compute_all(const char *library, int to)
{
        struct opencl cl;
        cl_device_id devices[DEVICES_MAX];
        cl_uint done = 0;
        if (!load(library, &cl)) {
                dprintf(to, "%s can't be loaded", library);
                return COMPUTE_WRONG;
        }
        const cl_uint count = find_devices(&cl, devices);
        if (!count) {
                dprintf(to, "%s shows no device of this server", library);
                return COMPUTE_WRONG;
        }
        for (cl_uint i = 0; i < count; i++) {
                cl_bool compiles = CL_FALSE;
                cl_int error = 0;
                if (cl.clGetDeviceInfo(devices[i], CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiles),
                                       &compiles, NULL) ||
                    !compiles)
                        continue;
                const char *failed = compute(&cl, devices[i], &error);
                if (failed) {
                        dprintf(to, "device %u: %s (%d)", i, failed, error);
                        return COMPUTE_WRONG;
                }
                done++;
        }
        dprintf(to, "%u of %u %s computed it right%s", done, count,
                count == 1 ? "device" : "devices",
                done < count ? "; the others compile no OpenCL C" : "");
        return done ? COMPUTE_RIGHT : COMPUTE_NOT;
}

/* Hide all accelerators of this host. PoCL's list ends at the first variable that is unset. */
static int hide_accelerators(void)
{
        char name[48];
        for (unsigned i = 0;; i++) {
                snprintf(name, sizeof(name), "POCL_ALMAIF%u_PARAMETERS", i);
                if (!getenv(name))
                        break;
                environment_unset(name);
        }
        return environment_set("SPANCL_ALMAIF", "");
}

/* Set up the environment so that a program sees this server's devices alone. */
static int choose_server(const struct server_spec *spec)
{
        char server[COMPUTE_TEXT_MAX];
        snprintf(server, sizeof(server), "%s%s%s", spec->name, spec->devices ? "/" : "",
                 spec->devices ? spec->devices : "");
        if (!spec->accelerators && hide_accelerators())
                return SP_E_NOMEM;
        return environment_set("SPANCL_SERVERS", server) ||
                               environment_set("SPANCL_DISCOVERY", "none") ||
                               environment_set("SPANCL_ON_LOSS", "fail")
                       ? SP_E_NOMEM
                       : 0;
}

struct job {
        const char *library;
        const struct server_spec *spec;
};

/* The process that computes. */
static int kernel_process(void *user, int to)
{
        const struct job *job = user;
        const char *library = job->library;
        char beside[PATH_MAX];
        if (!*library && !run_library(beside)) {
                dprintf(to, LIBRARY_CLIENT " is neither registered nor beside this program");
                return COMPUTE_WRONG;
        }
        if (choose_server(job->spec) < 0)
                return COMPUTE_WRONG;
        return compute_all(*library ? library : beside, to);
}

int compute_apart(const char *library, const struct server_spec *spec, char ret[COMPUTE_TEXT_MAX])
{
        struct job job = { library, spec };
        struct child child;
        size_t n = 0;
        int64_t got;
        int number = 0;
        ret[0] = 0;
        if (child_run(kernel_process, &job, LIMIT_S, &child) < 0) {
                snprintf(ret, COMPUTE_TEXT_MAX, "this process can't be copied: %s",
                         strerror(errno));
                return COMPUTE_WRONG;
        }
        while (n + 1 < COMPUTE_TEXT_MAX &&
               (got = file_read(child.output, ret + n, COMPUTE_TEXT_MAX - n - 1)) > 0)
                n += (size_t)got;
        ret[n] = 0;
        enum child_end end = child_wait(&child, &number);
        if (end == CHILD_TOO_LONG)
                snprintf(ret, COMPUTE_TEXT_MAX, "it took more than %d s", LIMIT_S);
        else if (end == CHILD_KILLED)
                snprintf(ret, COMPUTE_TEXT_MAX, "the process ended by signal %d", number);
        return end == CHILD_EXITED && number <= COMPUTE_WRONG ? number : COMPUTE_WRONG;
}
