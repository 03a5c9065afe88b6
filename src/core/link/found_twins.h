/* Found servers that the client has otherwise: by configuration, or by another record. */
#ifndef SPANCL_CORE_FOUND_TWINS_H
#define SPANCL_CORE_FOUND_TWINS_H

#include "core/link/found_record.h"

/* Do both lead to one server, as far as their addresses tell? Immutable; no lock needed. */
bool found_same_server(const struct server_spec *a, const struct server_spec *b);

/* The server that is the same as `spec`, which has the key `identity` ("": not known). NULL: none. */
struct server *found_find_twin(struct client *c, const struct found *f,
                               const struct server_spec *spec, const char *identity)
        REQUIRES(client_held);

/* Set `twin` of a server that is present: does the client have it otherwise, by the address where it
 * was last, or by the one that is to be tried first? */
void found_update_twin(struct client *c, struct found *f) REQUIRES(client_held);

#endif
