/* A lane thread is a thread that moves the bytes of one bulk lane, beside the others and beside the thread
 * that has the messages. Worth it where there are cores for it: one connection carries what one core copies.
 *
 * Each drives its link alone (loop/link.h).
 *
 * Everything but start and stop is called with the session's lock held. */
#ifndef SPANCL_LOOP_LANE_THREAD_H
#define SPANCL_LOOP_LANE_THREAD_H

#include "loop/link.h"

struct lane_thread;

struct lane_thread_params {
        struct link *link;            /* outlives the lane thread; may be down */
        const struct link_lock *lock; /* the session's; also outlives it */
        uint64_t spin_ns;             /* as for spin_init */
        /* Bytes were moved, or (status negative) the lane or the session is lost. Lock held, on the
         * lane thread. */
        void (*moved)(void *user, struct link *link, int status);
        void *user;
};

/* How many bulk lanes, the first of which has no lane thread, pay on this machine for each of so many links. */
unsigned lane_thread_lanes(size_t links);

/* Is a connection of a kind that lane threads are for? */
bool lane_thread_takes(const struct conn *conn);

/* SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int lane_thread_start(const struct lane_thread_params *params,
                                   struct lane_thread **ret);

/* There is something to send, or to receive again, or the link came up. */
void lane_thread_rouse(struct lane_thread *c);

/* First tell all, with the lock, then wait for each, without. NULL is allowed. */
void lane_thread_tell_stop(struct lane_thread *c);
struct lane_thread *lane_thread_free(struct lane_thread *c);

/* For all lanes of a session: rouse as many as have work. `lane threads`: SESSION_LANES, some NULL. */
void lane_threads_rouse(struct lane_thread *const *lane_threads, const struct session *s);

#endif
