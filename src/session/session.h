/* A session makes an exactly-once stream of messages, and bulk transfers beside it, out of
 * connections that may break, while both ends live. It is the same on both sides: client and server,
 * or server and server.
 *
 * Sans-IO: no socket, clock, thread or lock inside; one owner at a time. The owner moves bytes
 * between each lane's connection and the session (session_lane_*). Lane 0 carries messages, the
 * others bulk data straight from and to where it belongs. Messages are numbered from 0; each side
 * keeps what the other has not acknowledged, at most about `window_bytes`, and sends it again on the
 * next connection. */
#ifndef SPANCL_SESSION_SESSION_H
#define SPANCL_SESSION_SESSION_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/list.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
        SESSION_LANES = 6, /* lane 0: messages, lane 1 and, where they pay, further ones: bulk */
        SESSION_WINDOW_DEFAULT = 4 << 20,
        SESSION_INLINE_DEFAULT = 16 << 10,
        /* Lanes 2 and further, if there are any, are for large transfers, and lane 1 for the others: waking the threads of
         * several takes longer than moving a MiB. */
        SESSION_WIDE_DEFAULT = (1 << 20) + 1,
};

struct session;

/* The callbacks of a session. Each may send on the session, but not free it. */
struct session_ops {
        /* A message arrived, not checked yet (wire_dispatch does); borrowed. A negative result ends
         * the session. transfer_data and transfer_ack never get here. */
        int (*message)(void *user, struct bytes msg);

        /* Bytes [offset, offset + *len) of `transfer` are about to arrive: give their place in *ret,
         * and in *len how many fit there in one piece (at least 1, at most what was asked).
         * SP_E_AGAIN: the transfer is not known yet; the lane waits for session_bulk_retry (not
         * allowed for data inline on lane 0, shown by `inlined`, nor behind bytes of the same
         * FRAME_PLAIN_MAX that it gave a place for). Other errors end the session. Several lanes may have
         * a place in one transfer at a time. */
        int (*bulk_place)(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                          void **ret);

        /* These bytes have arrived at the place given. *ret_below: all bytes of the transfer below it
         * have. 1: that is all of it, 0: not yet. */
        int (*bulk_arrived)(void *user, uint64_t transfer, uint64_t offset, size_t len,
                            uint64_t *ret_below);

        /* Connections were lost: each transfer goes on where the bytes below which all are there end.
         * Bytes ahead of that, and places given, are forgotten; the bytes that are there are told again
         * (session_ack). NULL: there is no session_resume. */
        int (*bulk_restart)(void *user);
};

struct session_params {
        const struct session_ops *ops;
        void *user;
        size_t window_bytes; /* 0: SESSION_WINDOW_DEFAULT */
        size_t inline_bytes; /* transfers up to this size go inline; 0: SESSION_INLINE_DEFAULT */
        /* Those from this size on go over lanes 2 and further, and so do those with which lane 1 would have that
         * much to carry. 0: SESSION_WIDE_DEFAULT. */
        size_t wide_bytes;
};

/* Counters of what crossed the link, replays included. */
struct session_stats {
        uint64_t frames_sent, frames_received;
        uint64_t messages_sent, messages_received;
        uint64_t bytes_sent, bytes_received;   /* lane 0 */
        uint64_t bulk_sent, bulk_received;     /* other lanes */
        uint64_t fabric_sent, fabric_received; /* of these, by a fabric */
};

/* An outgoing bulk transfer; its owner embeds it and keeps it and the data until `done`. */
struct session_bulk {
        uint64_t transfer; /* not 0 */
        uint64_t total;    /* bytes, at least 1 */
        /* Where the bytes from `offset` on are, and in *ret_len how many lie there in one piece. */
        const void *(*at)(struct session_bulk *b, uint64_t offset, size_t *ret_len);
        /* Called once: 0: the other side has it all; else the SP_E_* that ended the session. */
        void (*done)(struct session_bulk *b, int status);
        /* `acked` has grown, and bytes below `offset` will not be asked for again: some of the acknowledged ones
         * may be, by lanes that are yet to hear that they sent them. May be NULL. */
        void (*passed)(struct session_bulk *b, uint64_t offset);

        /* The session's own. */
        struct list link;
        uint64_t ready;  /* bytes below it may be sent */
        uint64_t framed; /* bytes below it were put into frames */
        uint64_t acked;  /* bytes below it the other side has; for the owner to read */
        /* Below `framed`, but of frames that were cut: to be framed again. A lane makes at most one,
         * and none is framed otherwise before these are. */
        struct {
                uint64_t begin, end;
        } again[SESSION_LANES];
        unsigned again_count;
        bool wide; /* for lanes from 2 on, where there are any; the owner may have set it */
};

