#include "support/program_state.h"

void program_fail(const struct program *p, const char *what, long value)
{
        sim_fail(p->sim, "command %u: %s (%ld)", p->command, what, value);
}

void *program_need(struct program *p, void *memory)
{
        if (!memory)
                program_fail(p, "out of memory", 0);
        return memory;
}

void *program_copy_of(struct program *p, const void *data, size_t size)
{
        return memcpy(program_need(p, malloc(size)), data, size);
}

uint8_t *program_random_bytes(struct program *p, size_t size)
{
        uint8_t *data = program_need(p, malloc(size));
        uint64_t x = rng_u64(&p->rng);
        for (size_t i = 0; i < size; i++)
                data[i] = (uint8_t)(x >> (i & 7) * 8) ^ (uint8_t)(i * 167 >> 3);
        return data;
}

void program_keep(struct program *p, uint8_t *data)
{
        struct source *s = program_need(p, malloc(sizeof(*s)));
        *s = (struct source){ p->sources, data };
        p->sources = s;
}

/* ---- choices -------------------------------------------------------------------------------- */

struct queue *program_any_queue(struct program *p)
{
        return &p->queues[rng_below(&p->rng, p->queue_count)];
}

struct view *program_any_view(struct program *p)
{
        return &p->views[rng_below(&p->rng, p->view_count)];
}

size_t program_any_length(struct program *p, size_t max)
{
        return rng_chance(&p->rng, 30) ? max : rng_range(&p->rng, 1, max);
}

/* A part of a view, in bytes. */
struct use program_any_part(struct program *p, const struct view *v, bool write, size_t unit)
{
        size_t units = v->size / unit, n = program_any_length(p, units);
        size_t at = rng_below(&p->rng, units - n + 1);
        size_t begin = v->origin + at * unit;
        return (struct use){ v->root, begin, begin + n * unit, write };
}

struct use program_whole(const struct view *v, bool write)
{
        return (struct use){ v->root, v->origin, v->origin + v->size, write };
}

/* Is the command on this view to be one on shared virtual memory? */
bool program_as_svm(struct program *p, const struct view *v)
{
        return v->root->svm && rng_chance(&p->rng, 60);
}

/* ---- objects -------------------------------------------------------------------------------- */

static void CL_CALLBACK on_destroyed(cl_mem m, void *user)
{
        struct program *p = user;
        p->destroyed++;
}

static void root_new(struct program *p, struct root *r)
{
        cl_int err;
        size_t log2 = rng_range(&p->rng, 8, SIZE_MAX_LOG2);
        r->size = rng_range(&p->rng, 200, (size_t)1 << log2);
        r->truth = program_random_bytes(p, r->size);
        r->accesses = NULL;
        r->host = NULL;
        r->svm = NULL;
        cl_mem_flags flags = CL_MEM_READ_WRITE;
        void *host = NULL;
        uint64_t kind = rng_below(&p->rng, 5);
        if (p->params->ahead && (kind == 1 || kind == 3))
                kind = 4;
        switch (kind) {
        case 0:
                flags |= CL_MEM_COPY_HOST_PTR;
                host = r->truth;
                break;
        case 1:
                flags |= CL_MEM_USE_HOST_PTR;
                host = r->host = program_copy_of(p, r->truth, r->size);
                sim_keep(p->sim, host); /* until the destructor callback it is the buffer's */
                break;
        case 2:
                flags |= CL_MEM_ALLOC_HOST_PTR;
                break;
        case 3:
                r->svm = clSVMAlloc(p->context, CL_MEM_READ_WRITE, r->size, 0);
                if (!r->svm && !p->broken)
                        program_fail(p, "no shared virtual memory", (long)r->size);
                break;
        default:
                break;
        }
        r->mem = clCreateBuffer(p->context, flags | (r->svm ? CL_MEM_USE_HOST_PTR : 0), r->size,
                                r->svm ? r->svm : host, &err);
        ok(p, err);
        if (!p->broken) /* else it might be called after the program's end */
                ok(p, clSetMemObjectDestructorCallback(r->mem, on_destroyed, p));
        p->views[p->view_count++] = (struct view){ r->mem, r, 0, r->size };
        if (host)
                return;
        struct queue *q = program_any_queue(p);
        ok(p, clEnqueueWriteBuffer(q->q, r->mem, CL_TRUE, 0, r->size, r->truth, 0, NULL, NULL));
        ok(p, clFinish(q->q)); /* a blocking write only gives its memory back */
}

