/* misbehave WHAT ...: a session whose kernel makes system calls. This works on a CPU device of
 * x86-64.
 *
 *   leave NAME N    starts N processes by this name, each a session of its own, half of them
 *                   without a parent; then stays
 *   chase NAME      leaves a process that is replaced by its child, again and again; then stays
 *   memory MIB      puts so much into a file in memory
 *   fill DIR N MIB  leaves N files of so many MiB in the folder
 *   link DIR TO     leaves a symbolic link in the folder
 *   unnamed DIR MIB puts so much into a file without a name in the folder
 *
 * With `keep` in front of WHAT the session stays, keeps all it holds, and reads its result again
 * and again.
 *
 * Prints what the last call returned. A kernel that can't be built for the device ends with
 * status 77. */
#include "try.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
        "long sys(long n, long a, long b, long c, long d)\n"
        "{\n"
        "        long r;\n"
        "        __asm__ volatile(\"mov %5, %%r10; syscall\" : \"=a\"(r)\n"
        "                : \"a\"(n), \"D\"(a), \"S\"(b), \"d\"(c), \"r\"(d)\n"
        "                : \"rcx\", \"r11\", \"r10\", \"memory\");\n"
        "        return r;\n"
        "}\n"
        "kernel void leave(global const char *text, global long *result, long n, long size)\n"
        "{\n"
        "        for (long i = 0; i < n; i++) {\n"
        "                *result = sys(57, 0, 0, 0, 0);\n" /* fork */
        "                if (*result) continue;\n"
        "                if (i % 2 && sys(57, 0, 0, 0, 0)) sys(231, 0, 0, 0, 0);\n" /* exit_group */
        "                sys(112, 0, 0, 0, 0);\n"                                   /* setsid */
        "                sys(157, 15, (long)text, 0, 0);\n" /* prctl(PR_SET_NAME) */
        "                for (;;) sys(34, 0, 0, 0, 0);\n"   /* pause */
        "        }\n"
        "}\n"
        "kernel void chase(global const char *text, global long *result, long n, long size)\n"
        "{\n"
        "        *result = sys(57, 0, 0, 0, 0);\n"
        "        if (*result) return;\n"
        "        sys(157, 15, (long)text, 0, 0);\n"
        "        for (;;) if (sys(57, 0, 0, 0, 0) > 0) sys(231, 0, 0, 0, 0);\n"
        "}\n"
        "kernel void memory(global const char *text, global long *result, long n, long size)\n"
        "{\n"
        "        long fd = sys(319, (long)text, 0, 0, 0);\n" /* memfd_create */
        "        *result = sys(285, fd, 0, 0, size);\n"      /* fallocate */
        "}\n"
        "kernel void fill(global char *text, global long *result, long n, long size)\n"
        "{\n"
        "        for (long i = 0; i < n; i++) {\n"
        "                long end = 0;\n"
        "                while (text[end + 1]) end++;\n"
        "                text[end] = 'a' + i;\n"
        "                long fd = sys(2, (long)text, 0x41, 0600, 0);\n" /* open */
        "                *result = fd < 0 ? fd : sys(285, fd, 0, 0, size);\n"
        "                sys(3, fd, 0, 0, 0);\n"
        "        }\n"
        "}\n"
        "kernel void unnamed(global char *text, global long *result, long n, long size)\n"
        "{\n"
        "        long fd = sys(2, (long)text, 0x410002, 0600, 0);\n" /* open(O_TMPFILE) */
        "        *result = fd < 0 ? fd : sys(285, fd, 0, 0, size);\n"
        "}\n"
        "kernel void link(global char *text, global long *result, long n, long size)\n"
        "{\n"
        "        *result = sys(88, (long)text, (long)(text + size), 0, 0);\n" /* symlink */
        "}\n";

enum { TEXT_MAX = 4096 };

static bool keeps;

static long run(const char *name, const char *text, cl_long n, cl_long size)
{
        cl_device_id device;
        cl_context context;
        cl_command_queue queue;
        cl_long result = 0;
        cl_int err;
        size_t one = 1;
        const char *lines = source;
        open_device(CL_DEVICE_TYPE_CPU, &device, &context, &queue);
        cl_program program = clCreateProgramWithSource(context, 1, &lines, NULL, &err);
        TRY(err);
        if (clBuildProgram(program, 1, &device, "", NULL, NULL)) {
                char log[TEXT_MAX] = "";
                clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log,
                                      NULL);
                fprintf(stderr, "%s\n", log);
                exit(77);
        }
        cl_kernel kernel = clCreateKernel(program, name, &err);
        TRY(err);
        cl_mem texts = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, TEXT_MAX,
                                      (void *)(uintptr_t)text, &err);
        TRY(err);
        cl_mem results = clCreateBuffer(context, 0, sizeof(result), NULL, &err);
        TRY(err);
        TRY(clSetKernelArg(kernel, 0, sizeof(cl_mem), &texts));
        TRY(clSetKernelArg(kernel, 1, sizeof(cl_mem), &results));
        TRY(clSetKernelArg(kernel, 2, sizeof(n), &n));
        TRY(clSetKernelArg(kernel, 3, sizeof(size), &size));
        TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
        TRY(clEnqueueReadBuffer(queue, results, CL_TRUE, 0, sizeof(result), &result, 0, NULL,
                                NULL));
        while (keeps) {
                printf("%ld\n", result);
                fflush(stdout);
                usleep(200000);
                TRY(clEnqueueReadBuffer(queue, results, CL_TRUE, 0, sizeof(result), &result, 0,
                                        NULL, NULL));
        }
        return result;
}

int main(int argc, char **argv)
{
        static char text[TEXT_MAX];
        keeps = argc > 1 && !strcmp(argv[1], "keep");
        argc -= keeps;
        argv += keeps;
        const char *what = argc > 2 ? argv[1] : "";
        long number = argc > 3 ? strtol(argv[3], NULL, 10) : 0, result;
        bool stays = !strcmp(what, "leave") || !strcmp(what, "chase");
        if (!strcmp(what, "leave") || !strcmp(what, "chase")) {
                snprintf(text, sizeof(text), "%s", argv[2]);
                result = run(what, text, number, 0);
        } else if (!strcmp(what, "memory")) {
                result = run(what, text, 0, strtol(argv[2], NULL, 10) << 20);
        } else if (!strcmp(what, "fill") && argc > 4) {
                snprintf(text, sizeof(text), "%s/junk-a", argv[2]);
                result = run(what, text, number, strtol(argv[4], NULL, 10) << 20);
        } else if (!strcmp(what, "unnamed") && argc > 3) {
                snprintf(text, sizeof(text), "%s", argv[2]);
                result = run(what, text, 0, number << 20);
        } else if (!strcmp(what, "link") && argc > 3) {
                size_t n = strlen(argv[3]) + 1;
                snprintf(text, sizeof(text), "%s", argv[3]);
                snprintf(text + n, sizeof(text) - n, "%s/link", argv[2]);
                result = run(what, text, 0, (cl_long)n);
        } else {
                fprintf(stderr,
                        "usage: misbehave [keep] leave|chase|memory|fill|unnamed|link ...\n");
                return 2;
        }
        printf("%ld\n", result);
        fflush(stdout);
        while (stays)
                pause();
        return 0;
}
