/* OpenCL C on RISC-V accelerators, one of this process and one behind a server, beside CPUs. They
 * have to compute the native implementation's results. runner: with-riscv */

#include <math.h>
#include <unistd.h>

#include "api.h"

enum { N = 256, GROUP = 32, TEXT = 8192 };

static const char source[] =
        "typedef struct { int a; float4 b; char c; } thing;\n"
        "__constant int primes[4] = { 2, 3, 5, 7 };\n"
        "/* Tiles in local memory, barriers in a loop. */\n"
        "kernel void matmul(global const float *a, global const float *b, global float *c, int n) {\n"
        "        local float ta[8][8], tb[8][8];\n"
        "        int x = get_global_id(0), y = get_global_id(1);\n"
        "        int i = get_local_id(0), j = get_local_id(1);\n"
        "        float sum = 0;\n"
        "        for (int t = 0; t < n; t += 8) {\n"
        "                ta[j][i] = a[y * n + t + i];\n"
        "                tb[j][i] = b[(t + j) * n + x];\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "                for (int k = 0; k < 8; k++)\n"
        "                        sum += ta[j][k] * tb[k][i];\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        }\n"
        "        c[y * n + x] = sum;\n"
        "}\n"
        "/* Local memory from outside; a barrier in a condition that all take alike. */\n"
        "kernel void reduce(global const int *in, global int *out, local int *part) {\n"
        "        size_t l = get_local_id(0), n = get_local_size(0);\n"
        "        part[l] = in[get_global_id(0)];\n"
        "        if (n > 1)\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        for (size_t s = n / 2; s > 0; s /= 2) {\n"
        "                if (l < s)\n"
        "                        part[l] += part[l + s];\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        }\n"
        "        if (!l)\n"
        "                out[get_group_id(0)] = part[0];\n"
        "}\n"
        "kernel void scan(global const int *in, global int *out) {\n"
        "        local int two[2][256];\n"
        "        int l = get_local_id(0), n = get_local_size(0), from = 0;\n"
        "        two[0][l] = in[get_global_id(0)];\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        for (int d = 1; d < n; d *= 2, from = 1 - from) {\n"
        "                two[1 - from][l] = two[from][l] + (l >= d ? two[from][l - d] : 0);\n"
        "                barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        }\n"
        "        out[get_global_id(0)] = two[from][l];\n"
        "}\n"
        "kernel void histogram(global const uchar *in, volatile global int *out) {\n"
        "        local int bins[16];\n"
        "        int l = get_local_id(0);\n"
        "        if (l < 16)\n"
        "                bins[l] = 0;\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        atomic_inc(&bins[in[get_global_id(0)] >> 4]);\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        if (l < 16)\n"
        "                atomic_add(&out[l], bins[l]);\n"
        "}\n"
        "kernel void hash(global const uint *in, global ulong *out, ulong seed) {\n"
        "        size_t i = get_global_id(0);\n"
        "        ulong h = 14695981039346656037UL ^ seed;\n"
        "        for (int k = 0; k < 8; k++) {\n"
        "                h = (h ^ (in[i] >> k)) * 1099511628211UL;\n"
        "                h = rotate(h, (ulong)13) + (h >> 7) % 1000003UL - (h / 17);\n"
        "                h ^= popcount((uint)h) + clz((uint)(h >> 32)) + mul_hi(in[i], (uint)h);\n"
        "        }\n"
        "        out[i] = h;\n"
        "}\n"
        "kernel void nbody(global const float4 *p, global float4 *v, int n, float dt) {\n"
        "        int i = get_global_id(0);\n"
        "        float3 f = 0;\n"
        "        for (int j = 0; j < n; j++) {\n"
        "                float3 d = p[j].xyz - p[i].xyz;\n"
        "                float r = rsqrt(dot(d, d) + 0.01f);\n"
        "                f += d * (p[j].w * r * r * r);\n"
        "        }\n"
        "        v[i] = (float4)(f * dt, length(f));\n"
        "}\n"
        "kernel void functions(global const float *x, global float *out) {\n"
        "        size_t i = get_global_id(0);\n"
        "        float a = x[i], r = 0;\n"
        "        switch (i % 16) {\n"
        "        case 0: r = sin(a); break;\n"
        "        case 1: r = cos(a); break;\n"
        "        case 2: r = exp(a); break;\n"
        "        case 3: r = log(fabs(a)); break;\n"
        "        case 4: r = pow(fabs(a), 1.7f); break;\n"
        "        case 5: r = atan2(a, 2.5f); break;\n"
        "        case 6: r = sqrt(fabs(a)); break;\n"
        "        case 7: r = floor(a) + ceil(a) * 100 + rint(a) * 10000; break;\n"
        "        case 8: r = fmod(a, 1.25f); break;\n"
        "        case 9: r = tanh(a); break;\n"
        "        case 10: r = mix(a, 3.0f, 0.25f) + clamp(a, -1.0f, 1.0f); break;\n"
        "        case 11: r = fma(a, a, -a); break;\n"
        "        case 12: r = convert_int_rte(a) + convert_char_sat(a * 100); break;\n"
        "        case 13: { int e; r = frexp(a, &e); r += e; break; }\n"
        "        case 14: r = select(a, -a, a > 0) + (isnan(a) ? 1 : 0); break;\n"
        "        case 15: r = as_float(as_int(a) ^ 1) + a / 3; break;\n"
        "        }\n"
        "        out[i] = r;\n"
        "}\n"
        "kernel void values(thing t, char c, short3 s, ulong u, global long *out, __constant int *k) {\n"
        "        size_t i = get_global_id(0);\n"
        "        char8 v = (char8)(1, 2, 3, 4, 5, 6, 7, 8);\n"
        "        int4 w = convert_int4(v.hi) << 2;\n"
        "        out[i] = t.a + (int)t.b.z + t.c + c + s.z + (long)u + primes[i & 3] + k[1] + w.y + v[i & 7];\n"
        "}\n"
        "kernel void where_(global uint *out) {\n"
        "        size_t at = (get_global_id(1) - get_global_offset(1)) * get_global_size(0) +\n"
        "                    get_global_id(0) - get_global_offset(0);\n"
        "        out[at] = get_global_id(0) | get_global_id(1) << 8 | get_local_id(0) << 16 |\n"
        "                  get_group_id(1) << 20 | get_num_groups(0) << 24 | get_work_dim() << 28;\n"
        "}\n"
        "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void shaped(global int *out) {\n"
        "        out[get_global_id(1) * get_global_size(0) + get_global_id(0)] =\n"
        "                get_local_size(0) * 10 + get_local_size(1);\n"
        "}\n"
        "kernel void say(int n, float f, float4 v, ulong u) {\n"
        "        if (get_global_id(0) == 1)\n"
        "                printf(\"%d %5.2f %v4hlf %#x %s %c %lu|%-6d|%e %g\\n\", n, f, v, 255, \"text\", 'c', u, n, f, f);\n"
        "}\n"
        "kernel void shout(int n) {\n"
        "        for (int i = 0; i < n; i++)\n"
        "                printf(\"%0255d\\n\", i);\n"
        "}\n"
        "kernel void wild(global int *out) { *(volatile int *)(uintptr_t)8 = out[0]; }\n";

