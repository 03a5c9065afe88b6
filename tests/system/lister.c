/* A program that lists custom devices, which the reference backend has, and uses one of them when it is told so. Each
 * line of its standard input is the number of a device: it makes a context for it, writes four bytes and reads them
 * back, and prints "ok", or the error of clCreateContext. First it prints the number of devices. It keeps its
 * contexts. */
#include "try.h"

int main(void)
{
        static cl_device_id devices[256];
        cl_platform_id platform;
        cl_uint count = 0;
        char line[32];
        TRY(clGetPlatformIDs(1, &platform, NULL));
        cl_int err = clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 256, devices, &count);
        if (err != CL_DEVICE_NOT_FOUND)
                TRY(err);
        printf("%u\n", count);
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                unsigned long i = strtoul(line, NULL, 10);
                cl_uint there = 77, back = 0;
                if (i >= count)
                        return 1;
                cl_context context = clCreateContext(NULL, 1, &devices[i], NULL, NULL, &err);
                if (err == CL_SUCCESS) {
                        cl_command_queue queue =
                                clCreateCommandQueueWithProperties(context, devices[i], NULL, &err);
                        TRY(err);
                        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(there), NULL,
                                                  &err);
                        TRY(err);
                        TRY(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, sizeof(there), &there, 0,
                                                 NULL, NULL));
                        TRY(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(back), &back, 0, NULL,
                                                NULL));
                        if (back != there)
                                return 1;
                        printf("ok\n");
                } else {
                        printf("%d\n", (int)err);
                }
                fflush(stdout);
        }
        return 0;
}
