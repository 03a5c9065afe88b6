#include "engine/program/kernel.h"

#include "base/mem.h"

static void values_drop(struct value **values, size_t count)
{
        for (size_t i = 0; i < count; i++)
                engine_value_unref(values[i]);
        mem_free(values);
}

static void replica_drop(struct kernel *k, struct kernel_replica *r)
{
        if (r->native)
                k->object.engine->be->kernel.release(r->native);
        values_drop(r->set, r->set_count);
        *r = (struct kernel_replica){ 0 };
}

static void kernel_free(struct object *o) REQUIRES(engine_held)
{
        struct kernel *k = container_of(o, struct kernel, object);
        for (size_t i = 0; i < k->program->replica_count; i++)
                replica_drop(k, &k->replicas[i]);
        values_drop(k->args, k->arg_count);
        engine_object_unref(&k->program->object);
        mem_free(k->name);
        mem_free(k);
}

struct kernel *engine_kernel_find(struct engine *e, uint64_t id)
{
        struct object *o = engine_object_find(e, id);
        return o ? container_of(o, struct kernel, object) : NULL;
}

void engine_value_ref(struct value *v)
{
        if (v)
                v->refs++;
}

void engine_value_unref(struct value *v)
{
        if (!v || --v->refs)
                return;
        if (v->pool)
                pool_put(v->pool, v);
        else
                mem_free(v);
}

const size_t engine_value_block = sizeof(struct value) + 32;

struct value *engine_value_new(struct engine *e, const struct arg *a)
{
        size_t size = a->kind == ARG_VALUE ? (size_t)a->size : 0;
        bool small = sizeof(struct value) + size <= engine_value_block;
        struct value *v = small ? pool_get(&e->programs.value_pool, 0)
                                : mem_alloc(sizeof(struct value) + size);
        if (!v)
                return NULL;
        v->refs = 1;
        v->pool = small ? &e->programs.value_pool : NULL;
        v->arg = *a;
        v->arg.value = v->bytes;
        if (size)
                memcpy(v->bytes, a->value, size);
        return v;
}

/* Make room for `count` values. */
static int values_grow(struct value ***values, size_t *have, size_t count)
{
        if (count <= *have)
                return 0;
        struct value **p = mem_realloc(*values, count * sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        memset(p + *have, 0, (count - *have) * sizeof(*p));
        *values = p;
        *have = count;
        return 0;
}

/* If only the kernel and its native kernels hold the value, store the new one in its place. The
 * native kernels then have to set it. */
static bool value_replace(struct kernel *k, struct value *v, const struct arg *a)
{
        size_t size = a->kind == ARG_VALUE ? (size_t)a->size : 0;
        if (!v || !v->pool || sizeof(*v) + size > engine_value_block)
                return false;
        for (size_t i = 0; i < k->program->replica_count && v->refs > 1; i++) {
                struct kernel_replica *r = &k->replicas[i];
                if (a->index < r->set_count && r->set[a->index] == v) {
                        /* Keep an old pointer value recognisable: unpoints. */
                        if (v->arg.kind == ARG_SVM)
                                return false;
                        r->set[a->index] = NULL;
                        v->refs--;
                }
        }
        if (v->refs > 1)
                return false;
        v->arg = *a;
        v->arg.value = v->bytes;
        if (size)
                memcpy(v->bytes, a->value, size);
        return true;
}

int engine_kernel_update(struct kernel *k, struct bytes args)
{
        struct arg a;
        k->version += args.size != 0;
        while (args_next(&args, &a)) {
                int r = values_grow(&k->args, &k->arg_count, (size_t)a.index + 1);
                if (r < 0)
                        return r;
                if (value_replace(k, k->args[a.index], &a))
                        continue;
                struct value *v = engine_value_new(k->object.engine, &a);
                if (!v)
                        return SP_E_NOMEM;
                engine_value_unref(k->args[a.index]);
                k->args[a.index] = v;
        }
        return 0;
}

static cl_int replica_create(struct kernel *k, unsigned domain, struct kernel_replica *r)
{
        struct backend_program *program;
        if (k->object.excess)
                return CL_OUT_OF_RESOURCES;
        if (k->program->busy)
                return CL_INVALID_PROGRAM_EXECUTABLE;
        cl_int status = engine_program_native(k->program, domain, &program);
        if (status < 0)
                return status;
        return k->object.engine->be->kernel.create(program, k->name, &r->native);
}

/* Is an argument that was a pointer into shared virtual memory now a buffer? NVIDIA's 580 then fails the
 * launch with CL_INVALID_KERNEL_ARGS; such a kernel is made anew. */
static bool unpoints(const struct kernel_replica *r, struct value **values, size_t count)
{
        for (size_t i = 0; i < count && i < r->set_count; i++)
                if (r->set[i] && values[i] && r->set[i]->arg.kind == ARG_SVM &&
                    values[i]->arg.kind != ARG_SVM)
                        return true;
        return false;
}

static cl_int arg_set(struct kernel *k, unsigned domain, unsigned root,
                      struct backend_kernel *native, struct value *v, struct object *o)
        REQUIRES(engine_held)
{
        struct backend_buffer *buffer = NULL;
        struct backend_sampler *sampler = NULL;
        cl_int status = CL_SUCCESS;
        if (o && v->arg.kind == ARG_QUEUE) {
                struct queue *q = container_of(o, struct queue, object);
                return q->native ? k->object.engine->be->kernel.set_queue(native, v->arg.index,
                                                                          q->native)
                                 : q->status;
        }
        if (o && v->arg.kind == ARG_SAMPLER)
                status = engine_sampler_native(container_of(o, struct sampler, object), domain,
                                               &sampler);
        else if (o)
                status = engine_buffer_native(container_of(o, struct buffer, object), domain, root,
                                              &buffer);
        if (status < 0)
                return status;
        return k->object.engine->be->kernel.set_arg(native, &v->arg, buffer, sampler);
}

cl_int engine_arg_object(struct engine *e, const struct arg *a, struct object **ret)
{
        *ret = NULL;
        if (a->kind == ARG_SAMPLER) {
                struct sampler *s = engine_sampler_find(e, a->object);
                if (s)
                        *ret = &s->object;
                return s ? CL_SUCCESS : CL_INVALID_SAMPLER;
        }
        if (a->kind == ARG_QUEUE) {
                struct queue *q = engine_device_queue_find(e, a->object);
                if (!q)
                        return CL_INVALID_DEVICE_QUEUE;
                *ret = &q->object;
                return CL_SUCCESS;
        }
        struct buffer *b = engine_buffer_find(e, a->object);
        if (!b || engine_buffer_is_image(b) != (a->kind == ARG_IMAGE) ||
            engine_buffer_is_pipe(b) != (a->kind == ARG_PIPE))
                return CL_INVALID_MEM_OBJECT;
        *ret = &b->object;
        return CL_SUCCESS;
}

/* A value that is set already: count its buffer on this device, too. */
static cl_int arg_charge(struct engine *e, const struct value *v, unsigned domain, unsigned root,
                         struct object *o) REQUIRES(engine_held)
{
        if (!engine_limits_devices(e) || !o || v->arg.kind == ARG_QUEUE ||
            v->arg.kind == ARG_SAMPLER)
                return CL_SUCCESS;
        return engine_buffer_charge(container_of(o, struct buffer, object), domain, root);
}

cl_int engine_kernel_prepare(struct kernel *k, unsigned domain, unsigned root,
                             struct value **values, struct object **objects, size_t count,
                             struct backend_kernel **ret)
{
        const struct program_replica *in = engine_program_replica(k->program, domain);
        if (!in)
                return CL_INVALID_DEVICE;
        struct kernel_replica *r = &k->replicas[in - k->program->replicas];
        r->releases = UINT64_MAX;
        if (r->native && unpoints(r, values, count))
                replica_drop(k, r);
        if (!r->native) {
                cl_int status = replica_create(k, domain, r);
                if (status < 0)
                        return status;
        }
        if (values_grow(&r->set, &r->set_count, count) < 0)
                return CL_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; i < count; i++) {
                struct value *v = values[i];
                cl_int status = CL_SUCCESS;
                if (!v)
                        continue;
                if (v == r->set[i]) {
                        status = arg_charge(k->object.engine, v, domain, root, objects[i]);
                        if (status < 0)
                                return status;
                        continue;
                }
                engine_value_unref(r->set[i]);
                r->set[i] = NULL;
                status = arg_set(k, domain, root, r->native, v, objects[i]);
                if (status < 0)
                        return status;
                engine_value_ref(v);
                r->set[i] = v;
        }
        *ret = r->native;
        return CL_SUCCESS;
}

