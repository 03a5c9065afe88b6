/* The process that makes the links to other servers for all sessions, so that workers need no
 * sockets. It resolves names, connects, makes the TLS handshake and exchanges hellos
 * (daemon/dialler/reach.h). A worker gets a connection only if a SpanCL server has accepted its hello.
 * The supervisor gives each worker and the dialler the ends of a socket pair (CONTROL_DIALLER).
 * The dialler has no keys. */
#ifndef SPANCL_DAEMON_DIALLER_H
#define SPANCL_DAEMON_DIALLER_H

#include "config/options.h"

/* Run the dialler until the supervisor closes the control socket. Returns the process's exit
 * status. */
int dialler_main(const struct config_options *o, bool local);

#endif
