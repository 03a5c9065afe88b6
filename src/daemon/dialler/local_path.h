/* The connection of sessions to other servers of the same host and user. It uses the Unix socket
 * that each spancld makes in a folder of its own (struct listeners, `local_path`). */
#ifndef SPANCL_DAEMON_LOCAL_PATH_H
#define SPANCL_DAEMON_LOCAL_PATH_H

#include "transport/transport.h"

#define LOCAL_PATH_NAME "peers"

/* Connect to the server of this user that listens at `path`. Other sockets are refused. Does not
 * block. SP_E_REFUSED, SP_E_NOMEM. */
SP_NODISCARD int local_path_connect(const char *path, struct conn **ret);

#endif
