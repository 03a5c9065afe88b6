/* A worker: the process that runs one session's engine. It opens its backend before there is a
 * session and notifies the supervisor. Then the supervisor hands it the connections of one
 * session. */
#ifndef SPANCL_DAEMON_WORKER_H
#define SPANCL_DAEMON_WORKER_H

#include <limits.h>

#include "config/options.h"
#include "daemon/upkeep/caches.h"

/* Exit status. */
enum {
        WORKER_OVERDUE = 3, /* the session is over, but one of its commands goes on */
        /* The session is over because a device or a driver failed. */
        WORKER_UNCLEAN = 4,
};

/* Enter the worker's sandbox. The process calls this first, while it has one thread, and is a
 * worker from then on. `ret_caches` gets the folders of `owner`.
 * `ret_refusals` as of sandbox_enter. False: it is not possible, and the log says why. */
bool worker_shut_in(const struct config_options *o, const char *scratch_dir, const char *owner,
                    struct caches *ret_caches, int *ret_refusals);

/* Run the worker until the session or the supervisor has ended. Returns the process's exit
 * status. `owner`: the owner of its compile caches (gate.h). */
int worker_main(const struct config_options *o, const char *scratch_dir, const char *owner);

#endif
