/* Relayed peers. Where no link between two servers can be made, the client passes on the bytes of
 * their session's lanes. The session is the same as over connections: exactly once, and resumed
 * where it stopped. Its bytes travel in messages of both servers' sessions with the client. */
#ifndef SPANCL_ENGINE_RELAY_H
#define SPANCL_ENGINE_RELAY_H

#include "engine/transfer/peer.h"

struct relay;

/* NULL is allowed. */
struct relay *engine_relay_free(struct relay *r);

/* The client stops relaying this peer: its lanes are down. Harmless if the client did not relay it. */
void engine_relay_end(struct peer *p);

/* The connections with a relayed peer are lost, or given up. If the client does not know that there
 * were any, it relays again. */
void engine_relay_again(struct peer *p) REQUIRES(engine_held);

/* Hand the bytes received for relayed peers to their sessions, as far as these take them. */
void engine_relay_receive_all(struct engine *e) REQUIRES(engine_held);

/* Put the bytes that relayed peers' sessions send into the client's session, as far as the other
 * side has room. */
void engine_relay_send_all(struct engine *e) REQUIRES(engine_held);

#endif
