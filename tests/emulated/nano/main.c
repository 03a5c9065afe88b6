/* Firmware for QEMU's mps2-an385. It computes the edges of pictures, and a small network of 8-bit numbers, on a SpanCL
 * server, and compares every byte with what this processor computes. Its argument is the number of pictures (firmware.h
 * has those before it). The firmware prints each tenth picture's number, and the test then cuts the connections. */
#include <string.h>

#include "board.h"
#include "firmware.h"
#include "nano/edges.h"

enum { W = 80, H = 56, INPUTS = 64, OUTPUTS = 16 };

static uint8_t in[W * H], out[W * H];
static int8_t weights[INPUTS * OUTPUTS], scores[OUTPUTS];

/* A layer: each output is the clamped sum of weighted inputs. */
#define LAYER                                                                                         \
        "__kernel void layer(__global const uchar *in, __global const char *w, __global char *out)\n" \
        "{\n"                                                                                         \
        "        int sum = 0, o = get_global_id(0);\n"                                                \
        "        for (int i = 0; i < 64; i++)\n"                                                      \
        "                sum += in[i * 37] * w[o * 64 + i];\n"                                        \
        "        out[o] = (char)clamp(sum >> 8, -128, 127);\n"                                        \
        "}\n"

static struct work {
        cl_context context;
        cl_command_queue queue;
        cl_mem in, out, weights, scores;
        cl_kernel edges, layer;
} work;

static cl_mem buffer(size_t size)
{
        cl_int status;
        cl_mem m = clCreateBuffer(work.context, CL_MEM_READ_WRITE, size, NULL, &status);
        firmware_must(status, "clCreateBuffer");
        return m;
}

static void set_up(void)
{
        const char *source = EDGES_SOURCE LAYER;
        const cl_uint w = W, h = H;
        cl_platform_id platform;
        cl_device_id device;
        cl_int status;
        firmware_must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        firmware_must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL),
                      "clGetDeviceIDs");
        work.context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        firmware_must(status, "clCreateContext");
        work.queue = clCreateCommandQueue(work.context, device, 0, &status);
        firmware_must(status, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(work.context, 1, &source, NULL, &status);
        firmware_must(status, "clCreateProgramWithSource");
        firmware_must(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
        work.edges = clCreateKernel(program, "edges", &status);
        firmware_must(status, "clCreateKernel");
        work.layer = clCreateKernel(program, "layer", &status);
        firmware_must(status, "clCreateKernel");
        work.in = buffer(sizeof(in));
        work.out = buffer(sizeof(out));
        work.weights = buffer(sizeof(weights));
        work.scores = buffer(sizeof(scores));
        firmware_must(clSetKernelArg(work.edges, 0, sizeof(cl_mem), &work.in), "clSetKernelArg");
        firmware_must(clSetKernelArg(work.edges, 1, sizeof(cl_mem), &work.out), "clSetKernelArg");
        firmware_must(clSetKernelArg(work.edges, 2, sizeof(w), &w), "clSetKernelArg");
        firmware_must(clSetKernelArg(work.edges, 3, sizeof(h), &h), "clSetKernelArg");
        firmware_must(clSetKernelArg(work.layer, 0, sizeof(cl_mem), &work.out), "clSetKernelArg");
        firmware_must(clSetKernelArg(work.layer, 1, sizeof(cl_mem), &work.weights),
                      "clSetKernelArg");
        firmware_must(clSetKernelArg(work.layer, 2, sizeof(cl_mem), &work.scores),
                      "clSetKernelArg");
        for (unsigned i = 0; i < sizeof(weights); i++)
                weights[i] = (int8_t)(i * 89 + (i >> 3));
        firmware_must(clEnqueueWriteBuffer(work.queue, work.weights, CL_TRUE, 0, sizeof(weights),
                                           weights, 0, NULL, NULL),
                      "write");
}

static int8_t score(unsigned o)
{
        int sum = 0;
        for (unsigned i = 0; i < INPUTS; i++)
                sum += out[i * 37] * weights[o * INPUTS + i];
        sum >>= 8;
        return (int8_t)(sum < -128 ? -128 : sum > 127 ? 127 : sum);
}

static void picture(uint32_t n)
{
        const size_t size[2] = { W, H }, outputs = OUTPUTS;
        edges_picture(in, W, H, n);
        firmware_must(clEnqueueWriteBuffer(work.queue, work.in, CL_FALSE, 0, sizeof(in), in, 0,
                                           NULL, NULL),
                      "write");
        firmware_must(
                clEnqueueNDRangeKernel(work.queue, work.edges, 2, NULL, size, NULL, 0, NULL, NULL),
                "launch");
        firmware_must(clEnqueueNDRangeKernel(work.queue, work.layer, 1, NULL, &outputs, NULL, 0,
                                             NULL, NULL),
                      "launch");
        firmware_must(clEnqueueReadBuffer(work.queue, work.out, CL_FALSE, 0, sizeof(out), out, 0,
                                          NULL, NULL),
                      "read");
        firmware_must(clEnqueueReadBuffer(work.queue, work.scores, CL_TRUE, 0, sizeof(scores),
                                          scores, 0, NULL, NULL),
                      "read");
        firmware_must(clFinish(work.queue), "clFinish");
        unsigned wrong = edges_wrong(in, out, W, H);
        for (unsigned o = 0; o < OUTPUTS; o++)
                wrong += scores[o] != score(o);
        firmware_must(wrong ? -(cl_int)wrong : 0, "the comparison");
}

int main(void)
{
        const char *arguments = firmware_begin();
        const uint32_t count = firmware_number(&arguments);
        set_up();
        for (uint32_t n = 0; n < count; n++) {
                picture(n);
                if (n % 10)
                        continue;
                board_print("picture ");
                board_print_number(n);
                board_print("\n");
        }
        board_print("resumed ");
        board_print_number(spancl_nano_resumed());
        board_print(" stack ");
        board_print_number((uint32_t)board_stack_used());
        board_print("\n");
        spancl_nano_stop();
        return 0;
}
