/* Submission: check a command, copy the data that the caller may free, and append it to the
 * list. */
#ifndef SPANCL_BACKEND_REFERENCE_SUBMIT_H
#define SPANCL_BACKEND_REFERENCE_SUBMIT_H

#include "backend/reference/state.h"

/* As the operations of backend.h. */
cl_int ref_submit(struct backend_queue *q, const struct backend_command *c,
                  struct backend_event **ret);
cl_int ref_event_report(struct backend_queue *q, struct backend_event *e, void *cookie);

/* Release all objects that the command holds. Its memory stays as long as its event. */
void ref_command_free(struct ref_command *k);

#endif
