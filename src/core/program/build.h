/* The results of builds: for each device its status, log and options, and the kernels with their
 * arguments. They come from the servers' answers, and queries are answered from them without asking
 * again. */
#ifndef SPANCL_CORE_BUILD_H
#define SPANCL_CORE_BUILD_H

#include "core/object.h"

/* A server's answer to one build. A program's state may refer to the answers of several builds. */
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
        bool arg_info;             /* CL_KERNEL_ARG_* of its kernels may be queried */
        bool by_parent;            /* a sub-device that has the program as built for its parent */
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

/* All devices CL_BUILD_NONE; one hold. NULL: no memory. */
struct program_build *program_build_new(cl_uint device_count) REQUIRES(client_held);
void program_build_hold(struct program_build *b) REQUIRES(client_held);
void program_build_unhold(struct program_build *b) REQUIRES(client_held);
void build_reply_unhold(struct build_reply *r) REQUIRES(client_held);

/* Add the part of `reply` about the server's device number `device`. `made` is the binary type of a
 * successful build if the reply does not tell it. 1: done; 0: the reply has no such part;
 * SP_E_NOMEM. */
SP_NODISCARD int device_build_take(struct device_build *d, uint64_t device,
                                   struct build_reply *reply, cl_program_binary_type made)
        REQUIRES(client_held);

/* Copy the state of a device that a new build does not concern. SP_E_NOMEM. */
SP_NODISCARD int device_build_copy(const struct device_build *old, struct device_build *d)
        REQUIRES(client_held);

/* Collect the kernels of all replies in `b`, for the devices whose state is from them. SP_E_NOMEM,
 * SP_E_PROTO. */
SP_NODISCARD int program_build_take_kernels(const struct _cl_program *p, struct program_build *b)
        REQUIRES(client_held);

#endif
