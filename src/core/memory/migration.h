/* Migrations: copies on their way to servers, with their sources, the rates of large ones, and
 * other replicas of the bytes. */
#ifndef SPANCL_CORE_MIGRATION_H
#define SPANCL_CORE_MIGRATION_H

#include "core/client.h"
#include "core/link/listeners.h"
#include "core/memory/placement.h"

/* The part of `root` that `share` names goes to domain `domain` of `to` by the command `event`.
 * `told`: the client is notified when it completes (COMMAND_NOTIFY). Without memory the migration
 * is not recorded: it can then not be rerouted, and does not count in any rate. */
void migration_begin(cl_mem root, const struct share *share, struct server *to, unsigned domain,
                     uint64_t event, bool announced) REQUIRES(client_held);

/* The command is complete. If `timed`, its bytes arrived from times[1] to times[2]. Does nothing if
 * the event is no migration. */
void migration_ended(struct server *to, uint64_t event, cl_int status, const uint64_t times[3],
                     bool timed) REQUIRES(client_held);

/* The command failed to bring its bytes: no reroute reads them from `to`. */
void migrations_avoid(struct server *to, uint64_t event) REQUIRES(client_held);

/* Handler: the source of a migration is lost or can't send. Reroute it to another replica that has
 * the bytes. */
int migration_orphaned(void *user, const struct wire_transfer_orphaned *m) REQUIRES(client_held);

/* The server is lost. */
void migrations_server_lost(struct server *to, const struct server_loss *loss)
        REQUIRES(client_held);
void migrations_fini(struct client *c) REQUIRES(client_held);

/* placement_share, with the rates of the last large copies to the server. */
unsigned migration_plan(const struct server *to, const struct _cl_mem *root, struct range part,
                        const struct replica *from, struct share ret[PLACEMENT_SHARES_MAX])
        REQUIRES(client_held);

#endif