static const char endless[] =
        "kernel void endless(volatile global int *p) { while (p[0] == 0) ; }\n";

static const char source3[] =
        "kernel void group(global const int *in, global int *out) {\n"
        "        int x = in[get_global_id(0)];\n"
        "        int sum = work_group_reduce_add(x), most = work_group_reduce_max(x);\n"
        "        int before = work_group_scan_exclusive_add(x);\n"
        "        int up_to = work_group_scan_inclusive_min(x);\n"
        "        int third = work_group_broadcast(x, 2);\n"
        "        int any = work_group_any(x == most), all = work_group_all(x < most);\n"
        "        out[get_global_id(0)] = sum + 3 * most + 5 * before + 7 * up_to + 11 * third + 13 * any + 17 * all;\n"
        "}\n"
        "kernel void uneven(global int *out) {\n"
        "        local atomic_int n;\n"
        "        if (!get_local_id(0))\n"
        "                atomic_init(&n, 0);\n"
        "        work_group_barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        atomic_fetch_add_explicit(&n, 1, memory_order_relaxed, memory_scope_work_group);\n"
        "        work_group_barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        out[get_global_id(0)] = atomic_load_explicit(&n, memory_order_relaxed, memory_scope_work_group) * 1000 +\n"
        "                                get_local_size(0) * 10 + get_enqueued_local_size(0);\n"
        "}\n";

