/* spread SIZE [LOST]: a buffer of the first device goes to all others at once, and each makes a
 * result of it. Prints "under way" when all is enqueued. Server number LOST may be lost
 * meanwhile. The commands of all others succeed, and every byte of their results is right. */
#include "../api/api.h"

enum { DEVICES_MAX = 16 };

static const char source[] =
        "__kernel void other(__global const uint *from, __global uint *to, uint x) {\n"
        "        size_t i = get_global_id(0);\n"
        "        to[i] = from[i] ^ x;\n"
        "}\n";

int main(int argc, char **argv)
{
        CHECK(argc >= 2);
        size_t size = strtoull(argv[1], NULL, 0), items = size / 4;
        cl_uint lost = argc > 2 ? (cl_uint)atoi(argv[2]) : DEVICES_MAX;
        struct api a = api_open(0);
        CHECK(a.count > 2 && a.count <= DEVICES_MAX);
        cl_program program = api_build(&a, source, "");
        uint32_t *data = malloc(size), *back = malloc(size);
        CHECK(data && back);
        for (size_t i = 0; i < items; i++)
                data[i] = (uint32_t)(i * 2654435761u);
        cl_mem from = api_buffer(&a, CL_MEM_READ_WRITE, size, NULL);
        OK(clEnqueueWriteBuffer(a.queues[0], from, CL_TRUE, 0, size, data, 0, NULL, NULL));
        cl_mem to[DEVICES_MAX];
        cl_event done[DEVICES_MAX];
        for (cl_uint i = 1; i < a.count; i++) {
                cl_kernel k = api_kernel(program, "other");
                to[i] = api_buffer(&a, CL_MEM_READ_WRITE, size, NULL);
                OK(clSetKernelArg(k, 0, sizeof(from), &from));
                OK(clSetKernelArg(k, 1, sizeof(to[i]), &to[i]));
                OK(clSetKernelArg(k, 2, sizeof(i), &i));
                OK(clEnqueueNDRangeKernel(a.queues[i], k, 1, NULL, &items, NULL, 0, NULL,
                                          &done[i]));
                OK(clFlush(a.queues[i]));
                OK(clReleaseKernel(k));
        }
        printf("under way\n");
        fflush(stdout);
        for (cl_uint i = 1; i < a.count; i++) {
                if (i == lost)
                        continue;
                OK(clWaitForEvents(1, &done[i]));
                OK(clEnqueueReadBuffer(a.queues[i], to[i], CL_TRUE, 0, size, back, 0, NULL, NULL));
                for (size_t k = 0; k < items; k++)
                        CHECK(back[k] == (data[k] ^ i));
        }
        if (lost < a.count)
                CHECK(clWaitForEvents(1, &done[lost]) != CL_SUCCESS);
        for (cl_uint i = 1; i < a.count; i++) {
                OK(clReleaseEvent(done[i]));
                OK(clReleaseMemObject(to[i]));
        }
        free(data);
        free(back);
        OK(clReleaseMemObject(from));
        OK(clReleaseProgram(program));
        if (lost >= a.count) /* else one of its queues can't be finished */
                api_close(&a);
        return 0;
}
