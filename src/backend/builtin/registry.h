/* Built-in kernels by name and number. The registry describes their arguments. The reference
 * backend and the emulator of accelerators execute them, and tests compare with them. It is one
 * table, registry.def, and rows of a text file that a designer of hardware adds at run time.
 * Immutable, thread-safe. */
#ifndef SPANCL_BACKEND_BUILTIN_REGISTRY_H
#define SPANCL_BACKEND_BUILTIN_REGISTRY_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { REGISTRY_ARGS_MAX = 20 };

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

/* State that kernels of a device attach to a buffer. It is freed with the buffer. */
struct registry_attachment {
        void *data;
        void (*free)(void *data); /* NULL: nothing is attached */
};

/* The value of an argument when the kernel runs. */
struct registry_value {
        void *data; /* buffer: its bytes, NULL for a null buffer; value: the value */
        size_t size;
        struct registry_attachment *attachment; /* of a buffer that was created as a whole */
};

struct registry_launch {
        unsigned dims;
        size_t offset[3], global[3]; /* unused dimensions: 0 and 1; the product fits into size_t */
        struct registry_value args[REGISTRY_ARGS_MAX];
        void *user; /* of the device (reference_devices); NULL on others */
};

struct registry_kernel {
        unsigned id;
        const char *name, *doc;
        struct registry_arg args[REGISTRY_ARGS_MAX + 1]; /* ends with an argument without a name */
        /* CL_OUT_OF_RESOURCES: it would access bytes outside one of its buffers; nothing was
         * written. NULL: the kernel is from a text file, and this host can't compute it. */
        cl_int (*run)(const struct registry_launch *l);
};

/* Find the kernel of that name (not terminated), or of that number; NULL if there is none. */
const struct registry_kernel *registry_find(const char *name, size_t size);
const struct registry_kernel *registry_find_id(unsigned id);

unsigned registry_arg_count(const struct registry_kernel *k);

/* The i-th kernel; NULL past the end. */
const struct registry_kernel *registry_at(size_t i);

/* Rows of a text. One row a line, `#` begins a comment:
 *
 *      0x100 acme.fir.f32(const float *in, float *out, uint taps)
 *      0x101 acme.add.i32 = pocl.add.i32
 *
 * An argument with `*` is a buffer, only read if `const`. The second form has another kernel's
 * arguments and meaning. A row replaces the kernel of the table that has its number or name. */
struct registry_rows;

enum { REGISTRY_ERROR_SIZE = 160 };

/* Parse rows. SP_E_INVAL with a sentence in `error`; SP_E_NOMEM. */
SP_NODISCARD int registry_rows_parse(const char *text, struct registry_rows **ret,
                                     char error[REGISTRY_ERROR_SIZE]);
/* The same from a file; SP_E_NOENT: it can't be read. */
SP_NODISCARD int registry_rows_load(const char *path, struct registry_rows **ret,
                                    char error[REGISTRY_ERROR_SIZE]);
struct registry_rows *registry_rows_free(struct registry_rows *rows);

/* Find a kernel among the rows (NULL: none), then in the table; NULL: in neither. */
const struct registry_kernel *registry_rows_find_id(const struct registry_rows *rows, unsigned id);

#endif
