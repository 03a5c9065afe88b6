/* The parts of the client that hear about servers. A part that keeps something for each server has a row
 * in the table of listeners.c, so that core/link/ need not know it. */
#ifndef SPANCL_CORE_LISTENERS_H
#define SPANCL_CORE_LISTENERS_H

#include "core/client.h"

struct server;

struct server_loss {
        int status;       /* SP_E_*: why */
        const char *text; /* the same, for people */
};

/* All servers have been asked for their devices. */
void servers_settled(struct client *c) REQUIRES(client_held);

/* A server has been added since, and its devices are known; the application does not know them yet. */
void server_notify_added(struct server *s);

/* The server is lost, its link carries nothing any more, and its devices are not available. */
void server_notify_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

/* The devices of `s`, a new session, have taken the place of the earlier sessions' devices. */
void server_notify_replaced(struct server *s) REQUIRES(client_held);

/* Does anything still refer to this lost server by its number? */
bool server_is_used(const struct server *s) REQUIRES(client_held);

#endif
