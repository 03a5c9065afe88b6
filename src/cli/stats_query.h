/* A query of a server's statistics and of its sessions', without a session. Blocking. */
#ifndef SPANCL_CLI_STATS_QUERY_H
#define SPANCL_CLI_STATS_QUERY_H

#include "cli/snapshot.h"
#include "config/server_spec.h"
#include "proto/wire.h"
#include "transport/transport.h"

/* Query a server. The caller frees the snapshot with snapshot_fini. On an error `text` is the reason, which names the
 * server. Any thread. */
enum { STATS_QUERY_TEXT_MAX = 1400 };
SP_NODISCARD int stats_query(const struct server_spec *spec, int timeout_ms, struct snapshot *ret,
                             char text[STATS_QUERY_TEXT_MAX]);

/* Receive the messages on a connection of the role DIAL_LOOK, whose hello is done, and call `each` for each. */
SP_NODISCARD int stats_query_receive(struct conn *conn, int timeout_ms,
                                     void (*each)(void *user, const struct wire_session_stats *m),
                                     void *user);

#endif
