/* The allocator: the process that makes device memory which two workers share (engine/transfer/device_staging.h), with
 * CUDA's library. A worker can't load that library, because it does not start in a session's sandbox. The allocator
 * gets a socket of each session's worker from the supervisor (CONTROL_ALLOCATOR), and answers requests of fixed size
 * (backend/native/allocation.h) on the socket over which they came. It keeps no descriptor of memory, so the driver
 * frees the memory when the processes that have it end. One thread. */
#ifndef SPANCL_DAEMON_ALLOCATOR_H
#define SPANCL_DAEMON_ALLOCATOR_H

#include "backend/native/allocation.h"
#include "config/options.h"

enum {
        /* Requests of one session in a second, and at once. Further ones wait in its socket. */
        ALLOCATOR_PER_S = 10,
        ALLOCATOR_BURST = 32,
};

/* Bytes that one session gets, in all. Memory that the worker has released counts, because the allocator does not know
 * of the release. */
#define ALLOCATOR_SESSION_MAX ((uint64_t)8 << 30)

/* Make memory. Arguments and errors are those of cuda_export (daemon/allocator/cuda.h); tests have another function. */
typedef int allocator_export(const uint8_t device[BACKEND_DEVICE_NAME], uint64_t size, int *ret_fd);

/* Serve at most `max` workers, whose sockets come over `control`, until the supervisor is gone. SP_E_NOMEM: nothing was
 * served. */
int allocator_serve(int control, size_t max, allocator_export *export);

/* Run the process. Returns its exit status. */
int allocator_main(const struct config_options *o);

#endif
