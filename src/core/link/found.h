/* Sessions of servers that come and go: begin, move and end them. Their devices join the platform.
 * Lock held, unless it says otherwise. */
#ifndef SPANCL_CORE_FOUND_H
#define SPANCL_CORE_FOUND_H

#include "core/link/found_record.h"

/* Do what is due for `f`, or for all: begin a session, try another address, or leave. True: call it
 * again in a second. */
bool found_step(struct client *c, struct found *f) REQUIRES(client_held);
bool found_step_all(struct client *c) REQUIRES(client_held);

/* A session of `s` has brought devices. True: they are the first of a found server, and have been
 * added. False: the server is known to the application. */
bool found_came(struct server *s) REQUIRES(client_held);

/* Begin the sessions of servers for which there was no number. No call is in the midst of anything. */
void found_begin_first(struct client *c) REQUIRES(client_held);

/* End the sessions of servers that are gone, and that contexts had until now. */
void found_tidy(struct client *c) REQUIRES(client_held);

/* Is its record withdrawn, so that no new session may begin? */
bool found_is_gone(const struct server *s) REQUIRES(client_held);
/* Does a context have its devices? */
bool found_is_used(const struct server *s) REQUIRES(client_held);
/* Are its devices shown: is it there, or used by a context? */
bool found_shows(const struct server *s) REQUIRES(client_held);

#endif
