/* Programs. A program has one id on all servers and is declared on a server when it is first built there.
 * Building asks all servers at the same time; what they answer (logs, kernels and their arguments) is
 * kept and answered locally from then on. See docs/internals/program.md. */
#ifndef SPANCL_CORE_PROGRAM_H
#define SPANCL_CORE_PROGRAM_H

#include "core/client.h"

enum program_kind {
        PROGRAM_SOURCE = 0,
        PROGRAM_BINARY = 1,
        PROGRAM_IL = 2,
        PROGRAM_BUILT_IN = 3,
        PROGRAM_LINKED = 4
};

/* What a server answered to one build; several builds of a program may live on in one result. */
struct build_reply {
        unsigned holds;
        struct buf info;
};

/* The state of one of the program's devices. */
struct device_build {
        cl_build_status status; /* CL_BUILD_IN_PROGRESS is told by program->job */
        char *options;          /* as given; NULL: none */
        char *log;              /* NULL: none */
        cl_program_binary_type type;
        size_t globals;            /* bytes of program scope variables */
        bool uniform;              /* its work-groups are all of one size */
        struct build_reply *reply; /* that its kernels are from; NULL: none */
};

/* The result of builds; immutable once it is the program's. Kernels hold it. */
struct program_build {
        unsigned holds;
        cl_uint device_count;
        struct device_build *devices; /* index as in the program's */
        struct kernel_info **kernels;
        size_t kernel_count;
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
        struct bytes *binaries; /* containers (core/binary.h), checked; array and data */
        char *kernel_names;
};

/* SP_E_NOMEM. Lock held. */
SP_NODISCARD int program_new(cl_context x, const struct program_params *params, cl_program *ret);

struct program_build_params {
        const cl_device_id *devices; /* of the program's, without duplicates; NULL: all */
        cl_uint device_count;
        const char *options; /* NULL: none */
        bool compile;        /* clCompileProgram, with its headers: */
        const cl_program *headers;
        const char *const *header_names;
        cl_uint header_count;
        void(CL_CALLBACK *notify)(cl_program, void *); /* NULL: wait */
        void *notify_data;
};

/* clBuildProgram behind its checks: SP_E_* or what clBuildProgram returns. Lock NOT held. */
SP_NODISCARD int program_build(cl_program p, const struct program_build_params *params);

struct program_link_params {
        const cl_device_id *devices; /* without duplicates */
        cl_uint device_count;
        const char *options; /* NULL: none */
        const cl_program *inputs;
        cl_uint input_count;
        void(CL_CALLBACK *notify)(cl_program, void *); /* NULL: wait */
        void *notify_data;
};

/* clLinkProgram behind its checks: SP_E_* or what clLinkProgram returns. *ret is the new program, also
 * with CL_LINK_PROGRAM_FAILURE; with other errors it is not touched. Lock NOT held. */
SP_NODISCARD int program_link(cl_context x, const struct program_link_params *params,
                              cl_program *ret);

/* clSetProgramSpecializationConstant behind its checks: SP_E_NOMEM. Lock held. */
SP_NODISCARD int program_constant(cl_program p, cl_uint id, struct bytes value);

/* What there is for device i of the program's: CL_PROGRAM_BINARY_TYPE. Lock held. */
cl_program_binary_type program_binary_type(const struct _cl_program *p, cl_uint i);

/* A program of built-in kernels needs no clBuildProgram: build it now if it has not been. As
 * program_build. */
SP_NODISCARD int program_ready(cl_program p);

/* Index of a device in the program's; -1: none of them. */
int program_device(const struct _cl_program *p, cl_device_id d);

/* Is device i of the program's being built? Lock held. */
bool program_in_progress(const struct _cl_program *p, cl_uint i);

/* Has some device an executable? Lock held. */
bool program_is_built(const struct _cl_program *p);

/* Fill in p->executables: asks the servers what is not known yet. SP_E_* or cl_int. Lock held; released
 * while it waits. */
SP_NODISCARD int program_fetch_binaries(cl_program p);

void program_build_hold(struct program_build *b);
void program_build_unhold(struct program_build *b);

#endif
