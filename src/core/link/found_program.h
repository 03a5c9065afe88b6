/* Servers that the program names while it runs, and the list of all. Lock held. */
#ifndef SPANCL_CORE_FOUND_PROGRAM_H
#define SPANCL_CORE_FOUND_PROGRAM_H

#include "core/link/server.h"

/* Add the servers of a text with the grammar of SPANCL_SERVERS, or withdraw them. A server that is
 * known stays one. SP_E_INVAL: the text, or a server in this process; SP_E_NOENT: found_remove knows
 * no such server; SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int found_add(struct client *c, const char *servers) REQUIRES(client_held);
SP_NODISCARD int found_remove(struct client *c, const char *servers) REQUIRES(client_held);

/* Append a line "NAME\tSTATE\tDEVICES\n" for each server of the platform: STATE is connected,
 * connecting, disconnected, lost or gone. SP_E_NOMEM. */
SP_NODISCARD int found_list(struct client *c, struct buf *out) REQUIRES(client_held);

#endif