/* SP_E_NOMEM. */
SP_NODISCARD int session_new(const struct session_params *params, struct session **ret);

/* Ends every bulk transfer with the error that ended the session, or SP_E_GONE. NULL is allowed. */
struct session *session_free(struct session *s);

/* The other side is given up (`status` negative): nothing is sent or received any more, and each bulk transfer ends with
 * it, now or when the last lane that may be reading from it is down. */
void session_end(struct session *s, int status);

/* ---- messages ------------------------------------------------------------------------------ */

/* session_send(s, marker, .event = e, ...): append a message. SP_E_NOMEM, SP_E_LIMIT (too large), or
 * the error that ended the session: nothing changed. It is sent when the owner next drives lane 0. */
#define session_send(s, name, ...) \
        session_commit(s, wire_put_##name(session_outbox(s), &(struct wire_##name){ __VA_ARGS__ }))

/* The same in two steps: encode with wire_put_* into the outbox, then commit with its result. */
struct buf *session_outbox(struct session *s);
SP_NODISCARD int session_commit(struct session *s, int put_result);

/* Where the next message will be in the stream of all, for session_unsent_at. */
uint64_t session_position(const struct session *s);

/* The message that was committed there, to be changed, while no frame has ever held it; else NULL. Until the next
 * message. */
uint8_t *session_unsent_at(struct session *s, uint64_t position);

/* Has the window room? When false, callers that can wait should, until the other side has
 * acknowledged; nothing is refused. */
bool session_has_room(const struct session *s);

/* Bytes of messages that no frame holds yet. */
size_t session_unsent(const struct session *s);

/* ---- bulk ---------------------------------------------------------------------------------- */

/* Start sending; bytes below `ready` are available. A whole one of at most inline_bytes goes inline
 * behind the messages committed so far, and `done` is called before this returns.
 * SP_E_NOMEM: nothing changed. */
SP_NODISCARD int session_bulk_send(struct session *s, struct session_bulk *b, uint64_t ready);

/* More bytes have become available. */
void session_bulk_ready(struct session *s, struct session_bulk *b, uint64_t ready);

/* Is bulk data waiting to be sent? */
bool session_bulk_pending(const struct session *s);

/* Is it, or has a part of a frame come whose rest is on its way? */
bool session_bulk_moves(const struct session *s);

/* How many of the lanes from 2 on is that worth? At most `max` are counted. */
size_t session_bulk_lanes(const struct session *s, size_t max);

/* Wide transfers use so many of the lanes from 2 on, at least 1; at first all. */
void session_share_lanes(struct session *s, unsigned lanes);

/* There are such lanes now. */
bool session_has_wide_lanes(const struct session *s);

/* bulk_place said SP_E_AGAIN before and may succeed now. */
void session_bulk_retry(struct session *s);

/* ---- lanes --------------------------------------------------------------------------------- */

/* This side's part of hello / hello_reply. */
uint64_t session_next_seq(const struct session *s);

/* The other side has acknowledged every message below it. */
uint64_t session_acked_seq(const struct session *s);

/* A connection for `lane` has exchanged hellos; the other side said `peer_next_seq` (lane 0).
 * SP_E_PROTO: it claims what was never sent, or lacks what was already forgotten. */
SP_NODISCARD int session_lane_up(struct session *s, unsigned lane, uint64_t peer_next_seq);

/* Lane 0 is to be made again: append to `ret`, in frames, the oldest messages that are not acknowledged, as many as go into
 * `max` bytes. They may be sent right behind the hello, before its answer: the other side knows by their numbers which it
 * has. SP_E_NOMEM. */
SP_NODISCARD int session_early(struct session *s, size_t max, struct buf *ret);

/* Behind session_lane_up for lane 0: these bytes went that way on this connection, and need not be sent again. Nothing
 * else was asked of the lane before. */
void session_early_sent(struct session *s);

/* Lane 0 is up again, as connection number `generation` (hello's; from 1 on, larger than before). All
 * older connections of the session are closed: the other lanes are down. The bytes received of a
 * bulk frame that was cut count; what was sent and did not arrive is sent again once the other side has
 * said what it has. Calls ops. Negative: the session has ended. */
SP_NODISCARD int session_resume(struct session *s, uint64_t generation);
uint64_t session_generation(const struct session *s);

/* For bulk_restart. SP_E_NOMEM, or the error that ended the session. */
SP_NODISCARD int session_ack(struct session *s, uint64_t transfer, uint64_t below);

/* The lane's connection is gone; partial frames are dropped. session_lane_up does this itself for a
 * lane that is up. */
void session_lane_down(struct session *s, unsigned lane);
bool session_lane_is_up(const struct session *s, unsigned lane);
/* Lanes from there on have never been up: most sessions have one, and two once data was moved. */
unsigned session_lanes_used(const struct session *s);

/* Where the next bytes received on the lane belong: up to 2 places. Returns how many; 0: the lane
 * must wait (bulk not placed yet), or a negative SP_E_* that ends the session. */
SP_NODISCARD int session_lane_want(struct session *s, unsigned lane, struct iovec ret[2]);

/* `size` bytes were received there. Calls ops. Negative: the session has ended. */
SP_NODISCARD int session_lane_received(struct session *s, unsigned lane, size_t size);

/* The bytes to send on the lane next: up to `max` (at least 2) pieces. Returns how many; 0: nothing. On
 * lane 0 they are valid until the session is used again, on others until session_lane_sent or
 * session_lane_down. */
int session_lane_pending(struct session *s, unsigned lane, struct iovec *ret, int max);

/* Is there anything? Changes nothing. */
bool session_lane_has_pending(const struct session *s, unsigned lane);

/* The first `size` bytes of that were sent. */
void session_lane_sent(struct session *s, unsigned lane, size_t size);

/* ---- clocks -------------------------------------------------------------------------------- */

/* The probes that this side expects answers to. It always expects the rest of a frame or transfer that has begun. */
enum session_expects {
        SESSION_EXPECTS_NOTHING, /* never: it may have better things to do for hours */
        SESSION_EXPECTS_ACKS,    /* while something that was sent is not acknowledged */
        SESSION_EXPECTS_ANSWERS, /* always */
};

/* Look at the clocks (session/owed.h), behind each attempt to receive, and at session_deadline. It may leave something to send, a
 * probe. Nothing is owed for longer than `limit_ns`; 0: there are no clocks. SP_E_LINK: it is, and the connections are
 * of no use. */
SP_NODISCARD int session_tick(struct session *s, enum session_expects expects, uint64_t limit_ns,
                              uint64_t now_ns);
const char *session_overdue(const struct session *s); /* then: what */

/* So many bytes came on the connection of a lane from 1 on since it is up, those included that it holds back until it
 * has checked them (conn.came): a count that grows is no silence. Behind each attempt to receive. */
void session_lane_heard(struct session *s, unsigned lane, uint64_t count);

/* When to call session_tick at the latest; UINT64_MAX: nothing is owed. */
uint64_t session_deadline(const struct session *s);

/* ---- packed frames: who drives a bulk lane packs and unpacks them ---------------------------- */

/* Both hellos said so, just now: packed frames may come and go on the lane. */
void session_lane_packs(struct session *s, unsigned lane);

/* From now on frames for the lane are made small enough to be packed, or as large as ever. */
void session_lane_small(struct session *s, unsigned lane, bool small);

/* The bytes of the frame that session_lane_pending gave, if nothing of it was sent yet on a lane that packs; else
 * 0. Can it be packed as it is? */
size_t session_lane_fresh(const struct session *s, unsigned lane);
bool session_lane_packable(const struct session *s, unsigned lane);

/* A copy of its bytes. */
void session_lane_copy(const struct session *s, unsigned lane, void *ret);

/* It goes as `packed` instead, which is smaller, and the caller's to keep until session_lane_fresh tells of another
 * or the lane is down. */
void session_lane_pack(struct session *s, unsigned lane, struct bytes packed);

/* A packed frame has come, which the lane waits for: `packed` holds `size` bytes that belong at `to`. Both stay
 * valid until session_lane_unpacked or session_lane_down. */
struct session_packed_frame {
        struct bytes packed;
        void *to;
        size_t size;
};
bool session_lane_closed(const struct session *s, unsigned lane, struct session_packed_frame *ret);

/* They are there, or it did not hold them: SP_E_PROTO. Calls ops. Negative: the session has ended. */
SP_NODISCARD int session_lane_unpacked(struct session *s, unsigned lane, bool good);

const struct session_stats *session_get_stats(const struct session *s);

/* So many bytes of bulk lanes went by a fabric. */
void session_count_fabric(struct session *s, uint64_t sent, uint64_t received);

#endif
