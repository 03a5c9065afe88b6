/* Relayed peers: where no link between two servers can be made, the client passes on what their session's
 * lanes carry. The session is the same as over connections, exactly once and resumed where it stopped;
 * only its bytes travel in messages of both servers' sessions with the client. */
#ifndef SPANCL_ENGINE_RELAY_H
#define SPANCL_ENGINE_RELAY_H

#include "engine/transfer/peer.h"

struct relay;

/* NULL is allowed. */
struct relay *engine_relay_free(struct relay *r);

/* The client passes on nothing for this one any more: its lanes are down. Harmless when it did not. */
void engine_relay_end(struct peer *p);

/* Connections with one that was relayed are lost, or given up: if the client does not know that there were any, it relays
 * anew. */
void engine_relay_again(struct peer *p);

/* Hand what came for relayed peers to their sessions, as far as they take it. */
void engine_relay_receive_all(struct engine *e);

/* Give what they have to send to the client's session, as far as the other side has room. */
void engine_relay_send_all(struct engine *e);

#endif
