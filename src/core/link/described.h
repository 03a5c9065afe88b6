/* Servers that have described their devices instead of beginning a session. Such a server is idle (idle.h) from
 * the start: its devices are available, and their next use begins its first session. */
#ifndef SPANCL_CORE_DESCRIBED_H
#define SPANCL_CORE_DESCRIBED_H

#include "core/link/server.h"

struct io_connect;

/* Do the descriptions of the devices of configured servers do, for now? Not if only one of them is remote. Its devices
 * will be used, and then a session at once costs a connection less. */
bool servers_describe(struct client *c) REQUIRES(client_held);
/* The same for one server that was found, perhaps as the only one. `s` is a session with it that begins. */
bool server_describes(const struct server *s) REQUIRES(client_held);

/* The server is connected, and has described its devices: make them. The caller frees what `at` has of them.
 * SP_E_NOMEM, SP_E_PROTO. */
SP_NODISCARD int server_described(struct server *s, struct io_connect *at) REQUIRES(client_held);

#endif
