/* Requests of a worker for device memory that other processes can import. OpenCL can't make such memory, and CUDA's
 * library does not start in a worker's sandbox. So the allocator makes it, a helper process of the supervisor
 * (daemon/allocator/allocator.h). One state per process, any thread. */
#ifndef SPANCL_BACKEND_NATIVE_ALLOCATION_H
#define SPANCL_BACKEND_NATIVE_ALLOCATION_H

#include <stddef.h>

#include "backend/backend.h"

/* The messages over the socket, a packet each. */
struct allocation_request {
        uint8_t device[BACKEND_DEVICE_NAME]; /* its UUID */
        uint64_t size;                       /* bytes, a multiple of BACKEND_SHARED_UNIT */
};

struct allocation_reply {
        int32_t status; /* 0: a descriptor comes with the packet; or SP_E_* */
};

/* Use this socket with the allocator from now on. It becomes this module's, which closes the earlier one. */
void allocation_use(int socket);

/* Get `size` bytes of memory, a multiple of BACKEND_SHARED_UNIT, and wait for the answer, for a second at most. An
 * answer that stayed in the socket would be a descriptor in flight, for which the meter ends a session. *ret_fd is the
 * memory's descriptor, which the caller closes; it alone keeps the memory.
 * SP_E_UNSUPP: the allocator can't make such memory; SP_E_LIMIT: the session has as much as it may; SP_E_NOMEM.
 * SP_E_LINK: there is no allocator, or it does not answer; SP_E_PROTO: the answer has no descriptor. */
SP_NODISCARD int allocation_get(const uint8_t device[BACKEND_DEVICE_NAME], size_t size,
                                int *ret_fd);

#endif
