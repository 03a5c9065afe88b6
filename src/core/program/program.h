/* Programs. A program has one id on all servers and is declared on a server when it is first built
 * there (core/program/job.h). The results of its builds are in core/program/build.h. See
 * docs/internals/program.md. */
#ifndef SPANCL_CORE_PROGRAM_H
#define SPANCL_CORE_PROGRAM_H

#include "core/client.h"
#include "core/handle.h"
#include "core/program/content.h"

enum program_kind {
        PROGRAM_SOURCE = 0,
        PROGRAM_BINARY = 1,
        PROGRAM_IL = 2,
        PROGRAM_BUILT_IN = 3,
        PROGRAM_LINKED = 4
};

struct program_params {
        enum program_kind kind;
        const cl_device_id *devices; /* copied */
        cl_uint device_count;
        /* One of them, taken over (mem_free) also on failure: */
        char *source; /* with a final NUL that source_size does not count */
        size_t source_size;
        void *il;
        size_t il_size;
        struct bytes *binaries; /* as the devices' implementations made them; array and data */
        char *kernel_names;
};

/* May the text call printf? A macro can hide the name, but hardly this part of it. */
bool program_text_prints(struct bytes text);

/* SP_E_NOMEM. */
SP_NODISCARD int program_new(cl_context x, const struct program_params *params, cl_program *ret)
        REQUIRES(client_held);

/* Make sure that the server knows the program: sends program_create once per server. Its bytes go as `mode`
 * says; with CONTENT_SEND they are sent also if it is declared already. SP_E_*, cl_int. */
SP_NODISCARD int program_declare(cl_program p, struct server *s, enum content_mode mode)
        REQUIRES(client_held);

/* clSetProgramSpecializationConstant behind its checks: SP_E_NOMEM. */
SP_NODISCARD int program_constant(cl_program p, cl_uint id, struct bytes value)
        REQUIRES(client_held);

/* CL_PROGRAM_BINARY_TYPE of the program's device i. */
cl_program_binary_type program_binary_type(const struct _cl_program *p, cl_uint i)
        REQUIRES(client_held);

/* Index of a device in the program's; -1: none of them. */
int program_device(const struct _cl_program *p, cl_device_id d);

/* Has some device an executable? */
bool program_is_built(const struct _cl_program *p) REQUIRES(client_held);

/* Ask the servers to judge the program's binaries. ret_status has room for each device; each entry
 * becomes CL_SUCCESS or the device's error from clCreateProgramWithBinary. SP_E_* or cl_int: a
 * server can't be asked. Releases the lock while it waits. */
SP_NODISCARD int program_inspect(cl_program p, cl_int *ret_status) REQUIRES(client_held);

/* Fill in p->executables: ask the servers for the binaries that are not known yet. SP_E_* or
 * cl_int. Releases the lock while it waits. */
SP_NODISCARD int program_fetch_binaries(cl_program p) REQUIRES(client_held);

/* Forget the binaries that program_fetch_binaries got, because a new build replaces them. */
void program_drop_binaries(cl_program p);

/* The servers may forget the program. */
void program_undeclare(cl_program p) REQUIRES(client_held);

void program_hold(cl_program p) REQUIRES(client_held);
void program_unhold(cl_program p) REQUIRES(client_held);

#endif
