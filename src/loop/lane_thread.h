/* A lane thread moves the bytes of one bulk lane, beside other lane threads and beside the thread
 * that moves the messages. It pays if there are enough cores: one connection carries only as much
 * as one core copies.
 *
 * Each lane thread drives its link alone (loop/link.h). All functions but start and free are called
 * with the session's lock held. */
#ifndef SPANCL_LOOP_LANE_THREAD_H
#define SPANCL_LOOP_LANE_THREAD_H

#include "loop/link.h"

struct lane_thread;

struct lane_thread_params {
        struct link *link;            /* outlives the lane thread; may be down */
        const struct link_lock *lock; /* the session's; also outlives it */
        uint64_t spin_ns;             /* as for spin_init */
        /* Called when bytes were moved, or (status negative) the lane or the session is lost. Lock
         * held, on the lane thread. */
        void (*moved)(void *user, struct link *link, int status);
        void *user;
};

/* The number of bulk lanes that pays on this machine for each of so many links. The first has no
 * lane thread. */
unsigned lane_thread_lanes(size_t links);

/* Is a lane thread useful for this kind of connection? */
bool lane_thread_takes(const struct conn *conn);

/* Start a lane thread. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int lane_thread_start(const struct lane_thread_params *params,
                                   struct lane_thread **ret);

/* Wake the lane thread: it can send or receive again, or the link came up. */
void lane_thread_rouse(struct lane_thread *c);

/* Stop lane threads: first notify all of them, with the lock held, then free each without it. NULL
 * is allowed. */
void lane_thread_request_stop(struct lane_thread *c);
struct lane_thread *lane_thread_free(struct lane_thread *c);

/* Wake the lane threads of a session that have work. `lane_threads`: SESSION_LANES, some NULL. */
void lane_threads_rouse(struct lane_thread *const *lane_threads, const struct session *s);

#endif
