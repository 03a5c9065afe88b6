/* Servers that come and go: discovery finds them, or the program names them while it runs. Their
 * devices join the platform. A server is one name with one key; several records of it, and several
 * sources, are one server, and so is a record that comes back at another address. Lock held, unless
 * it says otherwise. */
#ifndef SPANCL_CORE_FOUND_H
#define SPANCL_CORE_FOUND_H

#include "core/link/server.h"

/* Are servers searched? */
bool found_are_searched(const struct client *c) REQUIRES(client_held);

/* The configuration is read: decide what the sources "auto" are. */
void found_choose_sources(struct client *c) REQUIRES(client_held);

/* Start the sources, and wait for what they find at first, for client_params.sources_ns at most. The
 * configured servers are connected. Releases the lock meanwhile. */
void found_begin(struct client *c) REQUIRES(client_held);

/* End the sources. No lock held. */
void found_end(struct client *c);
/* The same in the child of a fork: close their descriptors. */
void found_abandon(struct client *c);
void found_fini(struct client *c);

/* A session of `s` has brought devices. True: they are the first of a found server, and have been
 * added. False: the server is known to the application. */
bool found_came(struct server *s) REQUIRES(client_held);
/* A session of `s` has ended, or lost its connections. */
void found_lost(struct server *s) REQUIRES(client_held);

/* Begin the sessions of servers for which there was no number. No call is in the midst of anything. */
void found_begin_first(struct client *c) REQUIRES(client_held);

/* End the sessions of servers that are gone, and that contexts had until now. */
void found_tidy(struct client *c) REQUIRES(client_held);

/* Is its record withdrawn, so that no new session may begin? */
bool found_is_gone(const struct server *s) REQUIRES(client_held);
/* Are its devices shown: is it there, or used by a context? */
bool found_shows(const struct server *s) REQUIRES(client_held);

/* Do both lead to one server, as far as their addresses tell? Immutable; no lock needed. */
bool found_same_server(const struct server_spec *a, const struct server_spec *b);

/* Add the servers of a text with the grammar of SPANCL_SERVERS, or withdraw them. A server that is
 * known stays one. SP_E_INVAL: the text, or a server in this process; SP_E_NOENT: found_remove knows
 * no such server; SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int found_add(struct client *c, const char *servers) REQUIRES(client_held);
SP_NODISCARD int found_remove(struct client *c, const char *servers) REQUIRES(client_held);

/* Append a line "NAME\tSTATE\tDEVICES\n" for each server of the platform: STATE is connected,
 * connecting, disconnected, lost or gone. SP_E_NOMEM. */
SP_NODISCARD int found_list(struct client *c, struct buf *out) REQUIRES(client_held);

#endif