struct parts {
        struct api a; /* the RISC-V ones last */
        cl_uint cpus;
        cl_program program;
};

static struct parts parts_open(void)
{
        struct parts p = { 0 };
        cl_uint custom;
        cl_int err;
        const char *text = source;
        OK(clGetPlatformIDs(1, &p.a.platform, NULL));
        OK(clGetDeviceIDs(p.a.platform, CL_DEVICE_TYPE_CPU, 4, p.a.devices, &p.cpus));
        p.cpus = 1;
        OK(clGetDeviceIDs(p.a.platform, CL_DEVICE_TYPE_CUSTOM, 4, p.a.devices + p.cpus, &custom));
        CHECK(custom == 2);
        p.a.count = p.cpus + custom;
        p.a.context = clCreateContext(NULL, p.a.count, p.a.devices, NULL, NULL, &err);
        OK(err);
        for (cl_uint i = 0; i < p.a.count; i++) {
                p.a.queues[i] = clCreateCommandQueue(p.a.context, p.a.devices[i],
                                                     CL_QUEUE_PROFILING_ENABLE, &err);
                OK(err);
        }
        p.program = clCreateProgramWithSource(p.a.context, 1, &text, NULL, &err);
        OK(err);
        err = clBuildProgram(p.program, 0, NULL, "-cl-kernel-arg-info -D UNUSED=1", NULL, NULL);
        for (cl_uint i = 0; err && i < p.a.count; i++) {
                static char log[TEXT];
                clGetProgramBuildInfo(p.program, p.a.devices[i], CL_PROGRAM_BUILD_LOG, sizeof(log),
                                      log, NULL);
                fprintf(stderr, "%s\n", log);
        }
        OK(err);
        return p;
}

struct launch {
        const char *kernel;
        cl_uint dims;
        size_t offset[2], global[2], local[2]; /* local[0] 0: none */
};

