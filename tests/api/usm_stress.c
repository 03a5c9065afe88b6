/* Random accesses of the host and of kernels to unified shared memory, one after the other, against a model. Then
 * several threads do the same at once, each with allocations of its own. The seed is the first argument. */

#include <CL/cl_ext.h>
#include <pthread.h>

#include "usm.h"

static const char source[] =
        "__kernel void add(__global uint *p, uint x) { p[get_global_id(0)] += x; }\n"
        "__kernel void through(__global const ulong *where, uint x) {\n"
        "        ((__global uint *)where[0])[get_global_id(0)] += x;\n"
        "}\n";

enum { AREAS = 12, MOST = 40000, STEPS = 500, THREADS = 3 };

struct area {
        cl_uint *p, *model;
        size_t count;
        int closed; /* a device allocation */
};

static struct api a;
static cl_program program;
static uint64_t seed;

static _Thread_local struct area areas[AREAS];
static _Thread_local cl_kernel add, through;
static _Thread_local cl_event last; /* of the last command */
static _Thread_local uint64_t state;
static _Thread_local cl_ulong *table; /* with an address for `through` */
static _Thread_local int alone;       /* no other thread uses allocations */

static size_t below(size_t n)
{
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (size_t)(state >> 33) % n;
}

/* The next command comes after the last one. */
static void done(cl_event e)
{
        if (last)
                OK(clReleaseEvent(last));
        last = e;
}

#define AFTER last ? 1 : 0, last ? &last : NULL

static void settle(void)
{
        if (last)
                OK(clWaitForEvents(1, &last));
        done(NULL);
}

static void make(struct area *x)
{
        cl_int err = 1;
        size_t kind = below(8), size = below(4) ? below(300) + 1 : below(MOST) + 1;
        cl_device_id d = a.devices[below(a.count)];
        x->count = size;
        size *= sizeof(cl_uint);
        x->closed = kind == 0;
        if (kind == 0)
                x->p = device_alloc(a.context, d, NULL, size, 0, &err);
        else if (kind < 3)
                x->p = host_alloc(a.context, NULL, size, 0, &err);
        else
                x->p = shared_alloc(a.context, kind == 3 ? NULL : d, NULL, size,
                                    below(3) ? 0 : 4096, &err);
        OK(err);
        x->model = calloc(x->count, sizeof(cl_uint));
        CHECK(x->model);
        const cl_uint zero = 0;
        cl_event e;
        OK(mem_fill(a.queues[below(a.count)], x->p, &zero, 4, size, AFTER, &e));
        done(e);
}

static void drop(struct area *x)
{
        settle(); /* Intel's crashes when a kernel still uses it */
        OK(free_blocking(a.context, x->p));
        free(x->model);
}

/* A part of the area. */
static size_t part(const struct area *x, size_t *ret_at)
{
        *ret_at = below(x->count);
        size_t rest = x->count - *ret_at;
        return below(2) ? rest : below(rest) + 1;
}

static void host_write(struct area *x)
{
        size_t at, n = part(x, &at), step = below(3) ? 1 : below(3000) + 1;
        settle();
        for (size_t i = at; i < at + n; i += step)
                x->model[i] = x->p[i] = (cl_uint)(state + i);
}

static void host_read(const struct area *x)
{
        size_t at, n = part(x, &at);
        settle();
        for (size_t i = at; i < at + n; i++)
                CHECK(x->p[i] == x->model[i]);
}

static void kernel(struct area *x)
{
        size_t at, n = part(x, &at);
        cl_uint value = (cl_uint)state;
        cl_event e;
        OK(set_pointer(add, 0, x->p + at));
        OK(clSetKernelArg(add, 1, sizeof(value), &value));
        OK(clEnqueueNDRangeKernel(a.queues[below(a.count)], add, 1, NULL, &n, NULL, AFTER, &e));
        done(e);
        for (size_t i = at; i < at + n; i++)
                x->model[i] += value;
}

