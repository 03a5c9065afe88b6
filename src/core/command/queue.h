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

/* SP_E_NOMEM, SP_E_GONE (the server is lost). */
SP_NODISCARD int queue_new(cl_context x, const struct queue_params *params, cl_command_queue *ret)
        REQUIRES(client_held);

/* The default queue on a device in a context, or NULL. */
cl_command_queue queue_default(cl_context x, cl_device_id d) REQUIRES(client_held);

/* Make it the default one. SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int queue_set_default(cl_command_queue q) REQUIRES(client_held);

/* How many queues on the device there are. */
cl_uint queue_count_on_device(cl_device_id d) REQUIRES(client_held);

/* Is it a host queue, which takes commands from the application? */
static inline bool queue_is_host(const struct _cl_command_queue *q)
{
        return handle_is(q, HANDLE_QUEUE) && !(q->properties & CL_QUEUE_ON_DEVICE);
}

/* Submit what was enqueued. A cl_int. */
cl_int queue_flush(cl_command_queue q) REQUIRES(client_held);

/* Wait until everything enqueued is complete. Returns the error of a command without an event that
 * failed since the last call that waited. A cl_int. */
cl_int queue_finish(cl_command_queue q) REQUIRES(client_held);

/* Is every command of the context known to be complete? */
bool queues_idle(cl_context x) REQUIRES(client_held);

/* The same as queue_finish for all queues of the context, but that errors stay with their queues. SP_E_NOMEM. */
SP_NODISCARD int queues_wait(cl_context x) REQUIRES(client_held);

/* The error of a command without an event, returned once. */
cl_int queue_take_error(cl_command_queue q) REQUIRES(client_held);

static inline bool queue_in_order(const struct _cl_command_queue *q)
{
        return !(q->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* Return the name by which placement knows an in-order queue; 0: the queue has no order. */
static inline uint64_t queue_order(const struct _cl_command_queue *q)
{
        return !queue_in_order(q) ? 0 : q->order ? q->order : q->id;
}

/* ---- for core's own files ------------------------------------------------------------------------ */

void queue_hold(cl_command_queue q) REQUIRES(client_held);
void queue_unhold(cl_command_queue q) REQUIRES(client_held);

/* Does anything lag that the next command of q has to come after? `all`: it is a marker or barrier without wait
 * list. */
bool queue_lags(const struct _cl_command_queue *q, bool all) REQUIRES(client_held);
/* e, the queue's newest, must not be complete before that. SP_E_NOMEM. */
SP_NODISCARD int queue_follow(cl_command_queue q, cl_event e, bool all) REQUIRES(client_held);

/* Have the server notify the client when an event of the queue completes. If the message of the
 * last command has not left yet, the request goes into it. SP_E_NOMEM. */
SP_NODISCARD int queue_watch_event(cl_command_queue q, struct session *session, uint64_t event)
        REQUIRES(client_held);

/* The event that is complete when all that was enqueued up to now is, watched and held; NULL: it already is.
 * SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int queue_watch(cl_command_queue q, cl_event *ret) REQUIRES(client_held);

/* The side queue for migrations of a domain. SP_E_*. */
SP_NODISCARD int queue_side(cl_context x, struct server *s, unsigned domain, uint64_t *ret_id)
        REQUIRES(client_held);

#endif