/* `set` gives all arguments but `out`, which is number `out_index`. */
static void run(const struct parts *p, cl_program program, cl_uint device, const struct launch *l,
                void (*set)(const struct parts *, cl_kernel), cl_uint out_index, void *out,
                size_t size)
{
        cl_kernel k = api_kernel(program, l->kernel);
        static unsigned char zeros[N * 16];
        cl_mem m = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, size, zeros);
        if (set)
                set(p, k);
        OK(clSetKernelArg(k, out_index, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(p->a.queues[device], k, l->dims, l->offset, l->global,
                                  l->local[0] ? l->local : NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(p->a.queues[device], m, CL_TRUE, 0, size, out, 0, NULL, NULL));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

static cl_mem input;
static float scale;

/* The same on the CPU and on each accelerator. `ulps`: how far floats may differ; 0: bytes. */
static void compare(const struct parts *p, cl_program program, const struct launch *l,
                    void (*set)(const struct parts *, cl_kernel), cl_uint out_index, size_t size,
                    int ulps)
{
        static unsigned char want[N * 16], got[N * 16];
        run(p, program, 0, l, set, out_index, want, size);
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                memset(got, 0xee, sizeof(got));
                run(p, program, d, l, set, out_index, got, size);
                for (size_t i = 0; i < size / 4; i++) {
                        float a, b;
                        memcpy(&a, want + i * 4, 4);
                        memcpy(&b, got + i * 4, 4);
                        if (!memcmp(&a, &b, 4) ||
                            (ulps && fabsf(a - b) <= (float)ulps * 1.2e-7f * (fabsf(a) + scale)))
                                continue;
                        fprintf(stderr, "%s, device %u, word %zu: %g (%x), on the CPU %g (%x)\n",
                                l->kernel, d, i, (double)b, *(unsigned *)(void *)(got + i * 4),
                                (double)a, *(unsigned *)(void *)(want + i * 4));
                        exit(1);
                }
        }
}

static void set_input(const struct parts *p, cl_kernel k)
{
        OK(clSetKernelArg(k, 0, sizeof(input), &input));
}

static void set_matmul(const struct parts *p, cl_kernel k)
{
        cl_int n = 16;
        OK(clSetKernelArg(k, 0, sizeof(input), &input));
        OK(clSetKernelArg(k, 1, sizeof(input), &input));
        OK(clSetKernelArg(k, 3, sizeof(n), &n));
}

static void set_reduce(const struct parts *p, cl_kernel k)
{
        OK(clSetKernelArg(k, 0, sizeof(input), &input));
        OK(clSetKernelArg(k, 2, GROUP * sizeof(cl_int), NULL));
}

static void set_hash(const struct parts *p, cl_kernel k)
{
        cl_ulong seed = 0x123456789abcdefu;
        OK(clSetKernelArg(k, 0, sizeof(input), &input));
        OK(clSetKernelArg(k, 2, sizeof(seed), &seed));
}

static void set_nbody(const struct parts *p, cl_kernel k)
{
        cl_int n = 64;
        cl_float dt = 0.25f;
        OK(clSetKernelArg(k, 0, sizeof(input), &input));
        OK(clSetKernelArg(k, 2, sizeof(n), &n));
        OK(clSetKernelArg(k, 3, sizeof(dt), &dt));
}

static void set_values(const struct parts *p, cl_kernel k)
{
        struct {
                cl_int a;
                cl_float4 b;
                cl_char c;
        } t = { 1000, { { 1, 2, 300, 4 } }, 7 };
        cl_char c = -3;
        cl_short3 s = { { 1, 2, 30000 } };
        cl_ulong u = 0x123456789;
        OK(clSetKernelArg(k, 0, sizeof(t), &t));
        OK(clSetKernelArg(k, 1, sizeof(c), &c));
        OK(clSetKernelArg(k, 2, sizeof(s), &s));
        OK(clSetKernelArg(k, 3, sizeof(u), &u));
        OK(clSetKernelArg(k, 5, sizeof(input), &input));
}

/* ---- claims --------------------------------------------------------------------------------- */

static void devices_have_a_compiler(const struct parts *p)
{
        for (cl_uint i = p->cpus; i < p->a.count; i++) {
                cl_bool compiler = CL_FALSE, linker = CL_FALSE;
                char text[200];
                cl_uint bits;
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler),
                                   &compiler, NULL));
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_LINKER_AVAILABLE, sizeof(linker),
                                   &linker, NULL));
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_NAME, sizeof(text), text, NULL));
                OK(clGetDeviceInfo(p->a.devices[i], CL_DEVICE_ADDRESS_BITS, sizeof(bits), &bits,
                                   NULL));
                CHECK(compiler && linker && bits == 32 && strstr(text, "riscv"));
        }
}

