/* Completion: the walk from the backend's report about a native command to the messages about its
 * event. All commands take it, one function a step:
 *
 * 1. engine_completion_report: the backend reports a native command.
 * 2. The commands whose completion this one implies (engine/completion/coalesced.h) go on with it.
 * 3. So do the untracked launches before it (engine/completion/untracked.h).
 * 4. engine_completion_end: the last part of a command that has left its queue is complete. If an
 *    earlier command is not, the command waits (engine/completion/early_completion.h).
 * 5. engine_completion_publish: the event completes, which notifies the client, other servers and
 *    later commands.
 *
 * docs/internals/engine-completion.md draws the states. The caller holds the engine's lock, except
 * that of engine_completion_report. */
#ifndef SPANCL_ENGINE_COMPLETION_H
#define SPANCL_ENGINE_COMPLETION_H

#include "engine/command/command.h"

/* struct backend_params.complete */
void engine_completion_report(void *user, void *cookie, cl_int status,
                              const struct backend_times *t);

/* The command is in flight, but no part of it is: it is done now, or when all that it comes after
 * is. */
void engine_completion_end(struct command *c) REQUIRES(engine_held);

/* Go on with the commands that completed early and are early no longer. Each may let another go
 * on. */
void engine_completion_run(struct engine *e) REQUIRES(engine_held);

/* The command is done: complete its event, or its batch's, and free it. A failed read to the client
 * comes here when its last byte is sent. */
void engine_completion_publish(struct command *c) REQUIRES(engine_held);

#endif
