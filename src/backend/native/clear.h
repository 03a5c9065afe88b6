/* The clearing of new memory, so that no client reads what another one has left. */
#ifndef SPANCL_BACKEND_NATIVE_CLEAR_H
#define SPANCL_BACKEND_NATIVE_CLEAR_H

#include "backend/native/native.h"

/* Clear new memory, if that is wanted. CL_MEM_OBJECT_ALLOCATION_FAILURE: that failed, and
 * the memory must not be used. */
cl_int native_clear(struct backend *b, struct backend_buffer *m);
cl_int native_clear_svm(struct backend *b, struct native_domain *d, uint64_t address, size_t size);
/* The event that all commands submitted now have to wait for, owned by the domain; NULL: none. */
cl_event native_clearing(struct native_domain *d);
void native_clear_end(struct native_domain *d);

#endif
