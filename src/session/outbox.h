/* The messages going out on lane 0: encoded one behind the other and numbered from 0, put into frames, and kept until
 * the other side acknowledges them. Zeroed memory is an empty one. */
#ifndef SPANCL_SESSION_OUTBOX_H
#define SPANCL_SESSION_OUTBOX_H

#include "session/sending.h"

enum { SESSION_BUFFER_KEPT = 1 << 20 }; /* a larger buffer is given back once it is empty */

struct outbox {
        struct buf buf; /* messages from number `base` (at `head`) to `next` (at buf.size) */
        size_t head;
        size_t end; /* of what is committed */
        uint64_t base, next;
        size_t sent; /* offset of the first byte that no frame holds */
        uint64_t sent_seq;
        uint64_t ever_sent; /* messages below it were sent whole, over connections that are lost */
        uint64_t at;        /* where in the stream of all messages offset 0 is */
        uint64_t framed;    /* where the part of it begins that no frame ever held */
        uint64_t early_at,
                early_seq; /* as `at` and `next`: the end of what outbox_early gave last */
        struct sending tx;
};

void outbox_fini(struct outbox *o);

/* To encode the next message behind the others. */
struct buf *outbox_buf(struct outbox *o);

/* It is encoded, or, if `put_result` is negative, was not: returns that. */
SP_NODISCARD int outbox_commit(struct outbox *o, int put_result);

/* As session_position, session_unsent_at, session_unsent. */
uint64_t outbox_position(const struct outbox *o);
uint8_t *outbox_unsent_at(struct outbox *o, uint64_t position);
size_t outbox_unsent(const struct outbox *o);

/* Bytes of messages that are not acknowledged. */
size_t outbox_kept(const struct outbox *o);

/* The other side has received everything below `ack`. SP_E_PROTO: it can't have, or said so before of more. */
SP_NODISCARD int outbox_acked(struct outbox *o, uint64_t ack);

/* Make a frame, to be sent by `tx`, of unsent messages, or, if there are none, one that only acknowledges: the other
 * side's messages below `ack`. Returns how many messages are in it. */
uint64_t outbox_seal(struct outbox *o, uint64_t ack);

/* Make a FRAME_PROBE of `lane`: `sent` of it. */
void outbox_probe(struct outbox *o, unsigned lane, uint64_t sent, bool ask, uint64_t ack);

/* The frame being sent is lost: of what was not sent whole another is made. */
void outbox_unseal(struct outbox *o);

/* All that is not acknowledged is to be sent again. */
void outbox_rewind(struct outbox *o);

/* As session_early and session_early_sent. SP_E_NOMEM. */
SP_NODISCARD int outbox_early(struct outbox *o, uint64_t ack, size_t max, struct buf *ret);
void outbox_early_sent(struct outbox *o);

#endif
