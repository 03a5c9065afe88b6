/* Links between servers: which server connects to which, and the relay through the client where
 * none can. */
#ifndef SPANCL_CORE_PEERS_H
#define SPANCL_CORE_PEERS_H

#include "core/link/listeners.h"
#include "core/link/server.h"
#include "proto/wire.h"

/* Make two servers able to reach each other. SP_E_HOST: their session has ended. */
SP_NODISCARD int server_introduce(struct server *a, struct server *b) REQUIRES(client_held);

/* The server is lost: notify the servers that it was introduced to, and pass on nothing from it. */
void peers_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

/* Handlers of messages about the link to another server, and of data to be passed on. */
int peers_lost(void *user, const struct wire_peer_lost *m) REQUIRES(client_held);
int peers_direct(void *user, const struct wire_peer_direct *m) REQUIRES(client_held);
int peers_relay_hello(void *user, const struct wire_relay_hello *m) REQUIRES(client_held);
int peers_relay_again(void *user, const struct wire_relay_again *m) REQUIRES(client_held);
int peers_relay_data(void *user, const struct wire_relay_data *m) REQUIRES(client_held);
int peers_relay_taken(void *user, const struct wire_relay_taken *m) REQUIRES(client_held);

#endif