/* The address is in memory that the host has just written. */
static void indirect(struct area *x)
{
        size_t at, n = part(x, &at);
        cl_uint value = (cl_uint)state;
        cl_int err;
        cl_event e;
        settle();
        if (!table) {
                table = host_alloc(a.context, NULL, 4096, 0, &err);
                OK(err);
        }
        table[below(512)] = 1;
        table[0] = (cl_ulong)(uintptr_t)(x->p + at);
        OK(set_pointer(through, 0, table));
        if (!alone)
                OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof(x->p),
                                       &x->p));
        OK(clSetKernelArg(through, 1, sizeof(value), &value));
        OK(clEnqueueNDRangeKernel(a.queues[below(a.count)], through, 1, NULL, &n, NULL, AFTER, &e));
        done(e);
        for (size_t i = at; i < at + n; i++)
                x->model[i] += value;
}

static void copy(struct area *to, const struct area *from)
{
        size_t at, n = part(to, &at), begin = below(from->count);
        cl_event e;
        if (to == from)
                return;
        if (n > from->count - begin)
                n = from->count - begin;
        OK(mem_copy(a.queues[below(a.count)], below(2) ? CL_TRUE : CL_FALSE, to->p + at,
                    from->p + begin, n * 4, AFTER, &e));
        done(e);
        memcpy(to->model + at, from->model + begin, n * 4);
}

static void fill(struct area *x)
{
        size_t at, n = part(x, &at);
        cl_uint value = (cl_uint)state;
        cl_event e;
        OK(mem_fill(a.queues[below(a.count)], x->p + at, &value, 4, n * 4, AFTER, &e));
        done(e);
        for (size_t i = at; i < at + n; i++)
                x->model[i] = value;
}

static void step(void)
{
        struct area *x = &areas[below(AREAS)];
        switch (below(8)) {
        case 0:
                if (below(4))
                        break;
                drop(x);
                make(x);
                break;
        case 1:
                fill(x);
                break;
        case 2:
                copy(x, &areas[below(AREAS)]);
                break;
        case 3:
                indirect(x);
                break;
        case 4:
                kernel(x);
                break;
        case 5:
                if (!x->closed)
                        host_write(x);
                break;
        default:
                if (!x->closed)
                        host_read(x);
        }
}

static void kernels(void)
{
        const cl_bool yes = CL_TRUE;
        add = api_kernel(program, "add");
        through = api_kernel(program, "through");
        if (!alone)
                return;
        OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, sizeof(yes),
                               &yes));
        OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                               sizeof(yes), &yes));
        OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                               sizeof(yes), &yes));
}

static void run_seed(uint64_t from, int steps)
{
        state = from;
        kernels();
        for (int i = 0; i < AREAS; i++)
                make(&areas[i]);
        for (int i = 0; i < steps; i++)
                step();
        settle();
        for (int i = 0; i < AREAS; i++) {
                for (size_t k = 0; !areas[i].closed && k < areas[i].count; k++)
                        CHECK(areas[i].p[k] == areas[i].model[k]);
                drop(&areas[i]);
        }
        if (table)
                OK(free_blocking(a.context, table));
        table = NULL;
        OK(clReleaseKernel(add));
        OK(clReleaseKernel(through));
}

static void *work(void *arg)
{
        run_seed(seed + (uintptr_t)arg, STEPS / 5);
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_t threads[THREADS];
        a = api_open(0);
        cl_bitfield can = 0;
        (void)clGetDeviceInfo(a.devices[0], CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, sizeof(can),
                              &can, NULL);
        if (!can) {
                fprintf(stderr, "no unified shared memory\n");
                return 77;
        }
        usm_find(&a);
        seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
        program = api_build(&a, source, "");
        alone = 1;
        run_seed(seed, STEPS);
        for (uintptr_t i = 0; i < THREADS; i++)
                CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
        for (int i = 0; i < THREADS; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        OK(clReleaseProgram(program));
        api_close(&a);
        return 0;
}
