/* The memory that commands use and write. Stale bytes of it are brought first, from the client or from other servers.
 * The wait lists of the commands that bring them only order them, so failures in them do not count
 * (COMMAND_REGARDLESS). A failed writer leaves the bytes as they were, or undefined, but readable. */
#ifndef SPANCL_CORE_OPERANDS_H
#define SPANCL_CORE_OPERANDS_H

#include "core/command/command.h"

/* The command uses these bytes of `mem`: it waits for copies of them that are on their way. If
 * `bring`, stale bytes are brought first. */
SP_NODISCARD int command_use(struct command *m, cl_mem mem, struct range r, bool bring)
        REQUIRES(client_held);

/* The command, which is sent, writes these bytes: all of them if it `covers` them. */
SP_NODISCARD int command_wrote(struct command *m, cl_mem mem, struct range r, bool covers)
        REQUIRES(client_held);

/* A command without an event has failed; if it brought data to the server, they are not there. */
void arrival_failed(struct server *s, uint64_t event) REQUIRES(client_held);

#endif
