/* A link joins one lane of a session with a conn: it moves bytes between them without blocking.
 *
 * Threads: the session's lock is held around every call. With a struct link_lock, bulk lanes
 * release the lock while bytes are copied, so that lane 0 goes on meanwhile. Other threads may then
 * use the session and call link_flush, which leaves the sending to the thread that is already at
 * it. At most one thread receives on a link.
 *
 * No work is left behind by a sleeping thread. One thread drives each link. A thread that adds work
 * holds the lock and wakes the driving thread if it sleeps. The driving thread sleeps only after it
 * has checked two things without releasing the lock in between: nothing can be sent at once
 * (link_can_send), and which descriptors to poll (link_poll). */
#ifndef SPANCL_LOOP_LINK_H
#define SPANCL_LOOP_LINK_H

#include <stdatomic.h>

#include "loop/compression.h"
#include "os/lock.h"
#include "os/poll.h"
#include "session/session.h"
#include "transport/transport.h"

/* The session's lock, and how to take and release it. */
struct LOCK_ATTRIBUTE(capability("lock")) link_lock {
        void (*lock)(void *user);
        void (*unlock)(void *user);
        void *user;
};

static inline void link_lock_take(const struct link_lock *l) ACQUIRE(*l) LOCK_UNCHECKED
{
        l->lock(l->user);
}

static inline void link_lock_release(const struct link_lock *l) RELEASE(*l) LOCK_UNCHECKED
{
        l->unlock(l->user);
}

/* Zeroed memory is a link that is down. */
struct link {
        struct session *session;
        unsigned lane;
        unsigned place;    /* session_place: not asked without the lock */
        struct conn *conn; /* NULL: down */
        bool blocked;      /* the conn takes no more now: poll for room */
        bool waiting;   /* link_poll found that nothing can be received before session_bulk_retry */
        bool sending;   /* a thread is in sendv without the lock */
        bool receiving; /* the same for recvv */
        bool doomed;    /* link_down was called meanwhile, or link_halt */
        bool ending;    /* sending has failed: the link is lost once the received bytes are read */
        bool owed;      /* bytes were sent that the other host may not have acknowledged */
        uint64_t ask_ns; /* when to look after them (lanes_silent); 0: not planned */
        struct silence_clock acks;
        atomic_uint copying;   /* threads that move bytes without the lock */
        struct packer *packer; /* NULL: frames go as they are */
        struct {
                struct iovec places[2];
                int count;
                size_t asked;
                ssize_t got; /* 0: nothing */
        } trial;             /* link_try's */
};

enum {
        /* Bytes that one call moves on a bulk lane before other lanes get their turn. */
        LINK_BUDGET = 1 << 20,
};

/* Give the link a conn over which both hellos were exchanged, and raise the session's lane. The
 * conn is taken over, also on failure. A conn that the link still has is closed first. SP_E_PROTO:
 * see session_lane_up. */
SP_NODISCARD int link_up(struct link *l, struct session *s, unsigned lane, struct conn *conn,
                         uint64_t peer_next_seq);

/* Enable the FEATURE_* that both hellos named; called right after link_up. With FEATURE_LZ4
 * received bulk frames may be packed from now on. Sent ones are packed as `mode` says. Over shared
 * memory none are. */
void link_pack(struct link *l, uint64_t features, enum compression_mode mode);

/* Can this side unpack, so that a hello may name FEATURE_LZ4? */
bool link_can_pack(enum compression_mode mode);

/* The conn's rate in bytes per second: as measured when it was full, or else as the system reports it. 0: not known;
 * UINT64_MAX: the conn stays within this host. */
uint64_t link_rate(const struct link *l);

/* Close the conn and take the session's lane down. Harmless if it is down. If another thread is in
 * sendv or recvv without the lock, that thread closes the conn when it returns; link_busy is true
 * until then. */
void link_down(struct link *l);
bool link_busy(const struct link *l);

/* Take the link down, but leave its conn open, for the caller to close. NULL: it is down, or busy. The conn is one of
 * IP. */
struct conn *link_leave(struct link *l);

/* Stop using the link, because the memory that it moves bytes from and to is about to change its
 * owner. When this returns, no thread touches that memory. It waits for threads that move bytes
 * without the lock; each is in a single call that does not block. link_down has still to be
 * called. */
void link_halt(struct link *l);

/* Send the lane's pending bytes, at most about `budget` (SIZE_MAX: all that fits). `unlock` may be
 * NULL. Returns 0 if nothing is left to send, or another thread is sending. SP_E_AGAIN: the conn
 * takes no more now, poll for room; SP_E_BUSY: the budget is used up, call again; SP_E_LINK: the
 * connection is lost, call link_down.
 *
 * A conn that fails to send may still hold the other side's last message. That is SP_E_AGAIN here,
 * and link_receive returns SP_E_LINK after the received bytes. */
SP_NODISCARD int link_flush(struct link *l, size_t budget, const struct link_lock *unlock);

/* Would link_flush send something now? No if the conn takes no more. No if another thread is
 * sending: it wakes the driving thread if it leaves anything. */
bool link_can_send(const struct link *l);

/* Receive the bytes that are there, at most about `budget`, and feed the session, which calls its
 * ops. 1: the budget is used up, call again; 0: nothing more is there now (poll), or the lane waits
 * for session_bulk_retry; SP_E_LINK: the connection is lost, call link_down; other errors: the
 * session has ended. */
SP_NODISCARD int link_receive(struct link *l, size_t budget, const struct link_lock *unlock);

/* Receive without the lock, for a thread that polls in a loop: one system call, where asking first
 * would take two. link_try may be called without the lock between link_try_begin and link_try_end,
 * which need it. True: bytes have come, or the connection is lost; the next link_receive takes that
 * in. link_try_begin is true if the link can be tried: lane 0 of a stream socket. */
bool link_try_begin(struct link *l);
bool link_try(struct link *l);
void link_try_end(struct link *l);

/* True if link_receive has something to take in that the conn does not report: the result of
 * link_try, or that sending failed. No thread may sleep or try before that. */
bool link_is_due(const struct link *l);

/* Get the conn for a thread that drives the link alone and polls its conn without the lock
 * (conn_peek, conn_arm). NULL: only poll(2) can tell. Until link_try_end, a thread that takes the
 * link down leaves closing to this thread. */
struct conn *link_poll_begin(struct link *l);

/* conn_polled, and CONN_IN when link_is_due. */
unsigned link_polled(struct link *l, const struct pollfd *fds, size_t n);

/* Fill in entries for poll(2). Returns the number of entries, at most 2; 0 when down. */
int link_poll(struct link *l, struct pollfd ret[2]);

/* Sleep until one of the lanes can receive or send; `blocked` is updated. For one thread that has
 * all lanes of a session to itself. SP_E_AGAIN: no event for timeout_ms, or a signal came, or the
 * thread was woken for an event that it has seen already. */
SP_NODISCARD int link_wait(struct link lanes[SESSION_LANES], int timeout_ms);

#endif
