/* The rules of cl_mem_flags, for whatever makes memory objects. */
#ifndef SPANCL_API_MEM_FLAGS_H
#define SPANCL_API_MEM_FLAGS_H

#include <CL/cl.h>
#include <stdbool.h>

enum {
        MEM_ACCESS = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY,
        MEM_HOST_PTR = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR,
        MEM_HOST_ACCESS = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS,
};

bool mem_flags_are_valid(cl_mem_flags flags);

/* The flags of an object made from another one with the parent's filled in; false: they are in
 * conflict. */
bool mem_flags_inherit(cl_mem_flags parent, cl_mem_flags flags, cl_mem_flags *ret);

#endif
