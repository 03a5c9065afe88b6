/* The watch over the list of clients. The supervisor ends the sessions of a client that is removed from the list, no
 * matter who removes it. A list that is missing or cannot be read ends no session, because editors replace files in
 * steps. */
#ifndef SPANCL_DAEMON_WATCHING_H
#define SPANCL_DAEMON_WATCHING_H

#include "daemon/supervisor/supervising.h"

/* Watch the folder of keys, once there is one. */
void clients_watch(struct supervisor *s);
void clients_unwatch(struct supervisor *s);

/* A file of the folder has changed: end the sessions whose client is not in the list any more. */
void clients_changed(struct supervisor *s);

/* The client of this grant has replaced its key in the list: its sessions go on under the new one. */
void clients_rekeyed(struct supervisor *s, const struct gate_grant *grant);

#endif
