/* Kernels: a native one for each domain, and the values of their arguments. A launch takes a
 * snapshot of the values, so that it may be submitted later than launches that follow it. */
#ifndef SPANCL_ENGINE_KERNEL_H
#define SPANCL_ENGINE_KERNEL_H

#include "engine/program/program.h"

/* One argument's value, immutable. The kernel, launches and native kernels share it. */
struct value {
        size_t refs;
        struct pool *pool; /* NULL: it is too large for one */
        struct arg arg;    /* arg.value is in `bytes` */
        uint8_t bytes[];
};

struct kernel_replica {
        struct backend_kernel *native;
        struct value **set; /* values set natively; arg_count entries or fewer */
        size_t set_count;
        /* The kernel's version that has these values, and the engine's `releases` when their
         * objects were looked up. */
        uint64_t version, releases;
        unsigned root; /* the device for which that was */
};

struct kernel {
        struct object object;
        struct program *program; /* held */
        char *name;
        struct value **args; /* NULL entries: not set yet */
        size_t arg_count;
        uint64_t version;                 /* counts changes of `args` */
        struct kernel_replica replicas[]; /* as the program's */
};

struct kernel *engine_kernel_find(struct engine *e, uint64_t id);

/* Apply the argument changes in a launch. SP_E_NOMEM. */
SP_NODISCARD int engine_kernel_update(struct kernel *k, struct bytes args);

/* Size of blocks for values up to a few bytes. */
extern const size_t engine_value_block;

/* NULL: out of memory. */
struct value *engine_value_new(struct engine *e, const struct arg *a);
void engine_value_ref(struct value *v);
void engine_value_unref(struct value *v);

/* Find the object that an argument's value names (arg_is_object). CL_INVALID_MEM_OBJECT,
 * CL_INVALID_SAMPLER: there is none of that kind, and *ret is NULL. */
SP_NODISCARD cl_int engine_arg_object(struct engine *e, const struct arg *a, struct object **ret);

/* Give the kernel in a domain, with `values` set, for device `root` of the backend. `objects`: the objects that values
 * name. */
SP_NODISCARD cl_int engine_kernel_prepare(struct kernel *k, unsigned domain, unsigned root,
                                          struct value **values, struct object **objects,
                                          size_t count, struct backend_kernel **ret)
        REQUIRES(engine_held);

/* The same with the kernel's current values. Objects that were looked up before are not looked up
 * again. */
SP_NODISCARD cl_int engine_kernel_current(struct kernel *k, unsigned domain, unsigned root,
                                          struct backend_kernel **ret) REQUIRES(engine_held);

int engine_handle_kernel_create(void *user, const struct wire_kernel_create *m)
        REQUIRES(engine_held);

#endif
