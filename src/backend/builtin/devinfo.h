/* Device and kernel info of devices that have built-in kernels only. Stateless. */
#ifndef SPANCL_BACKEND_BUILTIN_DEVINFO_H
#define SPANCL_BACKEND_BUILTIN_DEVINFO_H

#include <CL/cl.h>

#include "backend/builtin/registry.h"
#include "backend/emit.h"

#define DEVINFO_GROUP_MAX   1024
#define DEVINFO_ALIGN       128 /* bytes, of sub-buffers */
#define DEVINFO_QUEUE_PROPS (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE)

struct devinfo_params {
        const char *name, *vendor, *version, *platform;
        cl_uint vendor_id, compute_units;
        unsigned domain;
        cl_ulong buffer_max, memory; /* bytes: of one buffer, of all */
        bool svm;
        bool rv32im;      /* runs compiled kernels (include/spancl/riscv.h) */
        bool compiler;    /* and programs can be compiled on this host */
        size_t group_max; /* 0: DEVINFO_GROUP_MAX */
        const struct registry_kernel *const *kernels;
        size_t kernel_count;
};

/* Emit the contents of its INFO_DEVICE block: all queries of OpenCL 3.0. */
void devinfo_device(struct emit *e, const struct devinfo_params *p);

/* Emit one INFO_KERNEL record, with a block for each of `devices`. */
void devinfo_kernel(struct emit *e, const struct registry_kernel *k, const unsigned *devices,
                    size_t device_count);

#endif
