/* The supervisor: listens, reads hellos, and hands every connection to the worker of its session. It
 * loads no driver and holds no data of a session, so that what it serves can't break it. One thread. */
#ifndef SPANCL_DAEMON_SUPERVISOR_H
#define SPANCL_DAEMON_SUPERVISOR_H

#include "base/config.h"

/* Runs until SIGTERM or SIGINT: the process's exit status. `argv` are the options, which workers get
 * too. */
int supervisor_main(const struct config_options *o, int argc, char **argv);

#endif
