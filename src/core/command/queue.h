/* Command queues. */
#ifndef SPANCL_CORE_QUEUE_H
#define SPANCL_CORE_QUEUE_H

#include "core/client.h"
#include "core/handle.h"

struct queue_params {
        cl_device_id device;
        cl_command_queue_properties properties;
        cl_uint size;                    /* on the device */
        const cl_queue_properties *list; /* as given, with the final 0; NULL: none */
        size_t list_count;
};

/* SP_E_NOMEM, SP_E_GONE (the server is lost). Lock held. */
SP_NODISCARD int queue_new(cl_context x, const struct queue_params *params, cl_command_queue *ret);

/* The default queue on a device in a context, or NULL. Lock held. */
cl_command_queue queue_default(cl_context x, cl_device_id d);

/* Make it the default one. SP_E_NOMEM, SP_E_GONE. Lock held. */
SP_NODISCARD int queue_set_default(cl_command_queue q);

/* How many queues on the device there are. Lock held. */
cl_uint queue_count_on_device(cl_device_id d);

/* Is it a host queue, which takes commands from the application? */
static inline bool queue_is_host(const struct _cl_command_queue *q)
{
        return handle_is(q, HANDLE_QUEUE) && !(q->properties & CL_QUEUE_ON_DEVICE);
}

/* Submit what was enqueued. A cl_int. Lock held. */
cl_int queue_flush(cl_command_queue q);

/* Wait until everything enqueued is complete. Returns the error of a command without an event that
 * failed since the last call that waited. A cl_int. Lock held. */
cl_int queue_finish(cl_command_queue q);

/* The same for all queues of the context, but that errors stay with their queues. SP_E_NOMEM. Lock held. */
SP_NODISCARD int queues_wait(cl_context x);

/* The error of a command without an event, returned once. Lock held. */
cl_int queue_take_error(cl_command_queue q);

static inline bool queue_in_order(const struct _cl_command_queue *q)
{
        return !(q->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* ---- for core's own files; lock held ------------------------------------------------------------- */

void queue_hold(cl_command_queue q);
void queue_unhold(cl_command_queue q);

/* Does anything lag that the next command of q has to come after? `all`: it is a marker or barrier without wait
 * list. */
bool queue_lags(const struct _cl_command_queue *q, bool all);
/* e, the queue's newest, must not be complete before that. SP_E_NOMEM. */
SP_NODISCARD int queue_follow(cl_command_queue q, cl_event e, bool all);

/* Have the server notify the client when an event of the queue completes. If the message of the
 * last command has not left yet, the request goes into it. SP_E_NOMEM. */
SP_NODISCARD int queue_watch_event(cl_command_queue q, struct session *session, uint64_t event);

/* The side queue for migrations of a domain. SP_E_*. */
SP_NODISCARD int queue_side(cl_context x, struct server *s, unsigned domain, uint64_t *ret_id);

#endif