cl_int engine_kernel_current(struct kernel *k, unsigned domain, unsigned root,
                             struct backend_kernel **ret)
{
        enum { FEW = 16 };
        struct engine *e = k->object.engine;
        const struct program_replica *in = engine_program_replica(k->program, domain);
        struct object *few[FEW] = { NULL };
        if (!in || k->arg_count > FEW)
                return CL_INVALID_DEVICE;
        struct kernel_replica *r = &k->replicas[in - k->program->replicas];
        if (r->native && r->version == k->version && r->releases == e->objects.releases &&
            (r->root == root || !engine_limits_devices(e))) {
                *ret = r->native;
                return CL_SUCCESS;
        }
        for (size_t i = 0; i < k->arg_count; i++) {
                const struct value *v = k->args[i];
                if (!v || !arg_is_object(v->arg.kind) || !v->arg.object)
                        continue;
                cl_int status = engine_arg_object(e, &v->arg, &few[i]);
                if (status < 0)
                        return status;
        }
        cl_int status = engine_kernel_prepare(k, domain, root, k->args, few, k->arg_count, ret);
        if (status < 0)
                return status;
        r->version = k->version;
        r->releases = e->objects.releases;
        r->root = root;
        return CL_SUCCESS;
}

int engine_handle_kernel_create(void *user, const struct wire_kernel_create *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct program *p = engine_program_find(e, m->program);
        if (!p)
                return SP_E_PROTO;
        struct kernel *k = mem_zalloc(sizeof(*k) + p->replica_count * sizeof(k->replicas[0]));
        if (!k)
                return SP_E_NOMEM;
        k->object = (struct object){ .engine = e, .id = m->kernel, .refs = 1, .free = kernel_free };
        k->program = p;
        engine_object_ref(&p->object);
        k->name = mem_alloc(m->name.size + 1);
        int r = k->name ? engine_object_add(e, &k->object) : SP_E_NOMEM;
        if (r < 0) {
                engine_object_unref(&k->object);
                return r;
        }
        memcpy(k->name, m->name.data, m->name.size);
        k->name[m->name.size] = '\0';
        return 0;
}