static void kernels_describe_themselves(const struct parts *p)
{
        cl_kernel k = api_kernel(p->program, "reduce"), s = api_kernel(p->program, "shaped");
        cl_kernel_arg_address_qualifier address;
        char text[64];
        size_t sizes[3];
        cl_ulong local;
        OK(clGetKernelArgInfo(k, 2, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address,
                              NULL));
        CHECK(address == CL_KERNEL_ARG_ADDRESS_LOCAL);
        OK(clGetKernelArgInfo(k, 0, CL_KERNEL_ARG_NAME, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "in"));
        OK(clGetKernelArgInfo(k, 1, CL_KERNEL_ARG_TYPE_NAME, sizeof(text), text, NULL));
        CHECK(!strcmp(text, "int*"));
        for (cl_uint i = p->cpus; i < p->a.count; i++) {
                OK(clGetKernelWorkGroupInfo(s, p->a.devices[i], CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                            sizeof(sizes), sizes, NULL));
                CHECK(sizes[0] == 4 && sizes[1] == 2 && sizes[2] == 1);
                cl_kernel m = api_kernel(p->program, "matmul");
                OK(clGetKernelWorkGroupInfo(m, p->a.devices[i], CL_KERNEL_LOCAL_MEM_SIZE,
                                            sizeof(local), &local, NULL));
                CHECK(local == 512);
                OK(clReleaseKernel(m));
        }
        OK(clReleaseKernel(k));
        OK(clReleaseKernel(s));
}

static void results_are_the_cpus(const struct parts *p, int simulated)
{
        static float floats[N];
        static cl_int ints[N * 4];
        for (int i = 0; i < N; i++) {
                floats[i] = (float)((i * 37) % 101) / 7 - 6;
                ints[i] = (i * 7919) % 1000 - 300;
        }
        cl_mem f = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(floats), floats);
        cl_mem n = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(ints), ints);
        input = f;
        scale = 30;
        compare(p, p->program, &(struct launch){ "matmul", 2, { 0 }, { 16, 16 }, { 8, 8 } },
                set_matmul, 2, 1024, 64);
        if (!simulated)
                compare(p, p->program, &(struct launch){ "nbody", 1, { 0 }, { 64 }, { 0 } },
                        set_nbody, 1, 1024, 16);
        scale = 0.001f;
        compare(p, p->program, &(struct launch){ "functions", 1, { 0 }, { N }, { 0 } }, set_input,
                1, N * 4, 16);
        input = n;
        compare(p, p->program, &(struct launch){ "reduce", 1, { 0 }, { N }, { GROUP } }, set_reduce,
                1, 32, 0);
        compare(p, p->program, &(struct launch){ "scan", 1, { 0 }, { N }, { 64 } }, set_input, 1,
                N * 4, 0);
        compare(p, p->program, &(struct launch){ "histogram", 1, { 0 }, { N * 4 }, { GROUP } },
                set_input, 1, 64, 0);
        compare(p, p->program, &(struct launch){ "hash", 1, { 0 }, { N }, { 0 } }, set_hash, 1,
                N * 8, 0);
        compare(p, p->program, &(struct launch){ "values", 1, { 0 }, { 32 }, { 0 } }, set_values, 4,
                256, 0);
        compare(p, p->program, &(struct launch){ "where_", 2, { 5, 3 }, { 12, 8 }, { 4, 2 } }, NULL,
                0, 12 * 8 * 4, 0);
        compare(p, p->program, &(struct launch){ "shaped", 2, { 0 }, { 8, 4 }, { 4, 2 } }, NULL, 0,
                128, 0);
        OK(clReleaseMemObject(f));
        OK(clReleaseMemObject(n));
}

