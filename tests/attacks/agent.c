/* agent attack SOURCES   a session that attacks: builds agent.cl, prints "ready", and for each line "ID FILE" runs the
 *                        attack with this number, of which FILE has the parameters, and prints "ID OUTCOME ERRNO"
 * agent compute ROUNDS   a session that computes and checks its results, so many rounds (0: until standard input ends),
 *                        and prints the number of each
 * agent headers NAME     a session that compiles with a header of this name
 * agent assembler FILE   a session whose kernel has the assembler include a file; prints "breached" if it can
 * agent dump FILE        a session that builds a program, runs it and writes its binary
 * agent binary FILE      a session that runs such a binary; prints "built" when it is built, and "ran"
 * agent damage SEED      a session that gives damaged program binaries
 *
 * Each on the first CPU of the first platform. */
#include "../system/try.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { PARAMS_SIZE = 16384, ITEMS = 4096 };

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static cl_program build(const char *source, const char *options)
{
        static char log[65536];
        cl_int err;
        cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
        TRY(err);
        err = clBuildProgram(program, 1, &device, options, NULL, NULL);
        if (err) {
                (void)clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1,
                                            log, NULL);
                fprintf(stderr, "%s\n", log);
        }
        TRY(err);
        return program;
}

static cl_kernel kernel_of(cl_program program, const char *name)
{
        cl_int err;
        cl_kernel kernel = clCreateKernel(program, name, &err);
        TRY(err);
        return kernel;
}

static cl_mem buffer_of(size_t size)
{
        cl_int err;
        cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &err);
        TRY(err);
        return buffer;
}

/* --- Attacks by a kernel ------------------------------------------------------------------------ */

static int attack(const char *sources)
{
        char options[4096], line[4096], file[4000];
        static char params[PARAMS_SIZE];
        const size_t one = 1;
        cl_int id, result[2];
        snprintf(options, sizeof(options), "-cl-opt-disable -I %s/src -I %s/tests/attacks", sources,
                 sources);
        cl_kernel kernel = kernel_of(build("#include \"agent.cl\"\n", options), "attack");
        cl_mem in = buffer_of(sizeof(params)), out = buffer_of(sizeof(result));
        TRY(clSetKernelArg(kernel, 0, sizeof(in), &in));
        TRY(clSetKernelArg(kernel, 1, sizeof(out), &out));
        printf("ready\n");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                if (sscanf(line, "%d %3999s", &id, file) != 2)
                        return 2;
                FILE *f = fopen(file, "r");
                if (!f)
                        return 2;
                memset(params, 0, sizeof(params));
                (void)!fread(params, 1, sizeof(params) - 1, f);
                fclose(f);
                memset(result, 0, sizeof(result));
                TRY(clSetKernelArg(kernel, 2, sizeof(id), &id));
                TRY(clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, sizeof(params), params, 0, NULL,
                                         NULL));
                TRY(clEnqueueWriteBuffer(queue, out, CL_TRUE, 0, sizeof(result), result, 0, NULL,
                                         NULL));
                TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
                TRY(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(result), result, 0, NULL,
                                        NULL));
                printf("%d %d %d\n", id, result[0], result[1]);
                fflush(stdout);
        }
        return 0;
}

/* --- A victim ----------------------------------------------------------------------------------- */

static bool ended(void)
{
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        return poll(&p, 1, 0) > 0;
}

static int compute(unsigned rounds)
{
        static const char *source = "kernel void advance(global uint *p) {"
                                    " uint i = get_global_id(0); p[i] = p[i] * 1664525u + i; }";
        static uint32_t expected[ITEMS], computed[ITEMS];
        const size_t items = ITEMS;
        cl_kernel kernel = kernel_of(build(source, ""), "advance");
        cl_mem buffer = buffer_of(sizeof(expected));
        TRY(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        TRY(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(expected), expected, 0, NULL,
                                 NULL));
        for (unsigned round = 1; !rounds || round <= rounds; round++) {
                for (uint32_t i = 0; i < ITEMS; i++)
                        expected[i] = expected[i] * 1664525u + i;
                TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
                TRY(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(computed), computed, 0,
                                        NULL, NULL));
                if (memcmp(expected, computed, sizeof(expected)) != 0) {
                        fprintf(stderr, "round %u: wrong results\n", round);
                        return 1;
                }
                printf("%u\n", round);
                fflush(stdout);
                if (!rounds && ended())
                        break;
                usleep(20000);
        }
        return 0;
}

/* --- Attacks by a client ------------------------------------------------------------------------ */

