/* Waits that the client answers before the server has (SPANCL_FINISH=optimistic, docs/FINISH.md). A wait that nothing
 * in the program can tell from a real one returns at once. Its event is *ahead* until it is complete: later commands
 * of all queues wait for it on the servers, and a query of any event's status waits for it. */
#ifndef SPANCL_CORE_AHEAD_H
#define SPANCL_CORE_AHEAD_H

#include "core/client.h"
#include "core/object.h"

/* May clFinish of this queue return before its commands are complete? */
bool ahead_may_finish(cl_command_queue q) REQUIRES(client_held);

/* May a wait for this event? A complete one may. */
bool ahead_may_wait(cl_event e) REQUIRES(client_held);

/* e, watched and not complete, counts as waited for. Its message is sent soon. */
void ahead_add(cl_event e) REQUIRES(client_held);

/* clFinish of a queue that may return early. Its event is ahead now, or is left for later (`late`) because another one
 * of the queue came to be ahead just now. SP_E_NOMEM. */
SP_NODISCARD int ahead_finish(cl_command_queue q) REQUIRES(client_held);
/* The event of the clFinish that was left is ahead now. SP_E_NOMEM. */
SP_NODISCARD int ahead_catch_up(cl_context x) REQUIRES(client_held);

/* Wait until the context's waits are no further ahead than they may be. */
void ahead_limit(cl_context x) REQUIRES(client_held);

/* Wait for all of the context's events that are ahead, or until their servers fail. */
void ahead_settle(cl_context x) REQUIRES(client_held);
/* The same for all contexts, before the program ends. */
void ahead_settle_all(struct client *c) REQUIRES(client_held);

/* A command of the queue has failed: notify the context if the program does not wait for it any more. */
void ahead_failed(cl_command_queue q, cl_int status) REQUIRES(client_held);

/* Have the next commands of the queue come after the context's events that are ahead. SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int ahead_order(cl_command_queue q) REQUIRES(client_held);

/* Is there anything that the queue's next command has to come after? A clFinish that was left has to be seen to before
 * a command of its own queue, too, if that may wait for a user event: its event would then stand for both. */
static inline bool ahead_is_due(const struct _cl_command_queue *q)
{
        const struct _cl_context *x = q->context;
        return (x->ahead.late && (x->ahead.late != q || x->ahead.user_events)) ||
               (x->ahead.count && q->ahead_seen != x->ahead.stamp);
}

/* e, which is ahead, has completed. */
void ahead_done(cl_event e) REQUIRES(client_held);

#endif
