/* greedy WHAT: sessions that want more than is theirs.
 *
 *   endless   starts a kernel that never ends, and prints the fate of the commands behind it
 *   mark      fills the device's memory with a pattern, as far as some buffers, images and shared virtual memory go
 *   look      makes such buffers, images and memory, and prints how much of the pattern is in them */
#include "try.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 16, SIZE = 4 << 20, SIDE = 512 };

static const uint32_t pattern = 0x5ec4e7aa;

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static int endless(void)
{
        static const char *source =
                "kernel void k(global volatile int *p) { while (!p[0]) p[1]++; }";
        cl_int zeros[2] = { 0 }, err, status;
        cl_event events[2];
        size_t one = 1;
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        TRY(err);
        TRY(clBuildProgram(program, 1, &device, "", NULL, NULL));
        cl_kernel kernel = clCreateKernel(program, "k", &err);
        TRY(err);
        cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros, &err);
        TRY(err);
        TRY(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &events[0]));
        TRY(clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[1]));
        TRY(clFlush(queue));
        printf("started\n");
        fflush(stdout);
        printf("wait %d\n", clWaitForEvents(2, events));
        for (int i = 0; i < 2; i++) {
                TRY(clGetEventInfo(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                   &status, NULL));
                printf("event %d\n", status);
        }
        printf("later %d\n",
               clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, zeros, 0, NULL, NULL));
        return 0;
}

static cl_mem image_new(void)
{
        const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT32 };
        const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                     .image_width = SIDE,
                                     .image_height = SIDE };
        cl_int err;
        cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
        TRY(err);
        return image;
}

static cl_mem buffer_new(void)
{
        cl_int err;
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
        TRY(err);
        return buffer;
}

/* NULL: the device has none. */
static void *svm_new(void)
{
        cl_device_svm_capabilities svm = 0;
        TRY(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
        return svm ? clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE, 0) : NULL;
}

static int mark(void)
{
        static const size_t origin[3] = { 0 }, region[3] = { SIDE, SIDE, 1 };
        const uint32_t colour[4] = { pattern, pattern, pattern, pattern };
        for (int i = 0; i < BUFFERS; i++) {
                TRY(clEnqueueFillBuffer(queue, buffer_new(), &pattern, sizeof(pattern), 0, SIZE, 0,
                                        NULL, NULL));
                TRY(clEnqueueFillImage(queue, image_new(), colour, origin, region, 0, NULL, NULL));
                void *svm = svm_new();
                if (svm)
                        TRY(clEnqueueSVMMemFill(queue, svm, &pattern, sizeof(pattern), SIZE, 0,
                                                NULL, NULL));
        }
        TRY(clFinish(queue));
        return 0;
}

/* Its second half. */
static cl_mem part_of(cl_mem buffer)
{
        const cl_buffer_region half = { SIZE / 2, SIZE / 2 };
        cl_int err;
        cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                        &half, &err);
        TRY(err);
        return part;
}

static size_t count(const uint32_t *data)
{
        size_t found = 0;
        for (size_t i = 0; i < SIZE / sizeof(*data); i++)
                found += data[i] == pattern;
        return found;
}

static int look(void)
{
        static const size_t origin[3] = { 0 }, region[3] = { SIDE, SIDE, 1 };
        uint32_t *data = malloc(SIZE);
        size_t found = 0;
        for (int i = 0; data && i < BUFFERS; i++) {
                TRY(clEnqueueReadBuffer(queue, buffer_new(), CL_TRUE, 0, SIZE, data, 0, NULL,
                                        NULL));
                found += count(data);
                TRY(clEnqueueReadImage(queue, image_new(), CL_TRUE, origin, region, 0, 0, data, 0,
                                       NULL, NULL));
                found += count(data);
                TRY(clEnqueueReadBuffer(queue, part_of(buffer_new()), CL_TRUE, 0, SIZE / 2, data, 0,
                                        NULL, NULL));
                found += count(data);
                void *svm = svm_new();
                if (svm) {
                        TRY(clEnqueueSVMMemcpy(queue, CL_TRUE, data, svm, SIZE, 0, NULL, NULL));
                        found += count(data);
                }
        }
        printf("%zu\n", found);
        free(data);
        return 0;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(void);
        } modes[] = { { "endless", endless }, { "mark", mark }, { "look", look } };
        for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
                if (strcmp(argv[1], modes[i].name) != 0)
                        continue;
                open_device(CL_DEVICE_TYPE_ALL, &device, &context, &queue);
                return modes[i].run();
        }
        fprintf(stderr, "usage: greedy endless|mark|look\n");
        return 2;
}
