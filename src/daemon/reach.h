/* One link to another server, made for a worker that may be hostile. Bytes that the worker has chosen go to a server only
 * after it has shown that it is one: by its key (TLS), by its user (the Unix socket for servers of its host), or by its
 * answer to a hello without contents (loop_probe), which counts for a minute. Any thread. */
#ifndef SPANCL_DAEMON_REACH_H
#define SPANCL_DAEMON_REACH_H

#include "daemon/dial_message.h"

/* Connect and exchange hellos: *ret, and the server's answer appended to `hello`. `local`: Unix sockets may be
 * connected to, too. SP_E_*, with a text in `reply`. */
SP_NODISCARD int reach_peer(const struct dial_request *q, bool local, struct conn **ret,
                            struct buf *hello, struct dial_reply *reply);

#endif
