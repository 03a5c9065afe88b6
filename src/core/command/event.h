/* Events as the application sees them. */
#ifndef SPANCL_CORE_EVENT_H
#define SPANCL_CORE_EVENT_H

#include "core/client.h"
#include "core/handle.h"
#include "core/link/listeners.h"

/* A user event. SP_E_NOMEM. */
SP_NODISCARD int event_new_user(cl_context x, cl_event *ret) REQUIRES(client_held);

/* Set a user event's status once. SP_E_BUSY: it was set before. */
SP_NODISCARD int event_set_user(cl_event e, cl_int status) REQUIRES(client_held);

/* Call fn on the progress thread once the status is `type` or beyond. SP_E_NOMEM. */
SP_NODISCARD int event_on(cl_event e, cl_int type, void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
                          void *user_data) REQUIRES(client_held);

/* The status now. If the event is not complete, receives first, so that an application that polls
 * makes progress. */
cl_int event_status(cl_event e) REQUIRES(client_held);

/* Wait for all. SP_OK, or the cl_int CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST. */
cl_int events_wait(struct client *c, cl_uint count, const cl_event *events) REQUIRES(client_held);

/* Have the servers notify the client of those of q's events that other servers wait for, and that
 * the client is not notified of yet. */
void events_watch(cl_command_queue q) REQUIRES(client_held);

/* ---- for core's own files ------------------------------------------------------------------------ */

void event_hold(cl_event e) REQUIRES(client_held);
void event_unhold(cl_event e) REQUIRES(client_held);

/* A command's event with an object, known to the client's map until it is complete; one part: the
 * server's word. `app`: with a reference of the application; in both cases one hold is the caller's.
 * SP_E_NOMEM. */
SP_NODISCARD int event_new(cl_command_queue q, cl_command_type type, uint64_t id, bool app,
                           cl_event *ret) REQUIRES(client_held);

/* The application waits for or queries the event: the server has to notify how it completes.
 * SP_E_NOMEM. */
SP_NODISCARD int event_watch(cl_event e) REQUIRES(client_held);

/* All commands of the queue up to that id have completed, and failures have been notified. */
void events_passed(cl_command_queue q, uint64_t id) REQUIRES(client_held);

/* Has the client itself something to do for e, or for an event that has to end before e? */
static inline bool event_lags(const struct _cl_event *e)
{
        return e->status > CL_COMPLETE && (e->lags || e->before);
}

/* e must not be complete before `first`, if that lags. SP_E_NOMEM. */
SP_NODISCARD int event_follow(cl_event e, cl_event first) REQUIRES(client_held);

/* One of e->parts is done. */
void event_part_done(cl_event e, cl_int status) REQUIRES(client_held);

/* Give it a last part, `tail`, which it owns from now on; before its message is sent. */
void event_set_tail(cl_event e, struct event_tail *tail) REQUIRES(client_held);

/* Complete with `status`, whatever is still open. */
void event_complete(cl_event e, cl_int status) REQUIRES(client_held);

/* The server's word on an event. SP_E_PROTO. */
SP_NODISCARD int event_received(struct server *s, uint64_t id, cl_int status, uint64_t queue,
                                const uint64_t times[3], bool timed) REQUIRES(client_held);

/* All events of a lost server complete with CL_DEVICE_NOT_AVAILABLE. */
void events_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

/* Make sure that `s` knows or will be told of e, so that its id may stand in a wait list there. 1: yes;
 * 0: not necessary, it is complete; negative: SP_E_*. */
SP_NODISCARD int event_reach(cl_event e, struct server *s) REQUIRES(client_held);

/* The link between two servers is lost: completions that either waits for come through the client. */
void events_relay(struct server *a, struct server *b) REQUIRES(client_held);

/* Has `e` ended, one way or the other? For client_wait. */
bool event_is_done(void *event) REQUIRES(client_held);
/* The same, or its server is not waited for any more. */
bool event_is_settled(void *event) REQUIRES(client_held);

#endif
