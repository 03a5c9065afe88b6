/* Firmware for QEMU's mps2-an385. It computes the edges of pictures, and a small network of 8-bit numbers, on a
 * SpanCL server, and compares every byte with what this processor computes. Arguments: the server's port, the
 * number of pictures, and a random number. The firmware prints each tenth picture's number, and the test then cuts
 * the connections. */
#include <string.h>

#include "board.h"
#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/transport.h"
#include "nano/edges.h"
#include "netif/ethernet.h"

enum { W = 80, H = 56, INPUTS = 64, OUTPUTS = 16 };

static uint64_t arena[SPANCL_NANO_ARENA / 8];
static uint8_t in[W * H], out[W * H];
static int8_t weights[INPUTS * OUTPUTS], scores[OUTPUTS];
static uint32_t seed;

/* A layer: each output is the clamped sum of weighted inputs. */
#define LAYER                                                                                         \
        "__kernel void layer(__global const uchar *in, __global const char *w, __global char *out)\n" \
        "{\n"                                                                                         \
        "        int sum = 0, o = get_global_id(0);\n"                                                \
        "        for (int i = 0; i < 64; i++)\n"                                                      \
        "                sum += in[i * 37] * w[o * 64 + i];\n"                                        \
        "        out[o] = (char)clamp(sum >> 8, -128, 127);\n"                                        \
        "}\n"

uint32_t firmware_random(void)
{
        seed = seed * 1664525 + 1013904223;
        return seed >> 8 ^ seed << 16;
}

static void must(cl_int status, const char *what)
{
        if (!status)
                return;
        board_print(what);
        board_print(" failed: ");
        board_print_number((uint32_t)-status);
        board_print(" ");
        board_print(spancl_nano_error());
        board_print("\n");
        board_exit(1);
}

static uint32_t number(const char **p)
{
        uint32_t n = 0;
        while (**p && (**p < '0' || **p > '9'))
                ++*p;
        for (; **p >= '0' && **p <= '9'; ++*p)
                n = n * 10 + (uint32_t)(**p - '0');
        return n;
}

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
        must(status, "clCreateBuffer");
        return m;
}

static void set_up(void)
{
        const char *source = EDGES_SOURCE LAYER;
        const cl_uint w = W, h = H;
        cl_platform_id platform;
        cl_device_id device;
        cl_int status;
        must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
        must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
        work.context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
        must(status, "clCreateContext");
        work.queue = clCreateCommandQueue(work.context, device, 0, &status);
        must(status, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(work.context, 1, &source, NULL, &status);
        must(status, "clCreateProgramWithSource");
        must(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
        work.edges = clCreateKernel(program, "edges", &status);
        must(status, "clCreateKernel");
        work.layer = clCreateKernel(program, "layer", &status);
        must(status, "clCreateKernel");
        work.in = buffer(sizeof(in));
        work.out = buffer(sizeof(out));
        work.weights = buffer(sizeof(weights));
        work.scores = buffer(sizeof(scores));
        must(clSetKernelArg(work.edges, 0, sizeof(cl_mem), &work.in), "clSetKernelArg");
        must(clSetKernelArg(work.edges, 1, sizeof(cl_mem), &work.out), "clSetKernelArg");
        must(clSetKernelArg(work.edges, 2, sizeof(w), &w), "clSetKernelArg");
        must(clSetKernelArg(work.edges, 3, sizeof(h), &h), "clSetKernelArg");
        must(clSetKernelArg(work.layer, 0, sizeof(cl_mem), &work.out), "clSetKernelArg");
        must(clSetKernelArg(work.layer, 1, sizeof(cl_mem), &work.weights), "clSetKernelArg");
        must(clSetKernelArg(work.layer, 2, sizeof(cl_mem), &work.scores), "clSetKernelArg");
        for (unsigned i = 0; i < sizeof(weights); i++)
                weights[i] = (int8_t)(i * 89 + (i >> 3));
        must(clEnqueueWriteBuffer(work.queue, work.weights, CL_TRUE, 0, sizeof(weights), weights, 0,
                                  NULL, NULL),
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
        must(clEnqueueWriteBuffer(work.queue, work.in, CL_FALSE, 0, sizeof(in), in, 0, NULL, NULL),
             "write");
        must(clEnqueueNDRangeKernel(work.queue, work.edges, 2, NULL, size, NULL, 0, NULL, NULL),
             "launch");
        must(clEnqueueNDRangeKernel(work.queue, work.layer, 1, NULL, &outputs, NULL, 0, NULL, NULL),
             "launch");
        must(clEnqueueReadBuffer(work.queue, work.out, CL_FALSE, 0, sizeof(out), out, 0, NULL,
                                 NULL),
             "read");
        must(clEnqueueReadBuffer(work.queue, work.scores, CL_TRUE, 0, sizeof(scores), scores, 0,
                                 NULL, NULL),
             "read");
        must(clFinish(work.queue), "clFinish");
        unsigned wrong = edges_wrong(in, out, W, H);
        for (unsigned o = 0; o < OUTPUTS; o++)
                wrong += scores[o] != score(o);
        must(wrong ? -(cl_int)wrong : 0, "the comparison");
}

static err_t network_begin(struct netif *n)
{
        board_network(n);
        return ERR_OK;
}

int main(void)
{
        static struct netif network;
        static struct lwip_transport connections = { .poll = board_poll, .sleep = board_sleep };
        static uint32_t random[8];
        char text[80];
        const char *p = text;
        ip4_addr_t own, mask, gateway;
        board_arguments(text, sizeof(text));
        const uint32_t port = number(&p), count = number(&p);
        seed = number(&p);
        for (unsigned i = 0; i < 8; i++)
                random[i] = firmware_random();
        IP4_ADDR(&own, 10, 0, 2, 15);
        IP4_ADDR(&mask, 255, 255, 255, 0);
        IP4_ADDR(&gateway, 10, 0, 2, 2);
        lwip_init();
        netif_add(&network, &own, &mask, &gateway, NULL, network_begin, ethernet_input);
        netif_set_default(&network);
        netif_set_up(&network);
        connections.host = gateway;
        connections.port = (uint16_t)port;
        const struct spancl_nano_transport t = lwip_transport(&connections);
        const struct spancl_nano_config config = { .transport = &t,
                                                   .arena = arena,
                                                   .arena_size = sizeof(arena),
                                                   .random = (const uint8_t *)random };
        must(spancl_nano_start(&config), "spancl_nano_start");
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
