/* A query of a server's statistics and of its sessions', without a session. Blocking. */
#ifndef SPANCL_CLI_STATS_QUERY_H
#define SPANCL_CLI_STATS_QUERY_H

#include "config/server_spec.h"
#include "proto/wire.h"
#include "transport/transport.h"

/* Query a server. Calls `each` with NULL when the server has accepted the connection, then for each message,
 * in their order. `quiet`: print no error. */
SP_NODISCARD int stats_query(const struct server_spec *spec, int timeout_ms, bool quiet,
                             void (*each)(void *user, const struct wire_session_stats *m),
                             void *user);

/* Receive the messages on a connection of the role DIAL_LOOK, whose hello is done, and call `each` for each. */
SP_NODISCARD int stats_query_receive(struct conn *conn, int timeout_ms,
                                     void (*each)(void *user, const struct wire_session_stats *m),
                                     void *user);

/* Return true if the message is about the server or a device, not about a session. */
bool stats_is_service(const struct wire_session_stats *m);

/* Print the message if it is about a device that new sessions do not get. Returns true if it is. */
bool stats_print_service(const struct wire_session_stats *m);

#endif
