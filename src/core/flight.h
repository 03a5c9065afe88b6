/* Large copies on their way to servers: from where, and how fast they come. Lock held. */
#ifndef SPANCL_CORE_FLIGHT_H
#define SPANCL_CORE_FLIGHT_H

#include "core/client.h"
#include "core/placement.h"

/* `part` of `root` goes to domain `domain` of `to` by the command `event`, which the client is told of
 * (COMMAND_NOTIFY), out of the replica at `from`, `from_domain`. What there is no memory to remember counts for nothing. */
void flight_begin(cl_mem root, struct range part, uint32_t from, uint32_t from_domain,
                  struct server *to, unsigned domain, uint64_t event);

/* The command is complete: its bytes came from times[1] to times[2], if `timed`. Others are none of these. */
void flight_ended(struct server *to, uint64_t event, cl_int status, const uint64_t times[3],
                  bool timed);

/* The server is lost. */
void flights_lost(struct server *to);
void flights_fini(struct client *c);

/* placement_share, by how fast the server was last sent to. */
unsigned flight_plan(const struct server *to, const struct _cl_mem *root, struct range part,
                     const struct replica *from, struct share ret[PLACEMENT_SHARES_MAX]);

#endif
