/* Submission: a command that may go is handed to the backend, in one part or several. A part is a
 * native command. */
#ifndef SPANCL_ENGINE_SUBMISSION_H
#define SPANCL_ENGINE_SUBMISSION_H

#include "engine/command/command.h"

/* Begin: submit all, or the parts whose bytes or room are there. */
void engine_submission_start(struct command *c) REQUIRES(engine_held);

/* Bytes or room have come since: submit further parts. */
void engine_submission_continue(struct command *c) REQUIRES(engine_held);

/* Submit `what` as one part of the command, behind its wait list or its part before. Fails with the
 * native error, or CL_OUT_OF_HOST_MEMORY. */
SP_NODISCARD cl_int engine_submission_part(struct command *c, const struct backend_command *what)
        REQUIRES(engine_held);

/* A part is complete: count it, and take what it brought. `t` may be NULL. */
void engine_submission_part_complete(struct command *c, cl_int status,
                                     const struct backend_times *t) REQUIRES(engine_held);

/* Widen `sum` to the span of both. `t` may be NULL. */
void engine_times_add(struct backend_times *sum, const struct backend_times *t)
        REQUIRES(engine_held);

#endif
