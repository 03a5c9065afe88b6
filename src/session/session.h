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

#include "base/bytes.h"
#include "base/list.h"
#include "os/iovec.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
        SESSION_LANES = 6, /* lane 0: messages; lane 1, and further ones where they pay: bulk */
        SESSION_WINDOW_DEFAULT = 4 << 20,
        SESSION_INLINE_DEFAULT = 16 << 10,
        /* Lanes 2 and further, if any, are for large transfers, and lane 1 for the others: waking
         * several threads takes longer than moving a MiB. */
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

        /* Connections were lost: each transfer goes on where its complete bytes end. Forget bytes
         * ahead of that, and places given, and report the complete bytes again (session_ack). NULL:
         * session_resume is never called. */
        int (*bulk_restart)(void *user);

        /* With in_bytes: a part of a message that is larger. `first`: the message begins, perhaps once more
         * because a connection was lost. `left` bytes of it follow in other parts. A part is borrowed, has a
         * multiple of 8 bytes and is 8-byte aligned. A negative result ends the session. */
        int (*part)(void *user, struct bytes part, bool first, size_t left);
};

struct session_params {
        const struct session_ops *ops;
        void *user;
        size_t window_bytes; /* 0: SESSION_WINDOW_DEFAULT */
        /* For a side with little memory: the sizes of the buffers of received and of unacknowledged messages;
         * multiples of 8, from 256 bytes on. Messages are handed out one by one as they come, larger ones in
         * parts. If a connection is lost within inline data on lane 0, a place may be asked for bytes that had
         * one already. 0: the buffers grow with the messages. */
        size_t in_bytes, out_bytes;
        size_t inline_bytes; /* transfers up to this size go inline; 0: SESSION_INLINE_DEFAULT */
        /* Transfers from this size on use lanes 2 and further. So do transfers with which lane 1
         * would have that much to carry. 0: SESSION_WIDE_DEFAULT. */
        size_t wide_bytes;
        unsigned place; /* its number in the owner's timeline (trace/trace.h); 0: none */
};

/* Counters of what crossed the link, replays included. */
struct session_stats {
        uint64_t frames_sent, frames_received;
        uint64_t messages_sent, messages_received;
        uint64_t bytes_sent, bytes_received;   /* lane 0 */
        uint64_t bulk_sent, bulk_received;     /* other lanes */
        uint64_t fabric_sent, fabric_received; /* the part of these over a fabric */
};

/* An outgoing bulk transfer; its owner embeds it and keeps it and the data until `done`. */
struct session_bulk {
        uint64_t transfer; /* not 0 */
        uint64_t total;    /* bytes, at least 1 */
        /* Return the place of the bytes from `offset` on, and in *ret_len how many are there in one
         * piece. */
        const void *(*at)(struct session_bulk *b, uint64_t offset, size_t *ret_len);
        /* Called once: 0: the other side has it all; else the SP_E_* that ended the session. */
        void (*done)(struct session_bulk *b, int status);
        /* `acked` has grown, and bytes below `offset` will not be asked for again. Acknowledged
         * bytes above it may be, by lanes that have not reported them as sent yet. May be NULL. */
        void (*passed)(struct session_bulk *b, uint64_t offset);
        /* Return the first byte from `offset` on that the other side lacks (at most `ready`), and in *ret_end
         * where such bytes end. Other bytes are not sent. The result for a byte does not change once the byte is
         * ready. NULL: it lacks all. */
        uint64_t (*lacks)(const struct session_bulk *b, uint64_t offset, uint64_t *ret_end);

        /* The session's own. */
        struct list link;
        uint64_t ready;  /* bytes below it may be sent */
        uint64_t framed; /* bytes below it were put into frames */
        uint64_t acked;  /* bytes below it the other side has; for the owner to read */
        /* Bytes below `framed` in frames that were cut, to be framed again before any others. Each
         * lane adds at most one entry. */
        struct {
                uint64_t begin, end;
        } again[SESSION_LANES];
        unsigned again_count;
        bool wide; /* for lanes from 2 on, if any; the owner may set it */
};

/* The bytes that session_new allocates for the session, beside its buffers. */
size_t session_size(void);

/* SP_E_NOMEM. */
SP_NODISCARD int session_new(const struct session_params *params, struct session **ret);

/* Ends every bulk transfer with the error that ended the session, or SP_E_GONE. NULL is allowed. */
struct session *session_free(struct session *s);

