/* Events as the application sees them. */
#ifndef SPANCL_CORE_EVENT_H
#define SPANCL_CORE_EVENT_H

#include "core/client.h"

/* A user event. SP_E_NOMEM. Lock held. */
SP_NODISCARD int event_new_user(cl_context x, cl_event *ret);

/* Set a user event's status once. SP_E_BUSY: it was set before. Lock held. */
SP_NODISCARD int event_set_user(cl_event e, cl_int status);

/* Call fn on the progress thread once the status is `type` or beyond. SP_E_NOMEM. Lock held. */
SP_NODISCARD int event_on(cl_event e, cl_int type, void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
                          void *user_data);

/* The status now. If the event is not complete, receives first, so that an application that polls
 * makes progress. Lock held. */
cl_int event_status(cl_event e);

/* Wait for all. SP_OK, or the cl_int CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST. Lock held. */
cl_int events_wait(struct client *c, cl_uint count, const cl_event *events);

/* Have the servers notify the client of those of q's events that other servers wait for, and that
 * the client is not notified of yet. Lock held. */
void events_watch(cl_command_queue q);

#endif
