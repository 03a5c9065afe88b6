/* Building, compiling and linking programs: all servers concerned are asked at the same time. */
#ifndef SPANCL_CORE_JOB_H
#define SPANCL_CORE_JOB_H

#include "core/program/program.h"

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

/* A program of built-in kernels needs no clBuildProgram: build it now if it has not been. As
 * program_build. */
SP_NODISCARD int program_ready(cl_program p);

/* Is device i of the program's being built? */
bool program_in_progress(const struct _cl_program *p, cl_uint i) REQUIRES(client_held);

/* The options of the build in progress; NULL: none. */
const char *program_job_options(const struct _cl_program *p) REQUIRES(client_held);

#endif
