/* The start of a worker process. The worker's parent is an intermediate process, which prepares
 * namespaces for it and exits. The supervisor then adopts the worker. No state. */
#ifndef SPANCL_DAEMON_BIRTH_H
#define SPANCL_DAEMON_BIRTH_H

#include <sys/types.h>

#include "config/options.h"

/* Fork the worker, and end the calling process, which is the intermediate one: it has one thread,
 * and its CONTROL_FD becomes the worker's. Only the worker returns, once it is a child of
 * `supervisor` and has sent its process number (CONTROL_PID). False: the supervisor is gone, or
 * another process has adopted the worker, which is logged. */
bool birth(const struct config_options *o, pid_t supervisor);

#endif