/* Functions of whole groups, atomics of OpenCL C 3.0, groups that are not full: worked out here. */
static void groups_work_together(const struct parts *p)
{
        const char *text = source3;
        cl_int ints[64], got[64], err;
        for (int i = 0; i < 64; i++)
                ints[i] = (i * 31) % 47;
        input = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(ints), ints);
        cl_program program = clCreateProgramWithSource(p->a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(program, p->a.count - p->cpus, p->a.devices + p->cpus, "-cl-std=CL3.0",
                          NULL, NULL));
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                run(p, program, d, &(struct launch){ "group", 1, { 0 }, { 64 }, { 16 } }, set_input,
                    1, got, sizeof(got));
                for (int g = 0; g < 64; g += 16) {
                        int sum = 0, most = -1000, least = 1000, before = 0;
                        for (int i = g; i < g + 16; i++) {
                                sum += ints[i];
                                most = ints[i] > most ? ints[i] : most;
                        }
                        for (int i = g; i < g + 16; i++) {
                                least = ints[i] < least ? ints[i] : least;
                                CHECK(got[i] == sum + 3 * most + 5 * before + 7 * least +
                                                        11 * ints[g + 2] + 13);
                                before += ints[i];
                        }
                }
                run(p, program, d, &(struct launch){ "uneven", 1, { 0 }, { 20 }, { 8 } }, NULL, 0,
                    got, 80);
                for (int i = 0; i < 20; i++)
                        CHECK(got[i] == (i < 16 ? 8088 : 4048));
        }
        OK(clReleaseMemObject(input));
        OK(clReleaseProgram(program));
}

/* Runs it with standard output in a file, and gives what is in it. */
static size_t printed(const struct parts *p, cl_uint device, cl_kernel k, size_t items, char *ret,
                      size_t room)
{
        FILE *f = tmpfile();
        CHECK(f);
        fflush(stdout);
        int saved = dup(1);
        CHECK(saved >= 0 && dup2(fileno(f), 1) == 1);
        OK(clEnqueueNDRangeKernel(p->a.queues[device], k, 1, NULL, &items, NULL, 0, NULL, NULL));
        OK(clFinish(p->a.queues[device]));
        fflush(stdout);
        CHECK(dup2(saved, 1) == 1 && close(saved) == 0);
        rewind(f);
        size_t n = fread(ret, 1, room - 1, f);
        ret[n] = 0;
        fclose(f);
        return n;
}

static void prints_arrive(const struct parts *p)
{
        static char text[1 << 18];
        cl_kernel say = api_kernel(p->program, "say"), shout = api_kernel(p->program, "shout");
        cl_int n = -42, lines = 600;
        cl_float f = 3.14159f;
        cl_float4 v = { { 1, 2.5f, -3, 4e10f } };
        cl_ulong u = 0xffffffffffffffffu;
        OK(clSetKernelArg(say, 0, sizeof(n), &n));
        OK(clSetKernelArg(say, 1, sizeof(f), &f));
        OK(clSetKernelArg(say, 2, sizeof(v), &v));
        OK(clSetKernelArg(say, 3, sizeof(u), &u));
        OK(clSetKernelArg(shout, 0, sizeof(lines), &lines));
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                printed(p, d, say, 4, text, sizeof(text));
                if (strcmp(text,
                           "-42  3.14 1.000000,2.500000,-3.000000,40000000000.000000 0xff text c "
                           "18446744073709551615|-42   |3.141590e+00 3.14159\n")) {
                        fprintf(stderr, "%u: %s\n", d, text);
                        exit(1);
                }
                /* More than there is room for on the device at a time. */
                CHECK(printed(p, d, shout, 1, text, sizeof(text)) == 600 * 256);
                for (int i = 0; i < 600; i++)
                        CHECK(atoi(text + i * 256) == i);
        }
        OK(clReleaseKernel(say));
        OK(clReleaseKernel(shout));
}

