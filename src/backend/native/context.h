/* The native contexts: committed memory, and probes that tell whether a driver still works. */
#ifndef SPANCL_BACKEND_NATIVE_CONTEXT_H
#define SPANCL_BACKEND_NATIVE_CONTEXT_H

#include "backend/native/native.h"

/* Prepare to probe a new domain of these devices. */
void native_probe_begin(struct native_domain *d, const cl_device_id *devices, unsigned count);
void native_probe_end(struct native_domain *d);
/* Have the driver allocate new memory now. CL_MEM_OBJECT_ALLOCATION_FAILURE: there is none. */
cl_int native_commit(struct backend_buffer *m);
/* A command has failed with `status`: probe whether the context is broken. Any thread; inside or
 * outside an operation. */
void native_probe(struct backend *b, struct native_domain *d, cl_int status);

#endif
