/* A lattice-Boltzmann solver (D3Q19, float32) on all devices of a platform. An uncut domain takes
 * one kernel a step. A domain cut in slabs takes two: one for the outer layers, which the
 * neighbours wait for, and one for the rest.
 * A device's kernel writes the values that cross to another slab into separate buffers, and the
 * neighbour's kernel reads them. The OpenCL implementation moves these buffers between the devices.
 * Plain OpenCL 1.2: nothing here knows SpanCL.
 *
 * Two flows: decaying vortices, which follow Taylor and Green's solution (periodic), and a box with
 * one moving wall. */

#include "host.h"

#include <CL/cl.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DOMAINS_MAX = 64, POPULATIONS = 19, CROSSING = 5, LID_SPEED_PERCENT = 5 };

static const double vortex_speed = 0.05, pi = 3.14159265358979323846;

struct options {
        const char *kernels; /* folder of lbm.cl */
        const char *platform;
        size_t size[3];
        int domains;
        int steps;
        int warm; /* steps before those that are timed */
        double viscosity;
        int cavity;
        int compare; /* with the host */
};

/* A slab of layers, on one device. */
struct domain {
        cl_command_queue queue, outer_queue;
        size_t first, layers;
        cl_mem grid[2];
        cl_mem up[2], down[2]; /* populations that cross its ends, by step's parity */
        cl_kernel outer[2], inner[2];
        cl_event done, rest; /* the last launches of `outer` and of `inner` */
};

static struct options o = {
        .kernels = LBM_KERNELS,
        .size = { 64, 64, 64 },
        .domains = 1,
        .steps = 500,
        .warm = 20,
        .viscosity = 0.05,
};
static cl_context context;
static cl_program program;
static cl_device_id devices[DOMAINS_MAX];
static cl_uint device_count;
static struct domain domains[DOMAINS_MAX];

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fprintf(stderr, "lbm: ");
        vfprintf(stderr, format, args);
        fprintf(stderr, "\n");
        va_end(args);
        exit(1);
}

static void check(cl_int err, const char *what)
{
        if (err != CL_SUCCESS)
                die("%s: error %d", what, err);
}

static void *allocate(size_t count, size_t size)
{
        void *p = calloc(count, size);
        if (!p)
                die("out of memory");
        return p;
}

static double now_s(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t layer(void)
{
        return o.size[0] * o.size[1];
}

static double relaxation(void)
{
        return 1 / (3 * o.viscosity + 0.5);
}

/* ---- the devices ----------------------------------------------------------------------------- */

static void open_devices(void)
{
        cl_platform_id platforms[16];
        cl_uint count = 0;
        cl_int err;
        check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
        for (cl_uint i = 0; i < count && i < 16 && !device_count; i++) {
                char name[256] = "";
                check(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL),
                      "clGetPlatformInfo");
                if (o.platform && !strstr(name, o.platform))
                        continue;
                if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, DOMAINS_MAX, devices,
                                   &device_count) != CL_SUCCESS)
                        device_count = 0;
        }
        if (!device_count)
                die("no platform with devices");
        if (device_count > (cl_uint)o.domains)
                device_count = (cl_uint)o.domains;
        context = clCreateContext(NULL, device_count, devices, NULL, NULL, &err);
        check(err, "clCreateContext");
}

static void build(void)
{
        char path[4096], options[256];
        cl_int err;
        snprintf(path, sizeof(path), "%s/lbm.cl", o.kernels);
        FILE *f = fopen(path, "rb");
        if (!f)
                die("%s: %s", path, strerror(errno));
        char *text = allocate(1, 1 << 16);
        size_t length = fread(text, 1, (1 << 16) - 1, f);
        fclose(f);
        program = clCreateProgramWithSource(context, 1, (const char *[]){ text }, &length, &err);
        check(err, "clCreateProgramWithSource");
        snprintf(options, sizeof(options), "-DNX=%zu -DNY=%zu%s%s", o.size[0], o.size[1],
                 o.cavity ? " -DCAVITY" : "", o.domains > 1 ? " -DHALO" : "");
        err = clBuildProgram(program, 0, NULL, options, NULL, NULL);
        if (err != CL_SUCCESS) {
                clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, 1 << 16, text,
                                      NULL);
                die("clBuildProgram: error %d\n%s", err, text);
        }
        free(text);
}

