/* The server as a service of a system whose service manager is used by calls, not by files (Windows). */
#ifndef SPANCL_DAEMON_SERVICE_H
#define SPANCL_DAEMON_SERVICE_H

#include <stdbool.h>

/* Handle the commands of services. `--install-service OPTIONS` adds one that runs with these options, and
 * `--uninstall-service` removes it. The service manager calls `--service OPTIONS`, which calls `run` with the other
 * arguments. Returns false if argv has none of them, and on other systems; else *ret_status is the exit status. */
bool service_handle(int argc, char **argv, int (*run)(int argc, char **argv), int *ret_status);

#endif
