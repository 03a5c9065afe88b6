/* Built-in kernels by name: what the reference backend executes and what describes their arguments.
 * One table, registry.def. Immutable, thread-safe. */
#ifndef SPANCL_BACKEND_REFERENCE_REGISTRY_H
#define SPANCL_BACKEND_REFERENCE_REGISTRY_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REGISTRY_ARGS_MAX = 8 };

enum registry_access {
        REGISTRY_IN = 1,
        REGISTRY_OUT = 2,
        REGISTRY_INOUT = 3,
};

struct registry_arg {
        const char *name;
        const char *type; /* as clGetKernelArgInfo gives it: "int*", "uint" */
        size_t size;      /* of an element or of the value */
        bool buffer;
        enum registry_access access;
};

/* What an argument is set to when the kernel runs. */
struct registry_value {
        void *data; /* buffer: its bytes, NULL for a null buffer; value: the value */
        size_t size;
};

struct registry_launch {
        unsigned dims;
        size_t offset[3], global[3]; /* unused dimensions: 0 and 1; the product fits into size_t */
        struct registry_value args[REGISTRY_ARGS_MAX];
};

struct registry_kernel {
        unsigned id;
        const char *name, *doc;
        struct registry_arg args[REGISTRY_ARGS_MAX + 1]; /* ends with one without a name */
        /* CL_OUT_OF_RESOURCES: it would leave one of its buffers; nothing was written. */
        cl_int (*run)(const struct registry_launch *l);
};

/* The kernel of that name (not terminated), NULL if there is none. */
const struct registry_kernel *registry_find(const char *name, size_t size);

unsigned registry_arg_count(const struct registry_kernel *k);

/* The i-th, NULL past the end. */
const struct registry_kernel *registry_at(size_t i);

#endif
