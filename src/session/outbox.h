/* The outbox has the outgoing messages of lane 0: encoded one behind the other and numbered from 0.
 * It puts them into frames, and keeps them until the other side acknowledges them. Zeroed memory is
 * an empty outbox. */
#ifndef SPANCL_SESSION_OUTBOX_H
#define SPANCL_SESSION_OUTBOX_H

#include "session/sending.h"

enum { SESSION_BUFFER_KEPT = 1 << 20 }; /* a larger buffer is given back once it is empty */

struct outbox {
        struct buf buf; /* messages from number `base` (at `head`) to `next` (at buf.size) */
        size_t head;
        size_t end; /* of the committed messages */
        uint64_t base, next;
        size_t sent; /* offset of the first byte that no frame holds */
        uint64_t sent_seq;
        uint64_t ever_sent; /* messages below it were sent whole on lost connections */
        uint64_t at;        /* position of offset 0 in the stream of all messages */
        uint64_t framed;    /* position in it from which on no frame ever held bytes */
        /* As `at` and `next`: the end of the last outbox_early. */
        uint64_t early_at, early_seq;
        struct sending tx;
        /* Bytes of the last message that lie elsewhere (session_commit_lent): `lent_size` of them follow the
         * byte at `lent_at` of the buffer. All offsets except `lent_at` count them. */
        const uint8_t *lent;
        size_t lent_at, lent_size;
        bool fixed; /* the buffer keeps its size (session_params.out_bytes) */
};

void outbox_fini(struct outbox *o);

/* Return the buffer to encode the next message into, behind the others. */
struct buf *outbox_buf(struct outbox *o);

/* Commit the encoded message. If `put_result` is negative, it was not encoded: return that. */
SP_NODISCARD int outbox_commit(struct outbox *o, int put_result);

/* As session_commit_lent. */
SP_NODISCARD int outbox_commit_lent(struct outbox *o, int put_result, size_t at, struct bytes lent);

/* Return the piece of memory that begins with the byte at `offset`, at most `max` bytes. There are at
 * least `max` bytes. */
struct bytes outbox_piece(const struct outbox *o, size_t offset, size_t max);

/* As session_position, session_unsent_at, session_unsent. */
uint64_t outbox_position(const struct outbox *o);
uint8_t *outbox_unsent_at(struct outbox *o, uint64_t position);
size_t outbox_unsent(const struct outbox *o);

/* Bytes of messages that are not acknowledged. */
size_t outbox_kept(const struct outbox *o);

/* The other side has received all messages below `ack`. SP_E_PROTO: it can't have, or it
 * acknowledged more before. */
SP_NODISCARD int outbox_acked(struct outbox *o, uint64_t ack);

/* Make a frame of unsent messages, to be sent by `tx`. Without such messages it only acknowledges
 * the other side's messages below `ack`. Returns the number of messages in it. */
uint64_t outbox_seal(struct outbox *o, uint64_t ack);

/* Make a FRAME_PROBE for `lane`, of which `sent` bytes or messages were sent. */
void outbox_probe(struct outbox *o, unsigned lane, uint64_t sent, bool ask, uint64_t ack);

/* The frame being sent is lost: its messages that were not sent whole go into another one. */
void outbox_unseal(struct outbox *o);

/* Send all unacknowledged messages again. */
void outbox_rewind(struct outbox *o);

/* As session_early and session_early_sent. SP_E_NOMEM. */
SP_NODISCARD int outbox_early(struct outbox *o, uint64_t ack, size_t max, struct buf *ret);
void outbox_early_sent(struct outbox *o);

#endif
