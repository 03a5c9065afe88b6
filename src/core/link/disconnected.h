/* Servers whose connections are lost, and made again. */
#ifndef SPANCL_CORE_DISCONNECTED_H
#define SPANCL_CORE_DISCONNECTED_H

#include "core/link/server.h"

/* Return true if the server is gone, or disconnected for too long. Then new commands and requests
 * return CL_DEVICE_NOT_AVAILABLE, and so do calls that wait already. */
bool server_refuses(const struct server *s) REQUIRES(client_held);

/* The same for a call that needs the server, and so says what server_log has kept. */
bool server_fails(struct server *s) REQUIRES(client_held);

/* Log a loss: now if a call waits, else when a later one needs the server. A program that has its
 * results and ends is not warned. */
void server_log(struct server *s, enum log_level level, const char *text) REQUIRES(client_held);

/* Set CL_DEVICE_AVAILABLE of its devices. */
void server_set_available(struct server *s, bool available) REQUIRES(client_held);

/* Is the server worth waiting for after a loss with that status? */
bool server_may_return(const struct server *s, int status) REQUIRES(client_held);

/* Count a lost connection. True: many in a row were lost without a message coming through, so the
 * server is lost. */
bool server_tries_in_vain(struct server *s) REQUIRES(client_held);
/* Did sending find that the session has ended? If only connections are lost, the session goes on:
 * messages to the server are kept, and sent after the link reconnects. */
static inline bool server_ends(const struct server *s) REQUIRES(client_held)
{
        return s->lost_status && !server_may_return(s, s->lost_status);
}
void server_disconnected(struct server *s) REQUIRES(client_held);

/* The receiver's part while the server is disconnected: have the link reconnect. SP_E_*: the server
 * is lost. */
SP_NODISCARD int server_redial(struct server *s) REQUIRES(client_held);
/* It is connected again. */
void server_back(struct server *s) REQUIRES(client_held);

/* Let a disconnected server refuse calls from now on if they have waited for it long enough. */
void servers_refuse(struct client *c) REQUIRES(client_held);

/* The application has begun to watch a device: calls may fail at once from now on. */
void servers_watched(struct client *c) REQUIRES(client_held);

/* Check the time limits of all sessions (session_tick); on the thread that receives. A server that
 * owes an answer for too long is disconnected. */
void servers_tick(struct client *c, uint64_t now_ns) REQUIRES(client_held);

/* Disconnect servers whose hosts acknowledge nothing (client_io.silent); on the thread that receives,
 * after all is sent and before it sleeps. */
void servers_check_silence(struct client *c, uint64_t now_ns) REQUIRES(client_held);

/* The time at which one of these or servers_refuse is due next. */
uint64_t servers_deadline(const struct client *c) REQUIRES(client_held);

#endif
