/* A worker: the process that runs one session's engine. It opens its backend before there is a
 * session, tells the supervisor, and then takes the connections of one session from it. */
#ifndef SPANCL_DAEMON_WORKER_H
#define SPANCL_DAEMON_WORKER_H

#include <limits.h>

#include "base/config.h"

/* Exit status. */
enum {
        WORKER_OVERDUE = 3, /* its session is over, but a command of it goes on */
        WORKER_UNCLEAN =
                4, /* its session is over because a device, or a driver, did not do what it should */
};

/* Shut this process in as a worker, which it is from now on: the first thing that one does, while it has one thread.
 * `cache` gets the folder of compiled programs for `owner`; "": none. `ret_refusals` as of sandbox_enter. False: it is not possible, and the log says why. */
bool worker_shut_in(const struct config_options *o, const char *scratch_dir, const char *owner,
                    char cache[PATH_MAX], int *ret_refusals);

/* `owner`: whose compile caches it uses (gate.h). Never returns before the session, or the supervisor, has ended: the
 * process's exit status. */
int worker_main(const struct config_options *o, const char *scratch_dir, const char *owner);

#endif
