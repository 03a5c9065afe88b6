/* Unified shared memory: random accesses of the host, commands and cuts against a model that executes the same in
 * sequence. The host's accesses fault, and the fault thread drives the simulator meanwhile. */
#include "support/check.h"

#include <CL/cl_ext.h>
#include <string.h>

#include "core/memory/usm.h"
#include "support/random.h"
#include "support/setup.h"

enum { AREAS = 5, SMALL = 20000, LARGE = 700000, STEPS = 60, SEEDS = 6, WALK = 16384 };

static clSharedMemAllocINTEL_fn shared_alloc;
static clHostMemAllocINTEL_fn host_alloc;
static clMemBlockingFreeINTEL_fn free_blocking;
static clSetKernelArgMemPointerINTEL_fn set_pointer;
static clEnqueueMemFillINTEL_fn mem_fill;
static clEnqueueMemcpyINTEL_fn mem_copy;

struct area {
        volatile uint32_t *p;
        uint32_t *model;
        size_t count;
};

struct run {
        struct setup s;
        struct rng rng;
        struct area areas[AREAS];
        cl_event last; /* of the last command; NULL: the host has waited for it */
};

static void *pointer(const struct area *x, size_t at)
{
        return (void *)(uintptr_t)(x->p + at);
}

static void find_functions(const struct setup *s)
{
        cl_platform_id p = sim_platform(s->sim);
#define FIND(variable, function) \
        variable = (function##_fn)clGetExtensionFunctionAddressForPlatform(p, #function)
        FIND(shared_alloc, clSharedMemAllocINTEL);
        FIND(host_alloc, clHostMemAllocINTEL);
        FIND(free_blocking, clMemBlockingFreeINTEL);
        FIND(set_pointer, clSetKernelArgMemPointerINTEL);
        FIND(mem_fill, clEnqueueMemFillINTEL);
        FIND(mem_copy, clEnqueueMemcpyINTEL);
}

/* A part of the area, often to its end. */
static size_t part(struct run *r, const struct area *x, size_t *ret_at)
{
        *ret_at = rng_chance(&r->rng, 30) ? 0 : rng_below(&r->rng, x->count);
        size_t rest = x->count - *ret_at;
        return rng_chance(&r->rng, 50) ? rest : rng_below(&r->rng, rest) + 1;
}

static cl_command_queue any_queue(struct run *r)
{
        return r->s.queues[rng_below(&r->rng, r->s.count)];
}

static void done(struct run *r, cl_event e)
{
        if (r->last)
                assert_int_equal(clReleaseEvent(r->last), CL_SUCCESS);
        r->last = e;
}

#define AFTER(r) (r)->last ? 1 : 0, (r)->last ? &(r)->last : NULL

static void settle(struct run *r)
{
        if (r->last)
                assert_int_equal(clWaitForEvents(1, &r->last), CL_SUCCESS);
        done(r, NULL);
}

/* In ascending order, so that bytes come ahead, or anywhere. Each value that is written differs. */
static void host_access(struct run *r, struct area *x, bool write)
{
        size_t at, n = part(r, x, &at);
        bool walk = rng_chance(&r->rng, 70);
        settle(r);
        for (size_t i = 0; i < n; i += WALK / 4) {
                size_t k = walk ? at + i : rng_below(&r->rng, x->count);
                if (write)
                        x->p[k] = x->model[k] = (uint32_t)rng_below(&r->rng, UINT32_MAX);
                else if (x->p[k] != x->model[k])
                        sim_fail(r->s.sim, "number %zu is %u, not %u", k, x->p[k], x->model[k]);
        }
}

static void fill(struct run *r, struct area *x)
{
        size_t at, n = part(r, x, &at);
        uint32_t value = (uint32_t)rng_below(&r->rng, UINT32_MAX);
        cl_event e;
        assert_int_equal(mem_fill(any_queue(r), pointer(x, at), &value, 4, n * 4, AFTER(r), &e),
                         CL_SUCCESS);
        done(r, e);
        for (size_t i = at; i < at + n; i++)
                x->model[i] = value;
}

static void kernel(struct run *r, struct area *x)
{
        size_t at, n = part(r, x, &at);
        const cl_bool yes = CL_TRUE;
        cl_event e;
        assert_int_equal(set_pointer(r->s.inc, 0, pointer(x, at)), CL_SUCCESS);
        if (rng_chance(&r->rng, 10)) /* from now on, it may reach all */
                assert_int_equal(clSetKernelExecInfo(
                                         r->s.inc, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
                                         sizeof(yes), &yes),
                                 CL_SUCCESS);
        assert_int_equal(
                clEnqueueNDRangeKernel(any_queue(r), r->s.inc, 1, NULL, &n, NULL, AFTER(r), &e),
                CL_SUCCESS);
        done(r, e);
        for (size_t i = at; i < at + n; i++)
                x->model[i]++;
}

static void copy(struct run *r, struct area *to, const struct area *from)
{
        size_t at, n = part(r, to, &at), begin = rng_below(&r->rng, from->count);
        cl_event e;
        if (to == from)
                return;
        if (n > from->count - begin)
                n = from->count - begin;
        assert_int_equal(mem_copy(any_queue(r), CL_FALSE, pointer(to, at), pointer(from, begin),
                                  n * 4, AFTER(r), &e),
                         CL_SUCCESS);
        done(r, e);
        memcpy(to->model + at, from->model + begin, n * 4);
}

static void make(struct run *r, struct area *x, size_t count)
{
        cl_int err;
        x->count = count;
        x->p = rng_chance(&r->rng, 50) ? shared_alloc(r->s.context, NULL, NULL, count * 4, 0, &err)
                                       : host_alloc(r->s.context, NULL, count * 4, 0, &err);
        assert_int_equal(err, CL_SUCCESS);
        x->model = calloc(count, 4);
        assert_non_null(x->model);
        fill(r, x);
}

static void drop(struct run *r, struct area *x)
{
        assert_int_equal(free_blocking(r->s.context, pointer(x, 0)), CL_SUCCESS);
        free(x->model);
}

static void step(struct run *r)
{
        struct area *x = &r->areas[rng_below(&r->rng, AREAS)];
        switch (rng_below(&r->rng, 10)) {
        case 0:
                fill(r, x);
                break;
        case 1:
                copy(r, x, &r->areas[rng_below(&r->rng, AREAS)]);
                break;
        case 2:
                sim_cut_client(r->s.sim, (unsigned)rng_below(&r->rng, sim_servers(r->s.sim)));
                break;
        case 3:
        case 4:
                kernel(r, x);
                break;
        case 5:
        case 6:
                host_access(r, x, true);
                break;
        default:
                host_access(r, x, false);
        }
}

static void run_seed(uint64_t seed, unsigned servers, enum svm_writes writes)
{
        struct run r = { .rng = { seed } };
        setup_begin(&r.s, &(struct sim_params){ .seed = seed,
                                                .servers = servers,
                                                .reconnect_ns = UINT64_MAX / 2,
                                                .wait_ns = UINT64_MAX,
                                                .svm_writes = writes,
                                                .cut_chance = (unsigned)rng_range(&r.rng, 1, 50),
                                                .cuts = 100 });
        find_functions(&r.s);
        for (unsigned i = 0; i < AREAS; i++)
                make(&r, &r.areas[i], i < 2 ? LARGE : rng_below(&r.rng, SMALL) + 1);
        for (unsigned i = 0; i < STEPS; i++)
                step(&r);
        settle(&r);
        for (unsigned i = 0; i < AREAS; i++) {
                const struct area *x = &r.areas[i];
                for (size_t k = 0; k < x->count; k++)
                        if (x->p[k] != x->model[k])
                                sim_fail(r.s.sim, "at the end, number %zu is wrong", k);
                drop(&r, &r.areas[i]);
        }
        setup_end(&r.s);
}

TEST(the_host_sees_of_shared_memory_what_a_sequence_gives_whatever_links_break)
{
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                run_seed(seed, 1 + seed % 3,
                         seed % 2 ? SVM_WRITES_USERFAULTFD : SVM_WRITES_MPROTECT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        the_host_sees_of_shared_memory_what_a_sequence_gives_whatever_links_break),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