static void faults_fail_the_command_and_no_more(const struct parts *p)
{
        cl_kernel wild = api_kernel(p->program, "wild");
        cl_mem m = api_buffer(&p->a, 0, 64, NULL);
        size_t one = 1;
        OK(clSetKernelArg(wild, 0, sizeof(m), &m));
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                cl_event e;
                cl_int got[4];
                OK(clEnqueueNDRangeKernel(p->a.queues[d], wild, 1, NULL, &one, NULL, 0, NULL, &e));
                CHECK(clWaitForEvents(1, &e) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
                CHECK(api_status(e) == CL_OUT_OF_RESOURCES);
                OK(clReleaseEvent(e));
                run(p, p->program, d, &(struct launch){ "shaped", 2, { 0 }, { 4, 2 }, { 4, 2 } },
                    NULL, 0, got, sizeof(got));
                CHECK(got[3] == 42);
        }
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(wild));
}

/* The one behind the server has a time-out: it is reset, and the programs that it had are there again. */
static void endless_kernels_end(const struct parts *p)
{
        cl_uint d = p->a.count - 1;
        const char *text = endless;
        cl_int zero = 0, got[8], err;
        size_t one = 1;
        cl_event e;
        cl_program program = clCreateProgramWithSource(p->a.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(program, 1, &p->a.devices[d], "", NULL, NULL));
        cl_kernel k = api_kernel(program, "endless");
        cl_mem m = api_buffer(&p->a, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        OK(clEnqueueNDRangeKernel(p->a.queues[d], k, 1, NULL, &one, NULL, 0, NULL, &e));
        CHECK(clWaitForEvents(1, &e) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        CHECK(api_status(e) == CL_OUT_OF_RESOURCES);
        run(p, p->program, d, &(struct launch){ "shaped", 2, { 0 }, { 4, 2 }, { 4, 2 } }, NULL, 0,
            got, sizeof(got));
        CHECK(got[5] == 42);
        OK(clReleaseEvent(e));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
        OK(clReleaseProgram(program));
}

static void launches_are_checked(const struct parts *p)
{
        cl_kernel k = api_kernel(p->program, "shaped");
        cl_mem m = api_buffer(&p->a, 0, 4096, NULL);
        size_t global[2] = { 8, 8 }, wrong[2] = { 2, 2 };
        EXPECT(CL_INVALID_KERNEL_ARGS, clEnqueueNDRangeKernel(p->a.queues[p->cpus], k, 2, NULL,
                                                              global, NULL, 0, NULL, NULL));
        OK(clSetKernelArg(k, 0, sizeof(m), &m));
        EXPECT(CL_INVALID_WORK_GROUP_SIZE, clEnqueueNDRangeKernel(p->a.queues[p->cpus], k, 2, NULL,
                                                                  global, wrong, 0, NULL, NULL));
        EXPECT(CL_INVALID_ARG_SIZE, clSetKernelArg(k, 0, 3, &m));
        OK(clReleaseMemObject(m));
        OK(clReleaseKernel(k));
}

/* The build fails, and its log has the word. */
static void expect_log(const struct parts *p, const char *text, const char *options, cl_int wanted,
                       const char *word)
{
        cl_int err;
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                static char log[TEXT];
                cl_program program = clCreateProgramWithSource(p->a.context, 1, &text, NULL, &err);
                OK(err);
                EXPECT(wanted, clBuildProgram(program, 1, &p->a.devices[d], options, NULL, NULL));
                OK(clGetProgramBuildInfo(program, p->a.devices[d], CL_PROGRAM_BUILD_LOG,
                                         sizeof(log), log, NULL));
                if (!strstr(log, word)) {
                        fprintf(stderr, "'%s' is not in the log: %s\n", word, log);
                        exit(1);
                }
                OK(clReleaseProgram(program));
        }
}

static void errors_name_what_is_wrong(const struct parts *p)
{
        cl_int f = CL_BUILD_PROGRAM_FAILURE;
        expect_log(p, "kernel void f(global int *p) {\n        p[0] = nonsense;\n}\n", "", f,
                   "program.cl:2:16: error: use of undeclared identifier 'nonsense'");
        expect_log(p, "kernel void f(global double *p) { p[0] = 1; }\n", "", f, "double");
        expect_log(p, "kernel void f(read_only image2d_t picture) { }\n", "", f, "image2d_t");
        expect_log(p, "kernel void f(sampler_t s) { }\n", "", f, "samplers");
        expect_log(p, "kernel void f(global float *p) { p[0] = lgamma(p[1]); }\n", "", f, "lgamma");
        expect_log(
                p,
                "kernel void f(global int *p) { volatile int big[5000]; big[p[0]] = 1; p[0] = big[1]; }\n",
                "", f, "stack frame");
        expect_log(p, "kernel void f() { }\n", "-fnonsense", CL_INVALID_BUILD_OPTIONS,
                   "-fnonsense");
        expect_log(p, "#include <no-such-file.h>\n", "", f, "no-such-file.h");
}

/* Binaries go out and come in again, compiled objects are linked. */
static void programs_travel(const struct parts *p)
{
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                size_t sizes[API_DEVICES_MAX], size;
                unsigned char *list[API_DEVICES_MAX] = { NULL };
                cl_int err, status, got[8];
                OK(clGetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes,
                                    NULL));
                size = sizes[d];
                CHECK(size > 100);
                list[d] = malloc(size);
                OK(clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof(list), list, NULL));
                CHECK(memmem(list[d], size, "\177ELF", 4));
                const unsigned char *binary = list[d];
                cl_program program = clCreateProgramWithBinary(p->a.context, 1, &p->a.devices[d],
                                                               &size, &binary, &status, &err);
                OK(err);
                OK(status);
                OK(clBuildProgram(program, 1, &p->a.devices[d], "", NULL, NULL));
                run(p, program, d, &(struct launch){ "shaped", 2, { 0 }, { 4, 2 }, { 4, 2 } }, NULL,
                    0, got, sizeof(got));
                CHECK(got[7] == 42);
                OK(clReleaseProgram(program));
                free(list[d]);
        }
}

