#include "support/program_state.h"

void program_kernels_new(struct program *p)
{
        static const char *const names[] = { "pocl.copy.i8",  "pocl.add.i32",  "pocl.mul.i32",
                                             "pocl.countred", "pocl.add.i8",   "pocl.mul.i16",
                                             "spancl.noop",   "spancl.inc.i32" };
        char all[512] = "";
        cl_int err;
        for (size_t i = 0; i < array_size(names); i++) {
                strcat(all, i ? ";" : "");
                strcat(all, names[i]);
        }
        p->program = clCreateProgramWithBuiltInKernels(p->context, p->device_count, p->devices, all,
                                                       &err);
        ok(p, err);
        ok(p, clBuildProgram(p->program, p->device_count, p->devices, NULL, NULL, NULL));
        for (size_t i = 0; i < array_size(names); i++) {
                struct kernel *k = &p->kernels[p->kernel_count++];
                k->r = registry_find(names[i], strlen(names[i]));
                k->k = clCreateKernel(p->program, names[i], &err);
                ok(p, err);
        }
}

/* Views in one kernel are the same or do not meet. */
static bool meets(const struct view *a, const struct view *b)
{
        return a->root == b->root && a->origin < b->origin + b->size &&
               b->origin < a->origin + a->size && (a->origin != b->origin || a->size != b->size);
}

static bool choose_args(struct program *p, struct kernel *k)
{
        struct view args[REGISTRY_ARGS_MAX] = { 0 };
        for (unsigned i = 0; k->r->args[i].name; i++) {
                if (!k->r->args[i].buffer)
                        continue;
                args[i] = *program_any_view(p);
                if (args[i].size < k->r->args[i].size)
                        return false;
                for (unsigned n = 0; n < i; n++)
                        if (k->r->args[n].buffer && meets(&args[i], &args[n]))
                                return false;
        }
        for (unsigned i = 0; k->r->args[i].name; i++) {
                if (k->r->args[i].buffer) {
                        k->args[i] = args[i];
                        k->pointers[i] = program_as_svm(p, &args[i]);
                        if (k->pointers[i])
                                ok(p, clSetKernelArgSVMPointer(k->k, i,
                                                               args[i].root->svm + args[i].origin));
                        else
                                ok(p, clSetKernelArg(k->k, i, sizeof(cl_mem), &args[i].mem));
                } else {
                        k->values[i] = (uint32_t)rng_u64(&p->rng);
                        ok(p, clSetKernelArg(k->k, i, sizeof(uint32_t), &k->values[i]));
                }
        }
        k->set = true;
        return true;
}

/* The same again and again, each time after the time before. */
static void run_chain(struct program *p, struct queue *q, struct kernel *k,
                      const struct registry_launch *l, const struct use *uses, unsigned count,
                      cl_event before)
{
        if (rng_chance(&p->rng, 50)) { /* what it waits for is complete, or in flight */
                program_release_all(p);
                sim_run(p->sim, rng_range(&p->rng, 1, 20000000));
        }
        for (uint64_t i = rng_range(&p->rng, 1, 16); i-- && before;) {
                cl_event e = NULL;
                p->wait_count = 0;
                program_wait_for(p, before);
                if (k->r->run(l) != CL_SUCCESS)
                        program_fail(p, "the oracle refuses a kernel", 0);
                ok(p, clEnqueueNDRangeKernel(q->q, k->k, l->dims, l->offset, l->global, NULL,
                                             p->wait_count, program_waits(p), &e));
                program_enqueued(p, q, e, uses, count);
                before = e;
        }
}

void program_do_kernel(struct program *p)
{
        struct queue *q = program_any_queue(p);
        struct kernel *k = &p->kernels[rng_below(&p->rng, p->kernel_count)];
        /* With the arguments of the launch before, sometimes. */
        if ((!k->set || rng_chance(&p->rng, 70)) && !choose_args(p, k))
                return;
        program_launch(p, q, k);
}

const struct view *program_choose_kernel(struct program *p, struct kernel **ret)
{
        struct kernel *k = &p->kernels[rng_below(&p->rng, p->kernel_count)];
        if (!choose_args(p, k))
                return NULL;
        *ret = k;
        for (unsigned i = 0; k->r->args[i].name; i++)
                if (k->r->args[i].buffer && k->r->args[i].access != REGISTRY_IN)
                        return &k->args[i];
        return NULL;
}

void program_launch(struct program *p, struct queue *q, struct kernel *k)
{
        struct use uses[REGISTRY_ARGS_MAX];
        unsigned count = 0;
        size_t items = SIZE_MAX;
        struct registry_launch l = { .dims = (unsigned)rng_range(&p->rng, 1, 3) };
        for (unsigned i = 0; k->r->args[i].name; i++) {
                const struct view *v = &k->args[i];
                if (!k->r->args[i].buffer) {
                        l.args[i] = (struct registry_value){ &k->values[i], 8 };
                        continue;
                }
                bool scalar = !strcmp(k->r->args[i].name, "count");
                size_t have = v->size / k->r->args[i].size;
                items = !scalar && have < items ? have : items;
                bool write = k->r->args[i].access != REGISTRY_IN;
                /* With a pointer, the kernel may use all of the allocation. */
                uses[count++] = k->pointers[i] ? (struct use){ v->root, 0, v->root->size, write }
                                               : program_whole(v, write);
                l.args[i] = (struct registry_value){ v->root->truth + v->origin, v->size };
        }
        items = items == SIZE_MAX ? 8 : items;
        size_t n = program_any_length(p, items);
        l.offset[0] = rng_chance(&p->rng, 50) ? 0 : rng_below(&p->rng, items - n + 1);
        for (unsigned i = 0; i < 3; i++)
                l.global[i] = 1;
        for (unsigned i = 1; i < l.dims && n > 1; i++) { /* the same work in more dimensions */
                size_t side = rng_range(&p->rng, 1, n < 8 ? n : 8);
                l.global[i] = side;
                n /= side;
        }
        l.global[0] = n;
        cl_event e, *want = program_event_for(p, q, &e);
        program_prepare(p, q, uses, count);
        say(p, "%u %s %zux%zux%zu at %zu queue %td\n", p->command, k->r->name, l.global[0],
            l.global[1], l.global[2], l.offset[0], q - p->queues);
        if (k->r->run(&l) != CL_SUCCESS)
                program_fail(p, "the oracle refuses a kernel", 0);
        ok(p, clEnqueueNDRangeKernel(q->q, k->k, l.dims,
                                     l.offset[0] || rng_chance(&p->rng, 30) ? l.offset : NULL,
                                     l.global, NULL, p->wait_count, program_waits(p), want));
        program_enqueued(p, q, e, uses, count);
        if (!q->in_order && rng_chance(&p->rng, 50))
                run_chain(p, q, k, &l, uses, count, e);
}