static cl_mem buffer_new(size_t floats)
{
        cl_int err;
        cl_mem m =
                clCreateBuffer(context, CL_MEM_READ_WRITE, floats * sizeof(cl_float), NULL, &err);
        check(err, "clCreateBuffer");
        return m;
}

static cl_kernel kernel_new(const char *name)
{
        cl_int err;
        cl_kernel k = clCreateKernel(program, name, &err);
        check(err, "clCreateKernel");
        return k;
}

static void arg(cl_kernel k, cl_uint *at, size_t size, const void *value)
{
        check(clSetKernelArg(k, (*at)++, size, value), "clSetKernelArg");
}

static void launch(cl_command_queue q, cl_kernel k, size_t layers, cl_uint waits,
                   const cl_event *wait_list, cl_event *ret)
{
        const size_t global[3] = { o.size[0], o.size[1], layers };
        size_t row = 128;
        while (o.size[0] % row)
                row /= 2;
        const size_t local[3] = { row, 1, 1 };
        check(clEnqueueNDRangeKernel(q, k, 3, NULL, global, local, waits, wait_list, ret),
              "clEnqueueNDRangeKernel");
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The kernel of the step that reads the buffers written with `parity`. It computes a slab's first
 * and last layer (`ends`), or the rest, which needs no neighbours and gets no buffers for them. */
static cl_kernel step_kernel(int number, int parity, bool ends)
{
        struct domain *d = &domains[number];
        const struct domain *below = &domains[(number + o.domains - 1) % o.domains];
        const struct domain *above = &domains[(number + 1) % o.domains];
        bool whole = o.domains == 1;
        cl_uint nz = (cl_uint)d->layers, i = 0;
        cl_uint z0 = ends ? 0 : 1, dz = ends && !whole ? nz - 1 : 1;
        cl_float omega = (cl_float)relaxation(), lid = LID_SPEED_PERCENT / 100.0f;
        cl_int first = number == 0, last = number == o.domains - 1;
        cl_kernel k = kernel_new("advance");
        arg(k, &i, sizeof(cl_mem), &d->grid[parity]);
        arg(k, &i, sizeof(cl_mem), &d->grid[!parity]);
        arg(k, &i, sizeof(nz), &nz);
        arg(k, &i, sizeof(z0), &z0);
        arg(k, &i, sizeof(dz), &dz);
        arg(k, &i, sizeof(omega), &omega);
        arg(k, &i, sizeof(lid), &lid);
        arg(k, &i, sizeof(first), &first);
        arg(k, &i, sizeof(last), &last);
        if (!whole) {
                arg(k, &i, sizeof(cl_mem), ends ? &below->up[parity] : NULL);
                arg(k, &i, sizeof(cl_mem), ends ? &above->down[parity] : NULL);
                arg(k, &i, sizeof(cl_mem), ends ? &d->up[!parity] : NULL);
                arg(k, &i, sizeof(cl_mem), ends ? &d->down[!parity] : NULL);
        }
        return k;
}

static void domains_new(void)
{
        cl_int err;
        for (int i = 0; i < o.domains; i++) {
                struct domain *d = &domains[i];
                d->first = o.size[2] * (size_t)i / (size_t)o.domains;
                d->layers = o.size[2] * (size_t)(i + 1) / (size_t)o.domains - d->first;
                cl_device_id device = devices[(cl_uint)i % device_count];
                d->queue = clCreateCommandQueue(context, device, 0, &err);
                check(err, "clCreateCommandQueue");
                d->outer_queue = clCreateCommandQueue(context, device, 0, &err);
                check(err, "clCreateCommandQueue");
                for (int parity = 0; parity < 2; parity++) {
                        d->grid[parity] = buffer_new(layer() * d->layers * POPULATIONS);
                        if (o.domains > 1) {
                                d->up[parity] = buffer_new(layer() * CROSSING);
                                d->down[parity] = buffer_new(layer() * CROSSING);
                        }
                }
        }
        for (int i = 0; i < o.domains; i++) {
                for (int parity = 0; parity < 2; parity++) {
                        domains[i].outer[parity] = step_kernel(i, parity, true);
                        if (o.domains > 1)
                                domains[i].inner[parity] = step_kernel(i, parity, false);
                }
        }
}

static void domains_free(void)
{
        for (int i = 0; i < o.domains; i++) {
                struct domain *d = &domains[i];
                for (int parity = 0; parity < 2; parity++) {
                        clReleaseKernel(d->outer[parity]);
                        clReleaseMemObject(d->grid[parity]);
                        if (o.domains > 1) {
                                clReleaseKernel(d->inner[parity]);
                                clReleaseMemObject(d->up[parity]);
                                clReleaseMemObject(d->down[parity]);
                        }
                }
                clReleaseCommandQueue(d->queue);
                clReleaseCommandQueue(d->outer_queue);
        }
}

/* The ends of a slab wait for the ends of its neighbours, which write the buffers that it reads and
 * read those that it overwrites. While those buffers travel, the rest of the slab is computed. Ends
 * and rest of a step do not wait for each other, so a device can begin one while the other
 * finishes. */
static void step(int parity)
{
        cl_event done[DOMAINS_MAX] = { 0 };
        for (int i = 0; i < o.domains; i++) {
                struct domain *d = &domains[i];
                if (o.domains == 1) {
                        launch(d->queue, d->outer[parity], d->layers, 0, NULL, NULL);
                        return;
                }
                const cl_event near[3] = { domains[(i + o.domains - 1) % o.domains].done,
                                           domains[(i + 1) % o.domains].done, d->rest };
                launch(d->outer_queue, d->outer[parity], 2, 3, near, &done[i]);
                check(clFlush(d->outer_queue), "clFlush");
                if (d->layers > 2) {
                        check(clReleaseEvent(d->rest), "clReleaseEvent");
                        launch(d->queue, d->inner[parity], d->layers - 2, 1, &d->done, &d->rest);
                }
                check(clFlush(d->queue), "clFlush");
        }
        for (int i = 0; i < o.domains; i++) {
                check(clReleaseEvent(domains[i].done), "clReleaseEvent");
                domains[i].done = done[i];
        }
}

static void finish(void)
{
        for (int i = 0; i < o.domains; i++) {
                check(clFinish(domains[i].outer_queue), "clFinish");
                check(clFinish(domains[i].queue), "clFinish");
        }
}

/* ---- the flow -------------------------------------------------------------------------------- */

/* Vortices in x and z, the same for all y; or rest. */
static void flow_begin(float (*field)[4])
{
        double kx = 2 * pi / (double)o.size[0], kz = 2 * pi / (double)o.size[2];
        for (size_t n = 0; n < layer() * o.size[2] && !o.cavity; n++) {
                double x = kx * (double)(n % o.size[0]), z = kz * (double)(n / layer());
                double pressure = cos(2 * x) + kx * kx / (kz * kz) * cos(2 * z);
                field[n][0] = (float)(0.75 * vortex_speed * vortex_speed * pressure);
                field[n][1] = (float)(vortex_speed * sin(x) * cos(z));
                field[n][3] = (float)(-vortex_speed * kx / kz * cos(x) * sin(z));
        }
}

static void flow_start(const float (*field)[4])
{
        size_t cell = sizeof(field[0]);
        for (int i = 0; i < o.domains; i++) {
                struct domain *d = &domains[i];
                cl_uint at = 0, nz = (cl_uint)d->layers;
                cl_mem given = buffer_new(layer() * d->layers * 4);
                cl_kernel k = kernel_new("start");
                check(clEnqueueWriteBuffer(d->queue, given, CL_TRUE, 0, layer() * d->layers * cell,
                                           field + d->first * layer(), 0, NULL, NULL),
                      "clEnqueueWriteBuffer");
                arg(k, &at, sizeof(cl_mem), &given);
                arg(k, &at, sizeof(cl_mem), &d->grid[0]);
                arg(k, &at, sizeof(nz), &nz);
                if (o.domains > 1) {
                        arg(k, &at, sizeof(cl_mem), &d->up[0]);
                        arg(k, &at, sizeof(cl_mem), &d->down[0]);
                }
                launch(d->queue, k, d->layers, 0, NULL, &d->done);
                check(clRetainEvent(d->done), "clRetainEvent");
                d->rest = d->done;
                check(clFlush(d->queue), "clFlush");
                clReleaseKernel(k);
                clReleaseMemObject(given);
        }
}

static void flow_look(int parity, float (*field)[4])
{
        size_t cell = sizeof(field[0]);
        for (int i = 0; i < o.domains; i++) {
                struct domain *d = &domains[i];
                cl_uint at = 0, nz = (cl_uint)d->layers;
                cl_mem seen = buffer_new(layer() * d->layers * 4);
                cl_kernel k = kernel_new("look");
                arg(k, &at, sizeof(cl_mem), &d->grid[parity]);
                arg(k, &at, sizeof(cl_mem), &seen);
                arg(k, &at, sizeof(nz), &nz);
                launch(d->queue, k, d->layers, 0, NULL, NULL);
                check(clEnqueueReadBuffer(d->queue, seen, CL_TRUE, 0, layer() * d->layers * cell,
                                          field + d->first * layer(), 0, NULL, NULL),
                      "clEnqueueReadBuffer");
                clReleaseKernel(k);
                clReleaseMemObject(seen);
                clReleaseEvent(d->done);
                clReleaseEvent(d->rest);
        }
}

/* ---- is it right? ---------------------------------------------------------------------------- */

static void expect(const char *what, double value, double limit)
{
        printf("%s: %.3g (at most %.3g)\n", what, value, limit);
        if (!(value <= limit))
                die("%s is wrong", what);
}

/* The mass is conserved: density - 1, summed over all cells, keeps its first value. */
static void check_mass(const float (*before)[4], const float (*after)[4])
{
        double change = 0;
        size_t cells = layer() * o.size[2];
        for (size_t n = 0; n < cells; n++)
                change += (double)after[n][0] - (double)before[n][0];
        expect("change of mass", fabs(change) / (double)cells, 1e-6);
}

/* The vortices keep their shape and decay by exp(-viscosity (kx^2 + kz^2) t). */
static void check_vortices(const float (*before)[4], const float (*after)[4])
{
        double product = 0, square = 0, rest = 0;
        double kx = 2 * pi / (double)o.size[0], kz = 2 * pi / (double)o.size[2];
        double decay = exp(-o.viscosity * (kx * kx + kz * kz) * (o.warm + o.steps));
        size_t cells = layer() * o.size[2];
        for (size_t n = 0; n < cells; n++) {
                for (int a = 1; a < 4; a++) {
                        double u0 = (double)before[n][a], u = (double)after[n][a];
                        double wrong = u - u0 * decay;
                        product += u * u0;
                        square += u0 * u0;
                        rest += wrong * wrong;
                }
        }
        printf("vortices decayed to %.5f, in theory %.5f\n", product / square, decay);
        /* Second order in the size of a cell and in the Mach number, which a long box makes larger: what goes
         * along it has to be as much faster as it is longer. */
        double faster = fmax(1, kx / kz);
        expect("deviation from theory", sqrt(rest / square),
               0.2 * (kx * kx + kz * kz) * decay + 0.002 * faster * faster);
}

static void check_host(const float (*before)[4], const float (*after)[4])
{
        struct host_flow h = {
                .size = { o.size[0], o.size[1], o.size[2] },
                .cavity = o.cavity,
                .lid = LID_SPEED_PERCENT / 100.0,
                .omega = relaxation(),
        };
        double(*wanted)[4] = allocate(layer() * o.size[2], sizeof(*wanted)), worst = 0;
        if (!host_flow_start(&h, before))
                die("out of memory");
        for (int i = 0; i < o.warm + o.steps; i++)
                host_flow_step(&h);
        host_flow_look(&h, wanted);
        for (size_t n = 0; n < layer() * o.size[2]; n++)
                for (int a = 0; a < 4; a++)
                        worst = fmax(worst, fabs((double)after[n][a] - wanted[n][a]));
        host_flow_end(&h);
        free(wanted);
        expect("deviation from the host", worst, 2e-6);
}

static uint64_t fingerprint(const void *data, size_t size)
{
        const uint8_t *p = data;
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t i = 0; i < size; i++)
                h = (h ^ p[i]) * 0x100000001b3u;
        return h;
}

