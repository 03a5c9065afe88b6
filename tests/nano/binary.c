/* binary FILE: the native implementation's binary of a kernel, as a program for the nano client has it in flash. */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cl_int status)
{
        if (status == CL_SUCCESS)
                return;
        fprintf(stderr, "status %d\n", status);
        exit(status == -1001 ? 77 : 1);
}

int main(int argc, char **argv)
{
        const char *source = "__kernel void twice(__global int *a) { a[get_global_id(0)] *= 2; }";
        cl_platform_id platform;
        cl_device_id device;
        cl_int status;
        size_t size;
        check(clGetPlatformIDs(1, &platform, NULL));
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        check(status);
        cl_program p = clCreateProgramWithSource(context, 1, &source, NULL, &status);
        check(status);
        check(clBuildProgram(p, 1, &device, NULL, NULL, NULL));
        check(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
        unsigned char *binary = malloc(size);
        check(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
        FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
        if (!f || fwrite(binary, size, 1, f) != 1 || fclose(f))
                return 1;
        free(binary);
        clReleaseProgram(p);
        clReleaseContext(context);
        return 0;
}
