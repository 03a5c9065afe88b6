/* Rerouting: if another server can't send a transfer's bytes, the client names a server that has
 * them, and they come from there. */
#ifndef SPANCL_ENGINE_REROUTE_H
#define SPANCL_ENGINE_REROUTE_H

#include "engine/command/command.h"

/* The transfer of a write has failed: ask the client for another source. True: the client was
 * asked, and the command goes on after the answer. False: no other server can help. */
bool engine_reroute_ask(struct command *c) REQUIRES(engine_held);

/* No part in flight uses the transfers that were given up: release them. */
void engine_reroute_settled(struct command *c) REQUIRES(engine_held);

int engine_handle_transfer_reroute(void *user, const struct wire_transfer_reroute *m)
        REQUIRES(engine_held);

#endif
