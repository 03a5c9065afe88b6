/* The output of printf in kernels appears on the standard output of the program that launched
 * them.
 *
 *   servers: 2 */

#include "api.h"

#include <unistd.h>

static const char source[] =
        "__kernel void say(int device, __constant char *word) {\n"
        "        printf(\"device %d says %c%c %.2f\\n\", device, word[0], word[1], 1.5f);\n"
        "}\n";

int main(void)
{
        struct api a = api_open(0);
        cl_program program = api_build(&a, source, "");
        cl_kernel say = api_kernel(program, "say");
        char word[] = "hi";
        cl_mem m = api_buffer(&a, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(word), word);

        /* Standard output goes to a file for a while. */
        char path[] = "/tmp/spancl-printf-XXXXXX";
        int file = mkstemp(path);
        CHECK(file >= 0);
        unlink(path);
        fflush(stdout);
        int saved = dup(1);
        CHECK(saved >= 0 && dup2(file, 1) == 1);
        for (cl_uint i = 0; i < a.count; i++) {
                cl_int device = (cl_int)i;
                size_t one = 1;
                OK(clSetKernelArg(say, 0, sizeof(device), &device));
                OK(clSetKernelArg(say, 1, sizeof(m), &m));
                OK(clEnqueueNDRangeKernel(a.queues[i], say, 1, NULL, &one, &one, 0, NULL, NULL));
                /* clFinish: "all queued commands have completed"; printf's output is there then. */
                OK(clFinish(a.queues[i]));
        }
        fflush(stdout);
        CHECK(dup2(saved, 1) == 1);

        char text[4096] = "";
        CHECK(lseek(file, 0, SEEK_SET) == 0);
        CHECK(read(file, text, sizeof(text) - 1) > 0);
        char *at = text;
        for (cl_uint i = 0; i < a.count; i++) {
                char line[64];
                snprintf(line, sizeof(line), "device %u says hi 1.50\n", i);
                at = strstr(at, line);
                CHECK(at);
        }
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(say));
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
