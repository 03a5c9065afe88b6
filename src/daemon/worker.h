/* A worker: the process that runs one session's engine. It opens its backend before there is a
 * session, tells the supervisor, and then takes the connections of one session from it. */
#ifndef SPANCL_DAEMON_WORKER_H
#define SPANCL_DAEMON_WORKER_H

#include "base/config.h"

/* `owner`: whose compile caches it uses (gate.h). Never returns before the session, or the supervisor, has ended: the
 * process's exit status. */
int worker_main(const struct config_options *o, const char *scratch_dir, const char *owner);

#endif
