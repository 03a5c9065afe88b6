/* Commands and events of the queues. */
#ifndef SPANCL_BACKEND_ALMAIF_COMMAND_H
#define SPANCL_BACKEND_ALMAIF_COMMAND_H

#include "backend/almaif/state.h"

cl_int command_submit(struct backend_queue *q, const struct backend_command *c,
                      struct backend_event **ret);
void command_queue_unref(struct backend_queue *q);
void command_free(struct command *k) EXCLUDES(almaif_held);
void almaif_event_unref(struct backend_event *e);
bool dependency_done(const struct dependency *d) REQUIRES(almaif_held);
/* May the host execute the command now? */
bool command_may_run(const struct command *k) REQUIRES(almaif_held);

#endif
