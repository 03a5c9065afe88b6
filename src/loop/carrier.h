/* A carrier is a thread that moves the bytes of one bulk lane, beside the others and beside the thread
 * that has the messages. Worth it where there are cores for it: one connection carries what one core copies.
 *
 * Each drives its link alone (loop/link.h).
 *
 * Everything but start and stop is called with the session's lock held. */
#ifndef SPANCL_LOOP_CARRIER_H
#define SPANCL_LOOP_CARRIER_H

#include "loop/link.h"

struct carrier;

struct carrier_params {
        struct link *link;            /* outlives the carrier; may be down */
        const struct link_lock *lock; /* the session's; also outlives it */
        uint64_t spin_ns;             /* as for spin_init */
        /* Bytes were moved, or (status negative) the lane or the session is lost. Lock held, on the
         * carrier's thread. */
        void (*moved)(void *user, struct link *link, int status);
        void *user;
};

/* How many bulk lanes, the first of which has no carrier, pay on this machine for each of so many links. */
unsigned carrier_lanes(size_t links);

/* Is a connection of a kind that carriers are for? */
bool carrier_takes(const struct conn *conn);

/* SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int carrier_start(const struct carrier_params *params, struct carrier **ret);

/* There is something to send, or to receive again, or the link came up. */
void carrier_rouse(struct carrier *c);

/* First tell all, with the lock, then wait for each, without. NULL is allowed. */
void carrier_tell_stop(struct carrier *c);
struct carrier *carrier_free(struct carrier *c);

/* For all lanes of a session: rouse as many as have work. `carriers`: SESSION_LANES, some NULL. */
void carriers_rouse(struct carrier *const *carriers, const struct session *s);

#endif
