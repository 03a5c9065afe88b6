/* The birth of a worker: it is forked from a process between, so that it can have namespaces of its own, and the supervisor
 * adopts it. No state. */
#ifndef SPANCL_DAEMON_BIRTH_H
#define SPANCL_DAEMON_BIRTH_H

#include <sys/types.h>

#include "base/config.h"

/* Fork the worker, and end this process: it has one thread, and CONTROL_FD is the worker's. Only the worker returns, when it is
 * a child of `supervisor`, which it has told its number (CONTROL_PID). False: the supervisor is gone. */
bool birth(const struct config_options *o, pid_t supervisor);

#endif
