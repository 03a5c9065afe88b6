/* The sources of discovery of a client. Their thread reports records; this makes servers of them.
 * Lock held, unless it says otherwise. */
#ifndef SPANCL_CORE_FOUND_SOURCES_H
#define SPANCL_CORE_FOUND_SOURCES_H

#include "core/link/server.h"

/* Are servers searched? */
bool found_are_searched(const struct client *c) REQUIRES(client_held);

/* After the configuration is read: decide what the sources "auto" are, and whether the first query of devices
 * waits. */
void found_choose_sources(struct client *c) REQUIRES(client_held);

/* Start the sources, and wait for what they find at first, for client_params.sources_ns at most. The
 * configured servers are connected. Releases the lock meanwhile. */
void found_begin(struct client *c) REQUIRES(client_held);

/* A session of `s` has ended, or lost its connections. */
void found_lost(struct server *s) REQUIRES(client_held);

/* End the sources. No lock held. */
void found_end(struct client *c);
/* The same in the child of a fork: close their descriptors. */
void found_abandon(struct client *c);
/* Free all found servers. No lock held. */
void found_fini(struct client *c);

#endif