/* ---- options --------------------------------------------------------------------------------- */

static void parse_size(const char *text)
{
        int n = sscanf(text, "%zux%zux%zu", &o.size[0], &o.size[1], &o.size[2]);
        if (n == 1)
                o.size[1] = o.size[2] = o.size[0];
        else if (n != 3)
                die("--size is N or NXxNYxNZ");
}

static void parse(int argc, char **argv)
{
        static const struct option names[] = {
                { "size", required_argument, NULL, 's' },
                { "steps", required_argument, NULL, 'n' },
                { "warm", required_argument, NULL, 'w' },
                { "domains", required_argument, NULL, 'd' },
                { "viscosity", required_argument, NULL, 'v' },
                { "cavity", no_argument, NULL, 'c' },
                { "compare", no_argument, NULL, 'h' },
                { "platform", required_argument, NULL, 'p' },
                { "kernels", required_argument, NULL, 'k' },
                { 0 },
        };
        int c;
        while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
                switch (c) {
                case 's':
                        parse_size(optarg);
                        break;
                case 'n':
                        o.steps = atoi(optarg);
                        break;
                case 'w':
                        o.warm = atoi(optarg);
                        break;
                case 'd':
                        o.domains = atoi(optarg);
                        break;
                case 'v':
                        o.viscosity = atof(optarg);
                        break;
                case 'c':
                        o.cavity = 1;
                        break;
                case 'h':
                        o.compare = 1;
                        break;
                case 'p':
                        o.platform = optarg;
                        break;
                case 'k':
                        o.kernels = optarg;
                        break;
                default:
                        die("options: --size N|NXxNYxNZ --steps N --warm N --domains N --viscosity V\n"
                            "     --cavity --compare (with the host) --platform NAME --kernels FOLDER");
                }
        }
        for (int a = 0; a < 3; a++)
                if (o.size[a] < 2 || o.size[a] > 4096)
                        die("sizes are from 2 to 4096");
        if (o.domains < 1 || o.domains > DOMAINS_MAX || o.size[2] < 2 * (size_t)o.domains)
                die("a domain has at least two layers, and there are at most %d", DOMAINS_MAX);
        if (o.steps < 1 || o.warm < 0 || o.viscosity <= 0)
                die("there is nothing to do");
        if (layer() * ((o.size[2] + (size_t)o.domains - 1) / (size_t)o.domains) * POPULATIONS >
            UINT32_MAX)
                die("a domain has too many cells");
}

