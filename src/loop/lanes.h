/* The connections of one session: a link for each lane, and the lane threads that move some of
 * them. The session's owner moves the other lanes: the loop's thread of a server, or the client's
 * thread that waits.
 *
 * All functions but lanes_join are called with the session's lock held. */
#ifndef SPANCL_LOOP_LANES_H
#define SPANCL_LOOP_LANES_H

#include "loop/lane_thread.h"
#include "loop/link.h"
#include "loop/spin.h"

/* Zeroed memory with a session: all lanes are down. */
struct lanes {
        struct session *session;
        struct link links[SESSION_LANES];
        struct lane_thread *threads[SESSION_LANES]; /* NULL: the owner moves the lane */
        uint64_t silence_ns;                        /* when to call lanes_silent; 0: not planned */
};

/* The entries for poll(2) that the lanes of one session need at most. */
enum { LANES_POLL_MAX = 2 * SESSION_LANES };

/* The number of lanes to go through: lane 0 always counts. */
static inline unsigned lanes_used(const struct lanes *l)
{
        unsigned used = session_lanes_used(l->session);
        return used ? used : 1;
}

/* The link of a lane that the owner moves. NULL: it is down, or a lane thread moves it. */
static inline struct link *lanes_own(struct lanes *l, unsigned lane)
{
        return l->links[lane].conn && !l->threads[lane] ? &l->links[lane] : NULL;
}

/* Take all links down. */
void lanes_down(struct lanes *l);

/* Are there threads that copy bytes of links that are down? They copy without the lock and never
 * block, so they are done soon. */
bool lanes_busy(const struct lanes *l);

/* link_halt for all lanes that have lane threads. */
void lanes_halt(struct lanes *l);

/* The lane came up: have a lane thread move it. It is started as `how` says (`link` is filled in)
 * if the lane has none. Without a thread the owner goes on moving the lane. */
void lanes_carry(struct lanes *l, unsigned lane, struct lane_thread_params how);

/* Wake the lane threads that have work. */
static inline void lanes_rouse(struct lanes *l)
{
        lane_threads_rouse(l->threads, l->session);
}

/* Stop the lane threads: first notify them, with the lock held, then await them without it. */
void lanes_stop(struct lanes *l);
void lanes_join(struct lanes *l);

/* Is the other host of one of the lanes silent (conn_silence)? Returns the lane, or -1. Plans the
 * next call (silence_ns). The owner calls this after it has sent, before it sleeps. */
int lanes_silent(struct lanes *l, uint64_t now_ns);

/* Were bytes sent since, and no call of lanes_silent is planned? A thread that has sent while the
 * owner sleeps wakes it then: once until the other host has acknowledged all. */
bool lanes_unwatched(const struct lanes *l);

/* Add the entries of the owner's lanes to `on`: at most LANES_POLL_MAX to its fds, and as many
 * conns as lanes. True: a link is due (link_is_due), so do not sleep. */
bool lanes_poll(struct lanes *l, struct spin_on *on);

#endif
