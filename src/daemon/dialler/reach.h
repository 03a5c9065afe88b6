/* A link to another server, made for a worker that may be hostile. A server must prove itself
 * before it gets bytes that the worker has chosen. It does so by its key (TLS), by its user (the
 * Unix socket for servers of its host), or by its answer to an empty hello (loop_probe). Such an
 * answer counts for a minute. Any thread. */
#ifndef SPANCL_DAEMON_REACH_H
#define SPANCL_DAEMON_REACH_H

#include "daemon/dialler/dial_message.h"

/* Connect and exchange hellos. Returns the connection in *ret, and appends the server's answer to
 * `hello`. `local`: Unix sockets are allowed, too. SP_E_*, with a text in `reply`. */
SP_NODISCARD int reach_peer(const struct dial_request *q, bool local, struct conn **ret,
                            struct buf *hello, struct dial_reply *reply);

#endif
