#include "session/outbox.h"

#include <assert.h>

#include "proto/wire.h"

enum { COMPACT_MIN = 64 << 10 }; /* free bytes at the front for which moving the rest pays */

void outbox_fini(struct outbox *o)
{
        buf_fini(&o->buf);
}

/* The offset behind the last byte. */
static size_t end_of(const struct outbox *o)
{
        return o->buf.size + o->lent_size;
}

/* The message that begins at `offset`. */
static const uint8_t *message_at(const struct outbox *o, size_t offset)
{
        return outbox_piece(o, offset, WIRE_HEADER_SIZE).data;
}

/* Free the room of acknowledged messages once it is worth moving the rest. A frame in flight is
 * never acknowledged (outbox_acked), so it lies behind `head`. */
static void compact(struct outbox *o)
{
        size_t head = o->head;
        if (!head || (head != end_of(o) && (head < COMPACT_MIN || head < o->buf.size / 2)))
                return;
        /* A message with lent bytes is the first one: all of it lies before `head`. */
        buf_consume(&o->buf, head - o->lent_size);
        o->lent_size = 0;
        o->head = 0;
        o->at += head;
        o->end -= head;
        o->sent -= head;
        if (o->tx.left)
                o->tx.at -= head;
        if (!o->fixed && !o->buf.size && o->buf.cap > SESSION_BUFFER_KEPT)
                buf_fini(&o->buf);
}

struct buf *outbox_buf(struct outbox *o)
{
        compact(o);
        return &o->buf;
}

int outbox_commit(struct outbox *o, int put_result)
{
        if (put_result < 0) {
                o->buf.size = o->end;
                return put_result;
        }
        o->end = end_of(o);
        o->next++;
        return 0;
}

int outbox_commit_lent(struct outbox *o, int put_result, size_t at, struct bytes lent)
{
        if (!put_result) {
                assert(!o->end);
                o->lent = lent.data;
                o->lent_at = at;
                o->lent_size = lent.size;
        }
        return outbox_commit(o, put_result);
}

struct bytes outbox_piece(const struct outbox *o, size_t offset, size_t max)
{
        const size_t lent_end = o->lent_at + o->lent_size;
        const uint8_t *at = o->buf.data + offset;
        size_t left = max;
        if (o->lent_size && offset < o->lent_at) {
                left = o->lent_at - offset;
        } else if (o->lent_size && offset < lent_end) {
                at = o->lent + (offset - o->lent_at);
                left = lent_end - offset;
        } else {
                at -= o->lent_size;
        }
        return bytes_of(at, left < max ? left : max);
}

uint64_t outbox_position(const struct outbox *o)
{
        return o->at + o->end;
}

uint8_t *outbox_unsent_at(struct outbox *o, uint64_t position)
{
        bool there = position >= o->framed && position < outbox_position(o);
        return there ? o->buf.data + (position - o->at) : NULL;
}

size_t outbox_unsent(const struct outbox *o)
{
        return end_of(o) - o->sent;
}

size_t outbox_kept(const struct outbox *o)
{
        return end_of(o) - o->head;
}

/* The number below which messages were sent whole: the other side can't have later ones. */
static uint64_t sent_whole(const struct outbox *o)
{
        return sending_any(&o->tx) ? o->tx.seq : o->sent_seq;
}

int outbox_acked(struct outbox *o, uint64_t ack)
{
        uint64_t sent = sent_whole(o), ever = sent > o->ever_sent ? sent : o->ever_sent;
        if (ack > ever || ack < o->base)
                return SP_E_PROTO;
        /* The other side may have more than its hello said, but messages in the frame being sent
         * have to stay. */
        if (ack > sent && sending_any(&o->tx))
                ack = sent;
        while (o->base < ack) {
                o->head += wire_message_size(message_at(o, o->head));
                o->base++;
        }
        if (o->sent_seq < o->base) {
                o->sent = o->head;
                o->sent_seq = o->base;
        }
        return 0;
}

