/* A link joins one lane of a session with a conn: it moves bytes between them without blocking.
 *
 * Threads: the session's lock (whatever guards the session) is held around every call. Given a
 * struct link_lock, bulk lanes release it while bytes are copied, so that lane 0 goes on meanwhile;
 * other threads may then use the session and call link_flush, which leaves the sending to the thread
 * that is at it. At most one thread receives on a link.
 *
 * Nobody sleeps on work. Each link has one thread that drives it. Who adds work wakes that thread if it
 * sleeps, with the lock held; and it sleeps only after it has seen, without releasing the lock since, that
 * there is nothing to send at once (link_can_send) and what to poll for (link_poll). */
#ifndef SPANCL_LOOP_LINK_H
#define SPANCL_LOOP_LINK_H

#include <poll.h>
#include <stdatomic.h>

#include "loop/compression.h"
#include "session/session.h"
#include "transport/transport.h"

/* How to release and take the session's lock. */
struct link_lock {
        void (*lock)(void *user);
        void (*unlock)(void *user);
        void *user;
};

/* Zeroed memory is a link that is down. */
struct link {
        struct session *session;
        unsigned lane;
        struct conn *conn; /* NULL: down */
        bool blocked;      /* the conn takes no more now: poll for room */
        bool waiting;   /* link_poll found that nothing can be received before session_bulk_retry */
        bool sending;   /* a thread is in sendv without the lock */
        bool receiving; /* the same for recvv */
        bool doomed;    /* link_down was called meanwhile, or link_halt */
        bool ending;    /* the conn sends no more: lost when what has come is received */
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

/* Both hellos were exchanged over `conn`, which the link takes over, also when it fails: the session's
 * lane is up. SP_E_PROTO: see session_lane_up. A conn that the link has is closed before. */
SP_NODISCARD int link_up(struct link *l, struct session *s, unsigned lane, struct conn *conn,
                         uint64_t peer_next_seq);

/* Just up; both hellos said these FEATURE_*. With FEATURE_LZ4 bulk frames may be packed from now on: those that
 * come, and ours where `mode` says so, but in shared memory none. */
void link_pack(struct link *l, uint64_t features, enum compression_mode mode);

/* Does this side unpack, so that a hello may say FEATURE_LZ4? */
bool link_can_pack(enum compression_mode mode);

/* Close the conn, the session's lane is down. Harmless when it is down. While another thread is in
 * sendv or recvv without the lock, that thread does it when it returns (until then link_busy). */
void link_down(struct link *l);
bool link_busy(const struct link *l);

/* The link is of no use any more, and memory that it moves bytes from and to is about to be somebody else's: when this
 * returns no thread touches it. Waits for who is at it without the lock, for as long as one call that does not block
 * takes. Of the conn link_down has still to be called. */
void link_halt(struct link *l);

/* Send what the lane has to send, at most about `budget` bytes (SIZE_MAX: all that fits). 0: nothing is
 * left to send, or another thread is at it; SP_E_AGAIN: the conn takes no more now (poll for room);
 * SP_E_BUSY: the budget is used up, call again; SP_E_LINK: the connection is lost, call link_down.
 * A conn that fails to send may still hold the other side's last message: that is SP_E_AGAIN here, and
 * link_receive says SP_E_LINK behind what has come. `unlock` may be NULL. */
SP_NODISCARD int link_flush(struct link *l, size_t budget, const struct link_lock *unlock);

/* Would it send something now? Not while the conn takes no more, or another thread is at it, which wakes
 * the link's own if it leaves anything. */
bool link_can_send(const struct link *l);

/* Receive what is there, at most about `budget` bytes, and feed the session, which calls its ops.
 * 1: the budget is used up, call again; 0: nothing more is there now (poll), or the lane waits for
 * session_bulk_retry; SP_E_LINK: the connection is lost, call link_down; other errors: the session has
 * ended. */
SP_NODISCARD int link_receive(struct link *l, size_t budget, const struct link_lock *unlock);

/* Receive without the lock, for a thread that looks again and again: one system call where asking first would be
 * two. Between link_try_begin and link_try_end, both with the lock, link_try does not need it. True: bytes have come,
 * or the connection is lost, which the next link_receive takes in. link_try_begin says whether there is anything
 * to try: lane 0 of a stream socket. */
bool link_try_begin(struct link *l);
bool link_try(struct link *l);
void link_try_end(struct link *l);

/* link_receive has something to take in that the conn does not tell of: what link_try found, or that sending failed.
 * Nobody is to sleep, and nothing is tried, before that. */
bool link_is_due(const struct link *l);

/* For a thread that drives the link alone and looks at its conn without the lock (conn_peek, conn_arm): the conn, or
 * NULL where only poll(2) can tell. Until link_try_end whoever takes the link down leaves that to this thread. */
struct conn *link_look_begin(struct link *l);

/* conn_polled, and CONN_IN when link_is_due. */
unsigned link_polled(struct link *l, const struct pollfd *fds, size_t n);

/* What poll(2) has to wait for; returns the number of entries, at most 2, 0 when down. */
int link_poll(struct link *l, struct pollfd ret[2]);

/* For one thread that has all lanes of a session to itself: sleep until one of them can receive or send
 * (`blocked` is updated). SP_E_AGAIN: nothing for timeout_ms, or a signal came, or a wake for what was seen already. */
SP_NODISCARD int link_wait(struct link lanes[SESSION_LANES], int timeout_ms);

#endif
