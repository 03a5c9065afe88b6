#include "engine/query.h"

#include "base/mem.h"
#include "engine/kernel.h"

enum { VALUE_MAX = 64 }; /* as in kernel_answer */

/* The kernel of a domain with the arguments that it has now. An answer does not need an object, so one that
 * the client has released meanwhile is left out. */
static cl_int prepare(struct kernel *k, unsigned domain, struct backend_kernel **ret)
{
        struct object **objects = mem_zalloc((k->arg_count + 1) * sizeof(*objects));
        struct value **values = mem_zalloc((k->arg_count + 1) * sizeof(*values));
        cl_int status = CL_OUT_OF_HOST_MEMORY;
        if (objects && values) {
                for (size_t i = 0; i < k->arg_count; i++) {
                        struct value *v = k->args[i];
                        bool names = v && arg_is_object(v->arg.kind) && v->arg.object;
                        if (!names ||
                            engine_arg_object(k->object.engine, &v->arg, &objects[i]) == CL_SUCCESS)
                                values[i] = v;
                }
                status = engine_kernel_prepare(k, domain, values, objects, k->arg_count, ret);
        }
        mem_free(values);
        mem_free(objects);
        return status;
}

static cl_int ask(struct kernel *k, const struct wire_kernel_query *m, uint8_t *value)
{
        struct engine *e = k->object.engine;
        struct backend_kernel *native;
        size_t input[6];
        if (!engine_program_has(k->program, m->device))
                return CL_INVALID_DEVICE;
        for (size_t i = 0; i < m->input.count; i++)
                input[i] = (size_t)wire_u64s_at(m->input, i);
        cl_int status = prepare(k, e->be->device_domain(e->backend, (unsigned)m->device), &native);
        if (status < 0)
                return status;
        return e->be->kernel_query(native, (unsigned)m->device, (uint32_t)m->name, input,
                                   m->input.count, (size_t)m->size, value);
}

int engine_handle_kernel_query(void *user, const struct wire_kernel_query *m)
{
        struct peer *peer = user;
        struct kernel *k = engine_kernel_find(peer->engine, m->kernel);
        if (!k)
                return SP_E_PROTO;
        int r = engine_kernel_update(k, m->args);
        if (r < 0)
                return r;
        uint8_t value[VALUE_MAX] = { 0 };
        cl_int status = ask(k, m, value);
        peer_send(peer, kernel_answer, .request = m->request, .status = status,
                  .value = bytes_of(value, status < 0 ? 0 : (size_t)m->size));
        return 0;
}
