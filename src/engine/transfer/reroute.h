/* Bytes from another server that will not come: the client is asked who else has them, and they come from there. */
#ifndef SPANCL_ENGINE_REROUTE_H
#define SPANCL_ENGINE_REROUTE_H

#include "engine/command/command.h"

/* The transfer of a write has failed. True: the client is asked, and the command goes on when it has answered.
 * False: nobody else can help. */
bool engine_reroute_ask(struct command *c);

/* No part in flight works any more with what was given up. */
void engine_reroute_settled(struct command *c);

int engine_handle_transfer_reroute(void *user, const struct wire_transfer_reroute *m);

#endif
