/* burner: keeps the first device busy, with two kernels in flight, from its first line of input to the next one. Prints
 * "ready" when it can begin, "busy" when it has begun, and "idle" after each such time. */
#include "try.h"

#include <poll.h>

enum { ROUNDS = 1 << 22 };

static const char *source =
        "kernel void burn(global uint *n, uint rounds)"
        "{ uint x = n[0]; for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u; n[0] = x; }";

static int has_input(void)
{
        struct pollfd p = { .fd = 0, .events = POLLIN };
        return poll(&p, 1, 0) > 0;
}

int main(void)
{
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        cl_uint rounds = ROUNDS;
        size_t one = 1;
        char line[64];
        setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees all of it */
        TRY(clGetPlatformIDs(1, &platform, NULL));
        TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        TRY(err);
        cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
        TRY(err);
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        TRY(err);
        TRY(clBuildProgram(program, 1, &device, "", NULL, NULL));
        cl_kernel kernel = clCreateKernel(program, "burn", &err);
        TRY(err);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &err);
        TRY(err);
        TRY(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        TRY(clSetKernelArg(kernel, 1, sizeof(rounds), &rounds));
        printf("ready\n");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                cl_event last = NULL;
                for (int i = 0; i < 2 || !has_input(); i++) {
                        cl_event event;
                        TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL,
                                                   &event));
                        TRY(clFlush(queue));
                        if (last) {
                                TRY(clWaitForEvents(1, &last));
                                TRY(clReleaseEvent(last));
                        }
                        last = event;
                        if (i == 1) {
                                printf("busy\n");
                                fflush(stdout);
                        }
                }
                TRY(clFinish(queue));
                TRY(clReleaseEvent(last));
                if (!fgets(line, sizeof(line), stdin))
                        break;
                printf("idle\n");
                fflush(stdout);
        }
        TRY(clReleaseMemObject(buffer));
        TRY(clReleaseKernel(kernel));
        TRY(clReleaseProgram(program));
        TRY(clReleaseCommandQueue(queue));
        TRY(clReleaseContext(context));
        return 0;
}