static void sub_new(struct program *p)
{
        struct root *r = &p->roots[rng_below(&p->rng, p->root_count)];
        cl_uint align_bits = 0;
        cl_int err;
        for (cl_uint i = 0; i < p->device_count; i++) {
                cl_uint bits = 0;
                ok(p, clGetDeviceInfo(p->devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits),
                                      &bits, NULL));
                align_bits = bits > align_bits ? bits : align_bits;
        }
        size_t align = align_bits < 8 ? 1 : align_bits / 8, slots = r->size / align;
        if (slots < 2)
                return;
        size_t origin = rng_below(&p->rng, slots) * align;
        cl_buffer_region region = { origin, rng_range(&p->rng, 1, r->size - origin) };
        cl_mem m = clCreateSubBuffer(r->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                     &region, &err);
        ok(p, err);
        p->views[p->view_count++] = (struct view){ m, r, region.origin, region.size };
}

static void queues_new(struct program *p)
{
        p->queue_count = (unsigned)rng_range(&p->rng, 1, QUEUES);
        for (unsigned i = 0; i < p->queue_count; i++) {
                struct queue *q = &p->queues[i];
                cl_int err;
                q->in_order = rng_chance(&p->rng, 50);
                cl_queue_properties props[3] = { CL_QUEUE_PROPERTIES };
                props[1] = (q->in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) |
                           (rng_chance(&p->rng, 30) ? CL_QUEUE_PROFILING_ENABLE : 0);
                q->q = clCreateCommandQueueWithProperties(
                        p->context, p->devices[rng_below(&p->rng, p->device_count)], props, &err);
                ok(p, err);
        }
}

static void begin(struct program *p)
{
        cl_int err;
        cl_device_id all[DEVICES];
        cl_uint count = 0;
        ok(p, clGetDeviceIDs(sim_platform(p->sim), CL_DEVICE_TYPE_CUSTOM, DEVICES, all, &count));
        for (cl_uint i = 0; i < count && i < DEVICES; i++)
                if (rng_chance(&p->rng, 80) || (i + 1 == count && !p->device_count))
                        p->devices[p->device_count++] = all[i];
        p->context = clCreateContext(NULL, p->device_count, p->devices, NULL, NULL, &err);
        ok(p, err);
        queues_new(p);
        p->root_count = (unsigned)rng_range(&p->rng, 1, ROOTS);
        for (unsigned i = 0; i < p->root_count; i++)
                root_new(p, &p->roots[i]);
        for (uint64_t n = rng_below(&p->rng, SUBS + 1); n; n--)
                sub_new(p);
        program_kernels_new(p);
}

static void check_all(struct program *p)
{
        program_finish_all(p);
        for (unsigned i = 0; i < p->root_count; i++) {
                struct root *r = &p->roots[i];
                uint8_t *got = program_need(p, malloc(r->size));
                ok(p, clEnqueueReadBuffer(p->queues[0].q, r->mem, CL_TRUE, 0, r->size, got, 0, NULL,
                                          NULL));
                program_compare(p, got, r->truth, r->size, p->command, "whole buffer");
                free(got);
        }
}

