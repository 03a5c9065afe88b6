/* builder: builds programs that take their time, each different, until a call fails. Prints
 * "error N" as the benchmark program does. */
#include "try.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES = 4000, LINE_MAX_SIZE = 80 };

int main(void)
{
        static char source[LINES * LINE_MAX_SIZE + 200];
        const char *text = source;
        cl_platform_id platform;
        cl_device_id device;
        cl_int err;
        TRY(clGetPlatformIDs(1, &platform, NULL));
        TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
        TRY(err);
        for (unsigned round = 0;; round++) {
                char *at = source;
                at += sprintf(at, "kernel void k(global int *p) { int x = p[0] + %u + %u;\n",
                              (unsigned)getpid(), round);
                for (unsigned i = 0; i < LINES; i++)
                        at += sprintf(at, "x = x * %u + (x >> %u) ^ p[x & 7];\n", 2 * i + 3,
                                      i % 31);
                sprintf(at, "p[0] = x; }\n");
                cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
                TRY(err);
                printf("building\n");
                fflush(stdout);
                TRY(clBuildProgram(program, 1, &device, "", NULL, NULL));
                TRY(clReleaseProgram(program));
        }
}
