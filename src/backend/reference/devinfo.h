/* What the reference backend's devices and built-in kernels say about themselves. Stateless. */
#ifndef SPANCL_BACKEND_REFERENCE_DEVINFO_H
#define SPANCL_BACKEND_REFERENCE_DEVINFO_H

#include <CL/cl.h>

#include "backend/emit.h"
#include "backend/reference/registry.h"

#define DEVINFO_MEM_MAX     ((size_t)1 << 30) /* bytes of one buffer */
#define DEVINFO_GROUP_MAX   1024
#define DEVINFO_ALIGN       128 /* bytes, of sub-buffers */
#define DEVINFO_NAME_SIZE   32
#define DEVINFO_QUEUE_PROPS (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE)

/* The name of the device with that number. */
void devinfo_name(unsigned number, char name[DEVINFO_NAME_SIZE]);

/* The contents of its INFO_DEVICE block, all queries of OpenCL 3.0. */
void devinfo_device(struct emit *e, unsigned number, unsigned domain);

/* One INFO_KERNEL record, with a block for each of `devices`. */
void devinfo_kernel(struct emit *e, const struct registry_kernel *k, const unsigned *devices,
                    size_t device_count);

#endif
