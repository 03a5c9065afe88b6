/* Launches of kernels; as the other commands of core/command/enqueue.h. */
#ifndef SPANCL_CORE_LAUNCH_H
#define SPANCL_CORE_LAUNCH_H

#include "core/command/command.h"
#include "core/command/enqueue.h"

cl_int enqueue_kernel(const struct enqueue *q, cl_kernel k, cl_uint dims, const size_t *offset,
                      const size_t *global, const size_t *local);
/* The same for a local size that only the implementation can judge. It waits until the
 * implementation has taken the launch, or has refused it with the error that is returned. A launch
 * that has to wait for other commands is not judged yet (*ret_judged). */
cl_int enqueue_kernel_judged(const struct enqueue *q, cl_kernel k, cl_uint dims,
                             const size_t *offset, const size_t *global, const size_t *local,
                             bool *ret_judged);

/* ---- for core's own files -------------------------------------------------------------------- */

/* command_use and command_wrote for all memory that a launch of k may use, and may have written. */
SP_NODISCARD int command_use_args(struct command *m, cl_kernel k) REQUIRES(client_held);
SP_NODISCARD int command_wrote_args(struct command *m, cl_kernel k) REQUIRES(client_held);

/* The same for the allocations that kernels may reach by any pointer (kernel.reaches), if all devices of the context
 * have one memory. While recording, command_use_args leaves these to each run. */
SP_NODISCARD int command_use_indirect(struct command *m, unsigned char reaches)
        REQUIRES(client_held);
SP_NODISCARD int command_wrote_indirect(struct command *m, unsigned char reaches)
        REQUIRES(client_held);

#endif
