/* Copies on their way to servers: from where, how fast large ones come, and who else has the bytes. Lock held. */
#ifndef SPANCL_CORE_MIGRATION_H
#define SPANCL_CORE_MIGRATION_H

#include "core/client.h"
#include "core/memory/placement.h"

/* What `share` says of `root` goes to domain `domain` of `to` by the command `event`. `told`: the client hears of its
 * end (COMMAND_NOTIFY). What there is no memory to remember counts for nothing. */
void migration_begin(cl_mem root, const struct share *share, struct server *to, unsigned domain,
                     uint64_t event, bool told);

/* The command is complete: its bytes came from times[1] to times[2], if `timed`. Others are none of these. */
void migration_ended(struct server *to, uint64_t event, cl_int status, const uint64_t times[3],
                     bool timed);

/* It has not brought what it should have: nobody gets it from there. */
void migrations_avoid(struct server *to, uint64_t event);

/* The server it comes from is lost or can't send it: it comes from somebody else who has it. A handler of
 * messages. */
int migration_orphaned(void *user, const struct wire_transfer_orphaned *m);

/* The server is lost. */
void migrations_lost(struct server *to);
void migrations_fini(struct client *c);

/* placement_share, by how fast the server was last sent to. */
unsigned migration_plan(const struct server *to, const struct _cl_mem *root, struct range part,
                        const struct replica *from, struct share ret[PLACEMENT_SHARES_MAX]);

#endif
