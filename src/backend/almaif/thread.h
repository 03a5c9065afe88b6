/* The threads that execute and watch commands. */
#ifndef SPANCL_BACKEND_ALMAIF_THREAD_H
#define SPANCL_BACKEND_ALMAIF_THREAD_H

#include "backend/almaif/state.h"

/* Start the threads that execute and watch commands. SP_E_NOMEM. */
int threads_start(struct domain *d);
/* backend_ops.poll. */
enum backend_polled threads_poll(struct backend *b, bool last) EXCLUDES(almaif_held);

#endif