/* Frames now hold all messages up to `offset`, where the message `seq` begins. */
static void mark_sent(struct outbox *o, size_t offset, uint64_t seq)
{
        o->sent = offset;
        o->sent_seq = seq;
        if (o->at + offset > o->framed)
                o->framed = o->at + offset;
}

uint64_t outbox_seal(struct outbox *o, uint64_t ack)
{
        size_t size = outbox_unsent(o);
        uint64_t count = o->next - o->sent_seq, first = o->sent_seq;
        if (size > FRAME_DATA_TARGET || count > FRAME_COUNT_MAX) {
                size = 0;
                count = 0;
                while (o->sent + size < end_of(o) && count < FRAME_COUNT_MAX) {
                        size_t m = wire_message_size(message_at(o, o->sent + size));
                        if (count && size + m > FRAME_DATA_TARGET)
                                break;
                        size += m;
                        count++;
                }
        }
        struct frame f = {
                .size = (uint32_t)size,
                .type = count ? FRAME_DATA : FRAME_ACK,
                .count = (uint16_t)count,
                .seq = count ? first : 0,
                .ack = ack,
        };
        sending_begin(&o->tx, &f, o->sent);
        o->tx.seq = first;
        mark_sent(o, o->sent + size, first + count);
        return count;
}

void outbox_probe(struct outbox *o, unsigned lane, uint64_t sent, bool ask, uint64_t ack)
{
        struct frame f = {
                .type = FRAME_PROBE,
                .flags = ask ? FRAME_ASK : 0,
                .count = (uint16_t)lane,
                .seq = sent,
                .ack = ack,
        };
        sending_begin(&o->tx, &f, o->sent);
        o->tx.seq = o->sent_seq;
}

void outbox_unseal(struct outbox *o)
{
        if (sending_any(&o->tx)) {
                o->sent -= o->tx.size;
                o->sent_seq = o->tx.seq;
        }
        o->tx = (struct sending){ 0 };
}

void outbox_rewind(struct outbox *o)
{
        if (sent_whole(o) > o->ever_sent)
                o->ever_sent = sent_whole(o);
        o->sent = o->head;
        o->sent_seq = o->base;
}

static void early_frame(struct buf *ret, size_t at, struct frame *f, uint64_t ack)
{
        f->type = FRAME_DATA;
        f->ack = ack;
        frame_put(ret->data + at, f);
}

int outbox_early(struct outbox *o, uint64_t ack, size_t max, struct buf *ret)
{
        size_t offset = o->head, begin = ret->size, frame = 0;
        struct frame f = { 0 };
        uint64_t seq = o->base;
        for (; offset < o->end && !o->lent_size; seq++) {
                size_t size = wire_message_size(o->buf.data + offset);
                bool more =
                        !f.count || f.count == FRAME_COUNT_MAX || f.size + size > FRAME_DATA_TARGET;
                if (ret->size - begin + (more ? FRAME_HEADER_SIZE : 0) + size > max)
                        break;
                int r = buf_reserve(ret, (more ? FRAME_HEADER_SIZE : 0) + size);
                if (r < 0) {
                        ret->size = begin;
                        return r;
                }
                if (more && f.count)
                        early_frame(ret, frame, &f, ack);
                if (more) {
                        f = (struct frame){ .seq = seq };
                        frame = ret->size;
                        ret->size += FRAME_HEADER_SIZE;
                }
                memcpy(ret->data + ret->size, o->buf.data + offset, size);
                ret->size += size;
                f.size += (uint32_t)size;
                f.count++;
                offset += size;
        }
        if (f.count)
                early_frame(ret, frame, &f, ack);
        o->early_at = o->at + offset;
        o->early_seq = seq;
        /* These messages count as sent even if the connection fails, because the other side may
         * have them. */
        if (seq > o->sent_seq)
                mark_sent(o, offset, seq);
        return 0;
}

void outbox_early_sent(struct outbox *o)
{
        if (o->early_seq > o->sent_seq) /* else: the other side had them, and more */
                mark_sent(o, (size_t)(o->early_at - o->at), o->early_seq);
}
