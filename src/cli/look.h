/* A look at a server: what it tells about itself and its sessions to one who begins none. Blocking. */
#ifndef SPANCL_CLI_LOOK_H
#define SPANCL_CLI_LOOK_H

#include "base/config.h"
#include "proto/wire.h"

/* Call `each` with NULL when the server has let us in, and for everything that it tells then, in its order. `quiet`: print no error. */
SP_NODISCARD int look_at(const struct server_spec *spec, int timeout_ms, bool quiet,
                         void (*each)(void *user, const struct wire_session_stats *m), void *user);

/* If it is about a device that new sessions do not get, print that. */
bool look_print_service(const struct wire_session_stats *m);

#endif
