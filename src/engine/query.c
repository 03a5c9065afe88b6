#include "engine/query.h"

#include "base/mem.h"
#include "engine/device.h"
#include "engine/program/kernel.h"

enum { VALUE_MAX = 64 }; /* as in kernel_answer */

/* Give the kernel of a device's domain with its current arguments. The answer does not depend on objects, so
 * one that the client has released meanwhile is left out. */
static cl_int prepare(struct kernel *k, unsigned device, struct backend_kernel **ret)
        REQUIRES(engine_held)
{
        struct object **objects = mem_zalloc((k->arg_count + 1) * sizeof(*objects));
        struct value **values = mem_zalloc((k->arg_count + 1) * sizeof(*values));
        cl_int status = CL_OUT_OF_HOST_MEMORY;
        struct engine *e = k->object.engine;
        if (objects && values) {
                for (size_t i = 0; i < k->arg_count; i++) {
                        struct value *v = k->args[i];
                        bool names = v && arg_is_object(v->arg.kind) && v->arg.object;
                        if (!names || engine_arg_object(e, &v->arg, &objects[i]) == CL_SUCCESS)
                                values[i] = v;
                }
                status = engine_kernel_prepare(k, e->be->device.domain(e->backend, device),
                                               engine_device_root(e, device), values, objects,
                                               k->arg_count, ret);
        }
        mem_free(values);
        mem_free(objects);
        return status;
}

struct query {
        struct list link;      /* program's questions, while it waits */
        struct kernel *kernel; /* held while it waits */
        uint64_t request, device, name, size;
        size_t input[6], input_count;
};

/* A kernel's answers are all sizes; they travel in 8 bytes each. */
static size_t native_size(uint64_t size)
{
        return (size_t)size / 8 * sizeof(size_t) + (size_t)size % 8;
}

static cl_int ask(const struct query *q, uint8_t *value) REQUIRES(engine_held)
{
        struct kernel *k = q->kernel;
        struct engine *e = k->object.engine;
        struct backend_kernel *native;
        /* The client may have released a sub-device of the program. */
        if (!engine_program_has(k->program, q->device) || !engine_device_valid(e, q->device))
                return CL_INVALID_DEVICE;
        cl_int status = prepare(k, (unsigned)q->device, &native);
        if (status < 0)
                return status;
        return e->be->kernel.query(native, (unsigned)q->device, (uint32_t)q->name, q->input,
                                   q->input_count, native_size(q->size), value);
}

static void answer(const struct query *q) REQUIRES(engine_held)
{
        uint8_t value[VALUE_MAX] = { 0 };
        cl_int status = ask(q, value);
        for (size_t i = (size_t)q->size / 8; i-- && sizeof(size_t) != 8;) {
                size_t one;
                memcpy(&one, value + i * sizeof(one), sizeof(one));
                bytes_put_u64(value + i * 8, one);
        }
        peer_send(engine_client(q->kernel->object.engine), kernel_answer, .request = q->request,
                  .status = status, .value = bytes_of(value, status < 0 ? 0 : (size_t)q->size));
}

/* Let the query wait for the program. False: there is no room for it. */
static bool wait_for_program(const struct query *q)
{
        struct program *p = q->kernel->program;
        struct query *kept = NULL;
        if (p->question_count < QUERY_WAITING_MAX)
                kept = mem_alloc(sizeof(*kept));
        if (!kept)
                return false;
        *kept = *q;
        engine_object_ref(&q->kernel->object);
        list_append(&p->questions, &kept->link);
        p->question_count++;
        return true;
}

void engine_query_resume(struct program *p)
{
        while (!list_empty(&p->questions)) {
                struct query *q = list_entry(p->questions.next, struct query, link);
                list_remove(&q->link);
                p->question_count--;
                answer(q);
                engine_object_unref(&q->kernel->object);
                mem_free(q);
        }
}

int engine_handle_kernel_query(void *user, const struct wire_kernel_query *m)
{
        struct kernel *k = engine_kernel_find(((struct peer *)user)->engine, m->kernel);
        if (!k)
                return SP_E_PROTO;
        int r = engine_kernel_update(k, m->args);
        if (r < 0)
                return r;
        struct query q = { .kernel = k,
                           .request = m->request,
                           .device = m->device,
                           .name = m->name,
                           .size = m->size,
                           .input_count = m->input.count };
        for (size_t i = 0; i < m->input.count; i++)
                q.input[i] = (size_t)wire_u64s_at(m->input, i);
        /* Without room to wait, ask now: the kernel answers that it can't be asked. */
        if (!k->program->loading || !wait_for_program(&q))
                answer(&q);
        return 0;
}
