/* A warning for programs that change the memory of a CL_MEM_USE_HOST_PTR buffer without a map, and
 * expect a kernel to see that. Native CPU devices work on that memory itself, so there it works by
 * accident. SpanCL compares samples of the memory before launches on CPU devices, until it has
 * warned once in this process. It does so for buffers that the application has never mapped, read or written: a
 * command may have changed the memory of others. */
#ifndef SPANCL_CORE_HOST_WATCH_H
#define SPANCL_CORE_HOST_WATCH_H

#include "core/object.h"

/* The application maps, reads or writes bytes of m. */
void host_watch_end(cl_mem m) REQUIRES(client_held);

/* A kernel will use m, which has a host_ptr, on the device. */
void host_watch_launch(cl_mem m, const struct _cl_device_id *d) REQUIRES(client_held);

#endif