static int headers(const char *name)
{
        const char *text = "#define FROM_HEADER 1\n";
        char source[4096];
        const char *lines = source;
        cl_int err;
        snprintf(source, sizeof(source),
                 "#include \"%s\"\nkernel void k(global int *p) { *p = FROM_HEADER; }", name);
        cl_program header = clCreateProgramWithSource(context, 1, &text, NULL, &err);
        TRY(err);
        cl_program program = clCreateProgramWithSource(context, 1, &lines, NULL, &err);
        TRY(err);
        /* It may be refused. */
        printf("compiled %d\n",
               clCompileProgram(program, 1, &device, "", 1, &header, &name, NULL, NULL));
        return 0;
}

static cl_mem run_once(cl_program program, const char *name)
{
        const size_t one = 1;
        cl_mem buffer = buffer_of(sizeof(cl_int) * ITEMS);
        cl_kernel kernel = kernel_of(program, name);
        TRY(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
        TRY(clFinish(queue));
        return buffer;
}

static int assembler(const char *file)
{
        char source[4096];
        cl_int first = 0;
        snprintf(source, sizeof(source),
                 "kernel void k(global int *p) { ulong at;\n"
                 "#if defined(__x86_64__)\n"
                 " __asm__ volatile(\"jmp 1f\\n9: .incbin \\\"%s\\\"\\n.byte 0\\n"
                 "1: lea 9b(%%%%rip), %%0\" : \"=r\"(at));\n"
                 "#else\n"
                 " __asm__ volatile(\"b 1f\\n9: .incbin \\\"%s\\\"\\n.byte 0\\n.balign 4\\n"
                 "1: adr %%0, 9b\" : \"=r\"(at));\n"
                 "#endif\n"
                 " *p = *(global const char *)at; }",
                 file, file);
        cl_mem out = run_once(build(source, ""), "k");
        TRY(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
        if (first)
                printf("breached\n");
        return 0;
}

static unsigned char *binary_of(cl_program program, size_t *ret_size)
{
        TRY(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(*ret_size), ret_size, NULL));
        unsigned char *binary = malloc(*ret_size);
        if (!binary)
                exit(1);
        TRY(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
        return binary;
}

static int dump(const char *file)
{
        char source[4096];
        size_t size;
        /* The name of the file makes it a program that no cache has. */
        snprintf(source, sizeof(source), "kernel void k(global int *p) { *p = 1; } /* %s */", file);
        cl_program program = build(source, "");
        (void)run_once(program, "k");
        unsigned char *data = binary_of(program, &size);
        FILE *f = fopen(file, "wb");
        bool ok = f && fwrite(data, 1, size, f) == size;
        return f && !fclose(f) && ok ? 0 : 1;
}

static int binary(const char *file)
{
        static unsigned char data[1 << 20];
        const unsigned char *given = data;
        cl_int err, status;
        FILE *f = fopen(file, "rb");
        size_t size = f ? fread(data, 1, sizeof(data), f) : 0;
        if (f)
                fclose(f);
        cl_program program =
                clCreateProgramWithBinary(context, 1, &device, &size, &given, &status, &err);
        if (!err)
                err = clBuildProgram(program, 1, &device, "", NULL, NULL);
        printf("%s\n", err ? "refused" : "built");
        fflush(stdout);
        if (err)
                return 0;
        (void)run_once(program, "k");
        printf("ran\n");
        return 0;
}

static int damage(unsigned seed)
{
        size_t size;
        unsigned char *good =
                binary_of(build("kernel void k(global int *p) { *p = 2; }", ""), &size);
        unsigned char *bad = malloc(size);
        for (int round = 0; bad && round < 50; round++) {
                const unsigned char *data = bad;
                cl_int err, status;
                memcpy(bad, good, size);
                for (int i = 0; i < 8; i++) {
                        seed = seed * 1664525 + 1013904223;
                        bad[seed % size] ^= (unsigned char)(1 << (seed >> 29));
                }
                cl_program program =
                        clCreateProgramWithBinary(context, 1, &device, &size, &data, &status, &err);
                if (!err && !clBuildProgram(program, 1, &device, "", NULL, NULL))
                        (void)clCreateKernel(program, "k", &err);
        }
        printf("survived\n");
        return 0;
}

int main(int argc, char **argv)
{
        const char *what = argc == 3 ? argv[1] : "";
        open_device(CL_DEVICE_TYPE_CPU, &device, &context, &queue);
        if (!strcmp(what, "attack"))
                return attack(argv[2]);
        if (!strcmp(what, "compute"))
                return compute((unsigned)atoi(argv[2]));
        if (!strcmp(what, "headers"))
                return headers(argv[2]);
        if (!strcmp(what, "assembler"))
                return assembler(argv[2]);
        if (!strcmp(what, "dump"))
                return dump(argv[2]);
        if (!strcmp(what, "binary"))
                return binary(argv[2]);
        if (!strcmp(what, "damage"))
                return damage((unsigned)atoi(argv[2]));
        fprintf(stderr,
                "usage: agent attack|compute|headers|assembler|dump|binary|damage ARGUMENT\n");
        return 2;
}