static void end(struct program *p)
{
        mem_fail_at(0);
        check_all(p);
        if (p->params->broken) {
                for (unsigned i = 0; i < sim_servers(p->sim); i++)
                        sim_kill_server(p->sim, i);
                sim_run(p->sim, 1000000000);
                program_compare_pending(p);
        }
        sim_run(p->sim, 1000);
        /* Open commands complete when their session is over. A clFinish that returned early did not wait for that. */
        for (unsigned n = 0; (p->params->restart || p->params->ahead) &&
                             p->callbacks_called != p->callbacks_asked && n < 100000;
             n++)
                sim_run(p->sim, 1000000);
        /* Also of what failed; without memory one may be lost, which is logged. */
        if (p->callbacks_called != p->callbacks_asked && !p->params->no_memory)
                program_fail(p, "callbacks missing",
                             (long)p->callbacks_asked - p->callbacks_called);
        for (unsigned i = 0; i < RECENT; i++)
                if (p->recent[i])
                        ok(p, clReleaseEvent(p->recent[i]));
        for (unsigned i = 0; i < p->kernel_count; i++)
                ok(p, clReleaseKernel(p->kernels[i].k));
        for (unsigned i = p->view_count; i-- > 0;)
                ok(p, clReleaseMemObject(p->views[i].mem));
        for (unsigned i = 0; i < p->root_count; i++) {
                free(p->roots[i].truth);
                clSVMFree(p->context, p->roots[i].svm);
        }
        for (unsigned i = 0; i < p->queue_count; i++)
                ok(p, clReleaseCommandQueue(p->queues[i].q));
        /* Transfers of commands that failed end with their server. */
        for (unsigned i = 0; i < sim_servers(p->sim) && p->broken; i++) {
                if (p->params->restart)
                        sim_restart_server(p->sim, i, NULL);
                else
                        sim_kill_server(p->sim, i);
        }
        /* A link that was cut just now comes back first. */
        for (unsigned n = 0;
             n < 100 && (!n || (p->destroyed != p->root_count && !p->params->broken)); n++)
                sim_run(p->sim, 1000000000);
        if (p->destroyed != p->root_count && !p->params->broken)
                program_fail(p, "destructors missing", (long)p->root_count - p->destroyed);
        ok(p, clReleaseProgram(p->program));
        ok(p, clReleaseContext(p->context));
}

static void break_something(struct program *p)
{
        unsigned n = sim_servers(p->sim), i = (unsigned)rng_below(&p->rng, n);
        if (p->params->restart) {
                say(p, "%u restart server %u\n", p->command, i);
                sim_restart_server(p->sim, i, NULL);
        } else if (n > 1 && rng_chance(&p->rng, 40)) {
                unsigned k = (i + 1) % n;
                say(p, "%u cut the link between servers %u and %u\n", p->command, i, k);
                sim_cut_peers(p->sim, i, k);
        } else {
                say(p, "%u kill server %u\n", p->command, i);
                sim_kill_server(p->sim, i);
        }
        p->broken = true;
}

void program_run(struct sim *sim, const struct program_params *params)
{
        static void (*const actions[])(struct program *) = {
                program_do_write,  program_do_read,      program_do_fill,    program_do_copy,
                program_do_rect,   program_do_copy_rect, program_do_map,     program_do_wait,
                program_do_kernel, program_do_kernel,    program_do_kernel,  program_do_kernel,
                program_do_write,  program_do_read,      program_do_migrate, program_do_marker,
        };
        struct program p = {
                .sim = sim, .rng = { params->seed }, .params = params, .broken = params->broken
        };
        unsigned commands =
                params->commands ? params->commands : (unsigned)rng_range(&p.rng, 1, 120);
        begin(&p);
        for (p.command = 1; p.command <= commands; p.command++) {
                actions[rng_below(&p.rng, array_size(actions))](&p);
                if (params->steps && rng_chance(&p.rng, 20))
                        program_do_steps(&p);
                if (params->ahead && rng_chance(&p.rng, 40))
                        program_finish(&p, program_any_queue(&p));
                if (params->ahead && rng_chance(&p.rng, 30))
                        program_query(&p);
                if (rng_chance(&p.rng, 3))
                        program_finish_all(&p);
                if (params->check_each)
                        check_all(&p);
                if (params->no_memory)
                        mem_fail_at(rng_below(&p.rng, 40));
                if (p.command == params->break_after)
                        break_something(&p);
        }
        end(&p);
}
