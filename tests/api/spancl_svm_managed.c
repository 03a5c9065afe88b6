/* SPANCL_SVM=managed: the application reads and writes the memory of clSVMAlloc without maps, on the devices of several
 * servers. Maps still work. */

#include "api.h"

static const char source[] =
        "struct node { __global struct node *next; ulong value; };\n"
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void walk(__global struct node *n, ulong add) {\n"
        "        for (; n; n = n->next)\n"
        "                n->value += add;\n"
        "}\n";

/* A device's pointer has the device's width: that of a 32-bit program's is half of it. */
struct node {
        union {
                struct node *next;
                cl_ulong address;
        };
        cl_ulong value;
};

enum { N = 300000, NODES = 1000 };

static void *alloc(struct api *a, size_t size)
{
        void *p = clSVMAlloc(a->context, CL_MEM_READ_WRITE, size, 0);
        CHECK(p);
        return p;
}

static void run(cl_command_queue q, cl_kernel k, size_t count)
{
        OK(clEnqueueNDRangeKernel(q, k, 1, NULL, &count, NULL, 0, NULL, NULL));
}

/* The host and the devices write one after the other. */
static void in_turn(struct api *a, cl_program program)
{
        cl_kernel add = api_kernel(program, "add");
        cl_uint *p = alloc(a, N * sizeof(*p)), sum = 0;
        for (cl_uint i = 0; i < N; i++)
                p[i] = i;
        for (cl_uint round = 0; round < 2 * a->count; round++) {
                cl_command_queue q = api_queue(a, round);
                OK(clSetKernelArgSVMPointer(add, 0, p + 10));
                OK(clSetKernelArg(add, 1, sizeof(round), &round));
                sum += round;
                run(q, add, N - 20);
                OK(clFinish(q));
                for (cl_uint i = 10; i < N - 10; i += 4999)
                        CHECK(p[i] == i + sum + (i == 5009 ? 100 * round : 0));
                CHECK(p[9] == 9 && p[N - 10] == N - 10);
                p[5009] += 100;
        }
        /* A map gives the same bytes. */
        OK(clEnqueueSVMMap(a->queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, p, N * sizeof(*p), 0,
                           NULL, NULL));
        CHECK(p[20] == 20 + sum);
        p[20] = 7;
        OK(clEnqueueSVMUnmap(a->queues[0], p, 0, NULL, NULL));
        cl_uint one = 1;
        OK(clSetKernelArg(add, 1, sizeof(one), &one));
        run(a->queues[a->count - 1], add, 100);
        OK(clFinish(a->queues[a->count - 1]));
        CHECK(p[20] == 8);
        clSVMFree(a->context, p);
        OK(clReleaseKernel(add));
}

/* The host makes a list, whose addresses hold on each device. */
static void linked_list(struct api *a, cl_program program)
{
        cl_kernel walk = api_kernel(program, "walk");
        struct node *nodes = alloc(a, NODES * sizeof(*nodes));
        for (cl_ulong i = 0; i < NODES; i++) {
                nodes[i].address = i == NODES - 1 ? 0 : (cl_ulong)(uintptr_t)&nodes[i + 1];
                nodes[i].value = i;
        }
        cl_ulong sum = 0;
        for (cl_uint d = 0; d < a->count; d++) {
                cl_ulong more = d + 3;
                OK(clSetKernelArgSVMPointer(walk, 0, nodes));
                OK(clSetKernelArg(walk, 1, sizeof(more), &more));
                run(a->queues[d], walk, 1);
                OK(clFinish(a->queues[d]));
                sum += more;
                for (cl_ulong i = 0; i < NODES; i++)
                        CHECK(nodes[i].value == i + sum);
        }
        clSVMFree(a->context, nodes);
        OK(clReleaseKernel(walk));
}

int main(void)
{
        CHECK(!setenv("SPANCL_SVM", "managed", 1));
        struct api a = api_open(0);
        if (!api_has_svm(&a))
                return 77;
        cl_program program = api_build(&a, source, "");
        in_turn(&a, program);
        linked_list(&a, program);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
