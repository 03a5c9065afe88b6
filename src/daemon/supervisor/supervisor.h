/* The supervisor: it listens, reads hellos, and hands every connection to the worker of its
 * session. It loads no driver and holds no data of a session, so sessions can't break it. One
 * thread. */
#ifndef SPANCL_DAEMON_SUPERVISOR_H
#define SPANCL_DAEMON_SUPERVISOR_H

#include "config/options.h"

/* Run the supervisor until SIGTERM or SIGINT, or after SIGUSR1 until the last session has ended. With --grace, SIGTERM
 * is SIGUSR1 for that time. Returns the process's exit status. Workers get the options in `argv`, too. */
int supervisor_main(const struct config_options *o, int argc, char **argv);

#endif
