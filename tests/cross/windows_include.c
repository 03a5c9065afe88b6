/* Builds a kernel with -I and a folder that has a drive letter, a blank and letters that are not of ASCII. The kernel
 * prints. */
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#include <windows.h>

static const char *const source = "#include \"value.h\"\n"
                                  "kernel void store(global int *out)\n"
                                  "{\n"
                                  "        out[0] = VALUE;\n"
                                  "        printf(\"the kernel has %d\\n\", VALUE);\n"
                                  "}\n";

/* Write value.h into a new folder and return the folder's path in UTF-8. */
static int write_header(char *ret, int size)
{
        static const char text[] = "#define VALUE 4711\n";
        wchar_t folder[MAX_PATH], path[MAX_PATH + 16];
        DWORD n = GetTempPathW(MAX_PATH - 32, folder), done;
        if (!n)
                return 0;
        wcscat(folder, L"spancl \u00e4\u20ac");
        (void)CreateDirectoryW(folder, NULL);
        wcscpy(path, folder);
        wcscat(path, L"\\value.h");
        HANDLE h = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
        if (h == INVALID_HANDLE_VALUE)
                return 0;
        int ok = WriteFile(h, text, sizeof(text) - 1, &done, NULL);
        CloseHandle(h);
        return ok && WideCharToMultiByte(CP_UTF8, 0, folder, -1, ret, size, NULL, NULL);
}

#define CHECK(condition)                                    \
        do {                                                \
                if (!(condition)) {                         \
                        printf("failed: %s\n", #condition); \
                        return 1;                           \
                }                                           \
        } while (0)

int main(void)
{
        char folder[1024], options[1100];
        static char log[4096];
        cl_platform_id platform;
        cl_device_id device;
        cl_int e, out = 0;
        const size_t one = 1;
        CHECK(write_header(folder, sizeof(folder)));
        CHECK(folder[1] == ':' && strchr(folder, ' '));
        CHECK(!clGetPlatformIDs(1, &platform, NULL));
        CHECK(!clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
        CHECK(!e);
        cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
        CHECK(!e);
        cl_program program =
                clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &e);
        CHECK(!e);
        snprintf(options, sizeof(options), "-I \"%s\"", folder);
        e = clBuildProgram(program, 1, &device, options, NULL, NULL);
        (void)clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL);
        if (e)
                printf("%s\n", log);
        CHECK(!e);
        cl_kernel kernel = clCreateKernel(program, "store", &e);
        CHECK(!e);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(out), NULL, &e);
        CHECK(!e);
        CHECK(!clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        CHECK(!clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
        CHECK(!clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(out), &out, 0, NULL, NULL));
        CHECK(out == 4711);
        CHECK(!clReleaseMemObject(buffer) && !clReleaseKernel(kernel) &&
              !clReleaseProgram(program));
        CHECK(!clReleaseCommandQueue(queue) && !clReleaseContext(context));
        return 0;
}
