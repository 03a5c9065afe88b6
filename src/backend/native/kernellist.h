/* The kernels of a native program that was built. */
#ifndef SPANCL_BACKEND_NATIVE_KERNELLIST_H
#define SPANCL_BACKEND_NATIVE_KERNELLIST_H

#include "backend/native/native.h"

/* List all kernels; returns their number. The caller releases them and frees *ret. `device` is one
 * that the program was built for. */
cl_uint kernellist_new(struct backend_program *p, unsigned device, cl_kernel **ret);

/* The name of the next kernel in a program in PTX; `text` moves behind it. False: there is none. */
bool kernellist_next_entry(struct bytes *text, struct bytes *ret);

#endif
