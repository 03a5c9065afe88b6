/* The watch over the list of clients. The supervisor ends the sessions of a client that is removed from the list, no
 * matter who removes it. A list that is missing or cannot be read ends no session, because editors replace files in
 * steps. */
#ifndef SPANCL_DAEMON_WATCHING_H
#define SPANCL_DAEMON_WATCHING_H

#include "daemon/supervisor/supervising.h"

/* Watch the folder of keys, once there is one. */
void clients_watch(struct supervisor *s);
void clients_unwatch(struct supervisor *s);

/* A file of the folder has changed. */
void clients_changed(struct supervisor *s);

/* Once the changes are over, end the sessions and recordings whose client is not in the list any more. */
void clients_expire(struct supervisor *s, uint64_t now_ns);

/* The client of this grant has replaced its key in the list: its sessions and observers go on under the new one. */
void clients_rekeyed(struct supervisor *s, const struct gate_grant *grant);

#endif
