/* The call that makes a socket, for the files of os/net/socket.h. */
#ifndef SPANCL_OS_NET_SOCKET_MAKE_H
#define SPANCL_OS_NET_SOCKET_MAKE_H

#include "base/status.h"

/* Make a socket whose calls return at once, and that no other program inherits. `family`, `type` and `protocol` are
 * those of socket(2). -1: errno gives the reason. */
SP_NODISCARD int socket_make(int family, int type, int protocol);

#endif
