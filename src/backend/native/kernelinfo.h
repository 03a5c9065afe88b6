/* Info records of a built program's kernels and their arguments. */
#ifndef SPANCL_BACKEND_NATIVE_KERNELINFO_H
#define SPANCL_BACKEND_NATIVE_KERNELINFO_H

#include "backend/emit.h"
#include "backend/native/native.h"

/* Emit one INFO_KERNEL record. `devices` are backend numbers of the devices that the program was
 * built for. The caller owns the kernel and uses it nowhere else, because probing an argument sets
 * it. */
void kernelinfo_emit(struct emit *e, struct backend_program *p, cl_kernel kernel,
                     const unsigned *devices, size_t device_count);

/* The size of a value of an OpenCL C type by its name ("uint4", "unsigned char"); 0: not known. */
size_t kernelinfo_type_size(const char *type);

/* Kind (ARG_*, 0: not known) and size of an argument, found by setting it to various things; `buffer` is a
 * small buffer of the kernel's context. */
struct kernelinfo_probe {
        uint32_t kind;
        size_t size;
};
struct kernelinfo_probe kernelinfo_probe_arg(const cl_icd_dispatch *api, cl_kernel kernel,
                                             cl_uint index, cl_mem buffer);

#endif
