/* sick NUMBER: a session that works on the device of that number. Prints "ready" when it has a
 * kernel. For each line that it reads, it launches the kernel and prints the result: "ok",
 * "wrong" or the call's error. */
#include "try.h"

#include <stdbool.h>

enum { DEVICES = 16, COUNT = 1024 };

static const char *source =
        "kernel void triple(global uint *n) { n[get_global_id(0)] = get_global_id(0) * 3; }";

static cl_int compute(cl_command_queue queue, cl_kernel kernel, cl_mem buffer, bool *ret_right)
{
        static cl_uint n[COUNT];
        size_t count = COUNT;
        cl_int r = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL);
        if (r == CL_SUCCESS)
                r = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(n), n, 0, NULL, NULL);
        *ret_right = true;
        for (cl_uint i = 0; i < COUNT; i++)
                *ret_right &= n[i] == i * 3;
        return r;
}

int main(int argc, char **argv)
{
        cl_platform_id platform;
        cl_device_id devices[DEVICES];
        cl_uint count = 0;
        unsigned long number = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
        cl_int err;
        char line[64];
        TRY(clGetPlatformIDs(1, &platform, NULL));
        TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, devices, &count));
        if (number >= count || number >= DEVICES) {
                fprintf(stderr, "%u devices\n", count);
                return 1;
        }
        cl_context context = clCreateContext(NULL, 1, &devices[number], NULL, NULL, &err);
        TRY(err);
        cl_command_queue queue =
                clCreateCommandQueueWithProperties(context, devices[number], NULL, &err);
        TRY(err);
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        TRY(err);
        TRY(clBuildProgram(program, 1, &devices[number], "", NULL, NULL));
        cl_kernel kernel = clCreateKernel(program, "triple", &err);
        TRY(err);
        cl_mem buffer =
                clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof(cl_uint), NULL, &err);
        TRY(err);
        TRY(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        printf("ready\n");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                bool right;
                err = compute(queue, kernel, buffer, &right);
                if (err == CL_SUCCESS)
                        printf("%s\n", right ? "ok" : "wrong");
                else
                        printf("error %d\n", err);
                fflush(stdout);
        }
        TRY(clReleaseMemObject(buffer));
        TRY(clReleaseKernel(kernel));
        TRY(clReleaseProgram(program));
        TRY(clReleaseCommandQueue(queue));
        TRY(clReleaseContext(context));
        return 0;
}
