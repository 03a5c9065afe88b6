/* Launches: from the wait list to the ring of a unit. */
#ifndef SPANCL_BACKEND_ALMAIF_LAUNCH_H
#define SPANCL_BACKEND_ALMAIF_LAUNCH_H

#include "backend/almaif/state.h"

/* Check and prepare the packet and arguments of a launch of `kernel` on the queue's unit. */
cl_int launch_check(const struct backend_queue *q, const struct backend_command *c);
cl_int launch_prepare(struct command *k, const struct backend_kernel *kernel);
/* CL_SUCCESS, or the error that the command completes with because a command in its wait list
 * failed. */
cl_int launch_dependencies(const struct command *k) REQUIRES(almaif_held);
/* Push commands that are ready to the rings, oldest first. Commands that have failed meanwhile go
 * to `host`. */
void launch_pump(struct domain *d) REQUIRES(almaif_held);
/* The command that is first in flight may have changed: update head_at. */
void launch_head(struct unit *u) REQUIRES(almaif_held);
/* After a reset of the unit: push all commands in flight again. */
void launch_again(struct unit *u) REQUIRES(almaif_held);
/* The command has left the ring: free its arguments and signals. */
void launch_release(struct command *k) REQUIRES(almaif_held);

uint64_t buffer_address(const struct backend_buffer *m);

#endif
