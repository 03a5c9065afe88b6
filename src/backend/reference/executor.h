/* The executor of the reference backend's commands: a thread, or in manual mode
 * backend_reference_step. */
#ifndef SPANCL_BACKEND_REFERENCE_EXECUTOR_H
#define SPANCL_BACKEND_REFERENCE_EXECUTOR_H

#include "backend/reference/state.h"

/* SP_E_NOMEM. */
SP_NODISCARD int executor_start(struct backend *b);

/* Stop the thread; all commands run before this returns. */
void executor_stop(struct backend *b);

/* Wake the executor: a command was appended to the list. */
void executor_wake(struct backend *b) REQUIRES(b->lock);

/* The clock of the commands' times; in manual mode it counts readings. */
uint64_t executor_clock_ns(struct backend *b) REQUIRES(b->lock);

#endif
