/* Links between servers: which server connects to which, and the relay through the client where
 * none can. Lock held. */
#ifndef SPANCL_CORE_PEERS_H
#define SPANCL_CORE_PEERS_H

#include "core/link/server.h"
#include "proto/wire.h"

/* Make two servers able to reach each other. SP_E_HOST: their session has ended. */
SP_NODISCARD int server_introduce(struct server *a, struct server *b);

/* The server is lost: pass on nothing from it any more. */
void peers_part(struct server *s);

/* Handlers of messages about the link to another server, and of data to be passed on. */
int peers_lost(void *user, const struct wire_peer_lost *m);
int peers_direct(void *user, const struct wire_peer_direct *m);
int peers_relay_hello(void *user, const struct wire_relay_hello *m);
int peers_relay_again(void *user, const struct wire_relay_again *m);
int peers_relay_data(void *user, const struct wire_relay_data *m);
int peers_relay_taken(void *user, const struct wire_relay_taken *m);

#endif