/* Give up the other side (`status` negative): nothing is sent or received any more. Each bulk
 * transfer ends with `status`, now or when the last lane that may read from it is down. */
void session_end(struct session *s, int status);

/* ---- messages ------------------------------------------------------------------------------ */

/* session_send(s, marker, .event = e, ...): append a message. SP_E_NOMEM, SP_E_LIMIT (too large), or
 * the error that ended the session: nothing changed. It is sent when the owner next drives lane 0. */
#define session_send(s, name, ...) \
        session_commit(s, wire_put_##name(session_outbox(s), &(struct wire_##name){ __VA_ARGS__ }))

/* The same in two steps: encode with wire_put_* into the outbox, then commit with its result. */
struct buf *session_outbox(struct session *s);
SP_NODISCARD int session_commit(struct session *s, int put_result);

/* Commit a message of which a part lies elsewhere, such as in read-only memory. The caller has encoded the rest. The
 * bytes `lent` follow the byte at `at` of the outbox's memory; the size in the message's header counts them. The
 * caller keeps them until session_kept is 0. The outbox must be empty before, and no message may be committed
 * meanwhile. */
SP_NODISCARD int session_commit_lent(struct session *s, int put_result, size_t at,
                                     struct bytes lent);

/* Bytes of messages that the other side has not acknowledged. */
size_t session_kept(const struct session *s);

/* Ask the other side to acknowledge its received messages at once (FRAME_PROBE). */
void session_ask(struct session *s);

/* The position of the next message in the stream of all, for session_unsent_at. */
uint64_t session_position(const struct session *s);

/* The message committed at `position`, which may be changed as long as no frame ever held it; else
 * NULL. Valid until the next message. */
uint8_t *session_unsent_at(struct session *s, uint64_t position);

/* Has the window room? If not, callers that can wait should wait until the other side has
 * acknowledged. Nothing is refused. */
bool session_has_room(const struct session *s);

/* Bytes of messages that no frame holds yet. */
size_t session_unsent(const struct session *s);

/* Free buffers that hold nothing now. No link of the session may be in a call, or in a trial. */
void session_trim(struct session *s);

/* ---- bulk ---------------------------------------------------------------------------------- */

/* Start sending; bytes below `ready` are available. A whole transfer of at most inline_bytes goes
 * inline behind the messages committed so far, and `done` is called before this returns.
 * SP_E_NOMEM: nothing changed. */
SP_NODISCARD int session_bulk_send(struct session *s, struct session_bulk *b, uint64_t ready);

/* More bytes have become available. */
void session_bulk_ready(struct session *s, struct session_bulk *b, uint64_t ready);

/* Is bulk data waiting to be sent? */
bool session_bulk_pending(const struct session *s);

/* Is bulk data waiting to be sent, or has part of a frame come whose rest is on its way? */
bool session_bulk_moves(const struct session *s);

/* How many lanes from 2 on are worth using for the data that waits? Counts at most `max`. */
size_t session_bulk_lanes(const struct session *s, size_t max);

/* Let wide transfers use so many of the lanes from 2 on, at least 1. The default is all. */
void session_share_lanes(struct session *s, unsigned lanes);

/* Are there lanes for wide transfers now? */
bool session_has_wide_lanes(const struct session *s);

/* bulk_place said SP_E_AGAIN before and may succeed now. */
void session_bulk_retry(struct session *s);

/* ---- lanes --------------------------------------------------------------------------------- */

/* The sequence number for this side's hello / hello_reply. */
uint64_t session_next_seq(const struct session *s);

/* The other side has acknowledged every message below it. */
uint64_t session_acked_seq(const struct session *s);

/* A connection for `lane` has exchanged hellos; the other side said `peer_next_seq` (lane 0).
 * SP_E_PROTO: it claims what was never sent, or lacks what was already forgotten. */
SP_NODISCARD int session_lane_up(struct session *s, unsigned lane, uint64_t peer_next_seq);

/* Before lane 0 is connected again: append to `ret`, in frames, the oldest unacknowledged messages
 * that fit into `max` bytes. They may be sent right behind the hello, before its answer, because
 * the other side knows by the numbers which ones it has. SP_E_NOMEM. */
SP_NODISCARD int session_early(struct session *s, size_t max, struct buf *ret);

/* After session_lane_up for lane 0: the bytes of session_early were sent on this connection, and
 * need not be sent again. Call it before any other use of the lane. */
void session_early_sent(struct session *s);

/* Lane 0 is up again, as connection number `generation` (hello's; from 1 on, larger than before).
 * All older connections of the session are closed: the other lanes are down. Received bytes of a
 * cut bulk frame count. Lost bytes are sent again once the other side has said which ones it has.
 * Calls ops. Negative: the session has ended. */
SP_NODISCARD int session_resume(struct session *s, uint64_t generation);
uint64_t session_generation(const struct session *s);

/* For bulk_restart. SP_E_NOMEM, or the error that ended the session. */
SP_NODISCARD int session_ack(struct session *s, uint64_t transfer, uint64_t below);

/* The lane's connection is gone; partial frames are dropped. session_lane_up does this itself for a
 * lane that is up. */
void session_lane_down(struct session *s, unsigned lane);
bool session_lane_is_up(const struct session *s, unsigned lane);
/* Lanes from this number on have never been up. Most sessions have one lane, and two once data was
 * moved. */
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

/* Is anything to be sent on the lane? Changes nothing. */
bool session_lane_has_pending(const struct session *s, unsigned lane);

/* The first `size` bytes of session_lane_pending were sent. */
void session_lane_sent(struct session *s, unsigned lane, size_t size);

/* ---- clocks -------------------------------------------------------------------------------- */

/* The probes to which this side expects answers. It always expects the rest of a frame or transfer
 * that has begun. */
enum session_expects {
        SESSION_EXPECTS_NOTHING, /* never: the other side may be busy for hours */
        SESSION_EXPECTS_ACKS,    /* while messages or transfers are not acknowledged */
        SESSION_EXPECTS_ANSWERS, /* always */
};

/* Check the clocks (session/owed.h). Call this after each attempt to receive, and at
 * session_deadline. It may leave a probe to send. The other side may owe bytes for at most
 * `limit_ns`; 0: there are no clocks. SP_E_LINK: it has owed some for longer, so the connections
 * can't be used any more. */
SP_NODISCARD int session_tick(struct session *s, enum session_expects expects, uint64_t limit_ns,
                              uint64_t now_ns);
const char *session_overdue(const struct session *s); /* after SP_E_LINK: the bytes owed */

/* The connection of a lane from 1 on has received `count` bytes since it is up, with those that it
 * holds back until they are checked (conn.came). A growing count shows that the other side is not
 * silent. Call this after each attempt to receive. */
void session_lane_alive(struct session *s, unsigned lane, uint64_t count);

/* When to call session_tick at the latest; UINT64_MAX: nothing is owed. */
uint64_t session_deadline(const struct session *s);

/* ---- packed frames: the driver of a bulk lane packs and unpacks them ------------------------- */

/* Both hellos allowed packed frames on the lane. */
void session_lane_packs(struct session *s, unsigned lane);

/* Make frames for the lane small enough to be packed from now on, or full-sized again. */
void session_lane_small(struct session *s, unsigned lane, bool small);

/* The size of the frame that session_lane_pending gave, if no byte of it was sent yet on a lane
 * that packs; else 0. And: can the frame be packed as it is? */
size_t session_lane_fresh(const struct session *s, unsigned lane);
bool session_lane_packable(const struct session *s, unsigned lane);

/* Copy the frame's bytes to `ret`. */
void session_lane_copy(const struct session *s, unsigned lane, void *ret);

/* Send `packed`, which is smaller, instead of the frame. The caller keeps it until
 * session_lane_fresh reports another frame or the lane is down. */
void session_lane_pack(struct session *s, unsigned lane, struct bytes packed);

/* A received packed frame, for which the lane waits: `packed` holds `size` bytes that belong at
 * `to`. Both stay valid until session_lane_unpacked or session_lane_down. */
struct session_packed_frame {
        struct bytes packed;
        void *to;
        size_t size;
};
bool session_lane_closed(const struct session *s, unsigned lane, struct session_packed_frame *ret);

/* The bytes were unpacked, or (`good` false) the frame did not hold them: SP_E_PROTO. Calls ops.
 * Negative: the session has ended. */
SP_NODISCARD int session_lane_unpacked(struct session *s, unsigned lane, bool good);

const struct session_stats *session_get_stats(const struct session *s);

/* The number that the owner gave it (session_params). */
unsigned session_place(const struct session *s);

/* Count bytes of bulk lanes that went over a fabric. */
void session_count_fabric(struct session *s, uint64_t sent, uint64_t received);

#endif