int main(int argc, char **argv)
{
        parse(argc, argv);
        open_devices();
        build();
        domains_new();
        size_t cells = layer() * o.size[2];
        float(*before)[4] = allocate(cells, sizeof(*before));
        float(*after)[4] = allocate(cells, sizeof(*after));
        flow_begin(before);
        flow_start((const float(*)[4])before);
        for (int i = 0; i < o.warm; i++)
                step(i & 1);
        finish();
        double begin = now_s();
        for (int i = 0; i < o.steps; i++)
                step((o.warm + i) & 1);
        finish();
        double took = now_s() - begin;
        flow_look((o.warm + o.steps) & 1, after);

        printf("%s, %zux%zux%zu cells, %d steps, %d domain%s\n",
               o.cavity ? "box with a moving wall" : "Taylor-Green vortices", o.size[0], o.size[1],
               o.size[2], o.warm + o.steps, o.domains, o.domains == 1 ? "" : "s");
        check_mass((const float(*)[4])before, (const float(*)[4])after);
        if (!o.cavity)
                check_vortices((const float(*)[4])before, (const float(*)[4])after);
        if (o.compare)
                check_host((const float(*)[4])before, (const float(*)[4])after);
        printf("fingerprint %016llx\n",
               (unsigned long long)fingerprint(after, cells * sizeof(*after)));
        printf("devices %u, %.3f s, %.1f MLUPs\n", device_count, took,
               (double)cells * o.steps / took * 1e-6);

        domains_free();
        clReleaseProgram(program);
        clReleaseContext(context);
        free(before);
        free(after);
        return 0;
}
