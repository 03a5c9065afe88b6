/* New sessions with servers whose sessions have ended, behind the devices that the application
 * knows.
 *
 * Each session has a struct server of its own, with a number of its own, so that nothing of an
 * earlier session can reach it. Contexts, and all objects in them, stay with the devices that they
 * were made with, and so with that session. */
#ifndef SPANCL_CORE_NEW_SESSION_H
#define SPANCL_CORE_NEW_SESSION_H

#include "core/link/server.h"

/* The server's session has ended: begin another one, with another struct server, if the server may
 * come back. */
void server_begin_session(struct server *s) REQUIRES(client_held);
/* Begin the first session with a server that was not there at the start. If the session is not `wanted`, descriptions
 * of its devices will do. `spec` is borrowed while the server lives. SP_E_LIMIT: there are CLIENT_FIRST_MAX already;
 * SP_E_NOMEM, SP_E_UNSUPP. */
SP_NODISCARD int server_add(struct client *c, const struct server_spec *spec, bool wanted,
                            struct server **ret) REQUIRES(client_held);
/* Begin another session with the server, which has another address now. `s` is the newest session;
 * it ends if it has not. An idle server stays idle. If it was not reached yet, it goes on at the
 * other address. Errors as above. */
SP_NODISCARD int server_move(struct server *s, const struct server_spec *spec)
        REQUIRES(client_held);
/* May another session follow this one, the newest, if it ends? */
bool server_may_begin(const struct server *s) REQUIRES(client_held);
/* The server is idle: begin another session, for which a call waits (idle.awaited). If that can't be, the
 * server is lost. */
void server_begin_again(struct server *s) REQUIRES(client_held);
/* Begin the sessions that had to be put off. Called when no call is in the midst of anything. */
void servers_begin_sessions(struct client *c) REQUIRES(client_held);
/* The receiver's part, while the session is being opened. True: something came. */
bool server_opening(struct server *s) REQUIRES(client_held);

#endif
