/* Firmware for QEMU's mps2-an385 that executes a number of commands on a SpanCL server and nothing else, so that
 * slow.py can count instructions. Arguments behind those of firmware.h: the kind of command, and the number of
 * commands. The server has the reference backend, with its built-in kernel spancl.inc.i32. */
#include <string.h>

#include "board.h"
#include "firmware.h"

enum { BATCH = 8, SIZE = 64 };

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem counter;
static uint8_t data[SIZE];

static void launch(uint32_t i)
{
        const size_t one = 1;
        const cl_uint by = i & 1 ? 0 : 2;
        firmware_must(clSetKernelArg(kernel, 1, sizeof(by), &by), "clSetKernelArg");
        firmware_must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                      "launch");
}

static void execute(uint32_t kind, uint32_t i, uint32_t count)
{
        switch (kind) {
        case 0: /* launches, of which BATCH are waited for at once */
                launch(i);
                if (i % BATCH == BATCH - 1 || i + 1 == count)
                        firmware_must(clFinish(queue), "clFinish");
                break;
        case 1: /* launches, each waited for */
                launch(i);
                firmware_must(clFinish(queue), "clFinish");
                break;
        case 2:
                firmware_must(
                        clEnqueueWriteBuffer(queue, counter, CL_TRUE, 0, SIZE, data, 0, NULL, NULL),
                        "write");
                break;
        default:
                firmware_must(
                        clEnqueueReadBuffer(queue, counter, CL_TRUE, 0, SIZE, data, 0, NULL, NULL),
                        "read");
        }
}

int main(void)
{
        const char *arguments = firmware_begin();
        const uint32_t kind = firmware_number(&arguments), count = firmware_number(&arguments);
        cl_platform_id platform;
        cl_device_id device;
        cl_int status;
        firmware_must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        firmware_must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, NULL), "devices");
        cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        firmware_must(status, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &status);
        firmware_must(status, "clCreateCommandQueue");
        cl_program program =
                clCreateProgramWithBuiltInKernels(context, 1, &device, "spancl.inc.i32", &status);
        firmware_must(status, "clCreateProgramWithBuiltInKernels");
        firmware_must(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), "clBuildProgram");
        kernel = clCreateKernel(program, "spancl.inc.i32", &status);
        firmware_must(status, "clCreateKernel");
        counter = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &status);
        firmware_must(status, "clCreateBuffer");
        firmware_must(clEnqueueWriteBuffer(queue, counter, CL_TRUE, 0, SIZE, data, 0, NULL, NULL),
                      "write");
        firmware_must(clSetKernelArg(kernel, 0, sizeof(counter), &counter), "clSetKernelArg");
        for (uint32_t i = 0; i < count; i++)
                execute(kind, i, count);
        firmware_must(clEnqueueReadBuffer(queue, counter, CL_TRUE, 0, SIZE, data, 0, NULL, NULL),
                      "read");
        cl_uint sum;
        memcpy(&sum, data, sizeof(sum));
        firmware_must(kind < 2 && sum != count / 2 * 2 + count % 2 * 2 ? -1 : 0, "the comparison");
        board_print("done\n");
        spancl_nano_stop();
        return 0;
}