static void objects_are_linked(const struct parts *p)
{
        static const char *const
                one = "int twice(int x) { return 2 * x; }\n",
                *const two =
                        "int twice(int x);\n"
                        "kernel void f(global int *p) { p[get_global_id(0)] = twice(get_global_id(0)); }\n";
        for (cl_uint d = p->cpus; d < p->a.count; d++) {
                cl_int err, got[8];
                cl_program parts[2] = {
                        clCreateProgramWithSource(p->a.context, 1, (const char **)&one, NULL, &err),
                        clCreateProgramWithSource(p->a.context, 1, (const char **)&two, NULL, &err)
                };
                for (int i = 0; i < 2; i++)
                        OK(clCompileProgram(parts[i], 1, &p->a.devices[d], "", 0, NULL, NULL, NULL,
                                            NULL));
                cl_program program = clLinkProgram(p->a.context, 1, &p->a.devices[d], "", 2, parts,
                                                   NULL, NULL, &err);
                OK(err);
                run(p, program, d, &(struct launch){ "f", 1, { 0 }, { 8 }, { 0 } }, NULL, 0, got,
                    sizeof(got));
                for (int i = 0; i < 8; i++)
                        CHECK(got[i] == 2 * i);
                OK(clReleaseProgram(program));
                OK(clReleaseProgram(parts[0]));
                OK(clReleaseProgram(parts[1]));
        }
}

/* With an argument the accelerators are slow: simulated hardware. */
int main(int argc, char **argv)
{
        struct parts p = parts_open();
        devices_have_a_compiler(&p);
        kernels_describe_themselves(&p);
        results_are_the_cpus(&p, argc > 1);
        groups_work_together(&p);
        if (argc == 1)
                prints_arrive(&p);
        faults_fail_the_command_and_no_more(&p);
        if (argc == 1) {
                endless_kernels_end(&p);
                launches_are_checked(&p);
                errors_name_what_is_wrong(&p);
                programs_travel(&p);
                objects_are_linked(&p);
        }
        OK(clReleaseProgram(p.program));
        api_close(&p.a);
        return 0;
}
