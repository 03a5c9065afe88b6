#include "session/pieces.h"

#include "session/incoming.h"

enum { INLINE_PREFIX = WIRE_HEADER_SIZE + 3 * 8 }; /* of transfer_data, before its bytes */

/* A message is complete. */
static int next_message(struct session *s)
{
        struct pieces *p = &s->pieces;
        p->seq++;
        if (p->taken < p->seq)
                p->taken = p->seq;
        if ((p->seq == p->end) != !p->frame_left)
                return SP_E_PROTO;
        if (!p->frame_left && s->in_next < p->end)
                s->in_next = p->end;
        return 0;
}

/* Take the fields in front of the data. */
static int begin_inline(struct pieces *p, const uint8_t *msg)
{
        const uint64_t size = bytes_get_u64(msg + WIRE_HEADER_SIZE + 16);
        p->transfer = bytes_get_u64(msg + WIRE_HEADER_SIZE);
        p->offset = bytes_get_u64(msg + WIRE_HEADER_SIZE + 8);
        if (bytes_get_u16(msg + 2) || !p->transfer || p->offset > WIRE_BULK_MAX ||
            size > WIRE_INLINE_MAX || INLINE_PREFIX + bytes_pad8((size_t)size) != p->left)
                return SP_E_PROTO;
        p->data_left = (size_t)size;
        return 0;
}

static int take_inline(struct session *s, const uint8_t *at, size_t size)
{
        struct pieces *p = &s->pieces;
        const size_t data = size < p->data_left ? size : p->data_left;
        for (size_t i = data; i < size; i++)
                if (at[i])
                        return SP_E_PROTO;
        int r = incoming_inline(s, p->transfer, p->offset, bytes_of(at, data));
        p->offset += data;
        p->data_left -= data;
        return r;
}

/* Take some of the message that has begun. Returns how many bytes; 0: more have to come. */
static int take_some(struct session *s, struct bytes have)
{
        struct pieces *p = &s->pieces;
        const bool head = p->way == PIECES_INLINE && !p->begun;
        size_t size = have.size < p->left ? have.size & ~(size_t)7 : p->left;
        int r = 0;
        if (head && size >= INLINE_PREFIX) {
                size = INLINE_PREFIX;
                r = begin_inline(p, have.data);
        } else if (head || !size) {
                return 0;
        } else if (p->way == PIECES_INLINE) {
                r = take_inline(s, have.data, size);
        } else if (p->way == PIECES_PART) {
                r = s->params.ops->part(s->params.user, bytes_of(have.data, size), !p->begun,
                                        p->left - size);
        }
        if (r < 0)
                return r;
        p->begun = true;
        p->left -= size;
        p->frame_left -= size;
        s->in_unacked += p->way == PIECES_SKIP ? 0 : size;
        if (!p->left) {
                s->stats.messages_received += p->way != PIECES_SKIP;
                r = next_message(s);
        }
        return r < 0 ? r : (int)size;
}

static int take_header(struct session *s, struct bytes have)
{
        struct pieces *p = &s->pieces;
        struct frame f;
        if (have.size < FRAME_HEADER_SIZE)
                return 0;
        int r = frame_get(have.data, &f);
        if (r < 0 || (f.type != FRAME_DATA && f.type != FRAME_ACK && f.type != FRAME_PROBE))
                return SP_E_PROTO;
        r = incoming_frame(s, &f);
        if (r < 0)
                return r;
        p->frame_left = f.size;
        p->seq = f.seq;
        p->end = f.seq + f.count;
        return FRAME_HEADER_SIZE;
}

/* Take the next bytes. Returns how many; 0: more have to come. */
static int take(struct session *s, struct bytes have)
{
        struct pieces *p = &s->pieces;
        if (p->left)
                return take_some(s, have);
        if (!p->frame_left)
                return take_header(s, have);
        if (have.size < WIRE_HEADER_SIZE)
                return 0;
        const size_t size = wire_message_size(have.data);
        if (size < WIRE_HEADER_SIZE || size > p->frame_left || size % 8)
                return SP_E_PROTO;
        const bool inlined = wire_message_id(have.data) == WIRE_transfer_data;
        if (p->seq < p->taken || inlined || size > s->in.cap) {
                p->way = p->seq < p->taken ? PIECES_SKIP : inlined ? PIECES_INLINE : PIECES_PART;
                if (inlined && size < INLINE_PREFIX)
                        return SP_E_PROTO;
                p->begun = false;
                p->left = size;
                return take_some(s, have);
        }
        if (have.size < size)
                return 0;
        s->in_unacked += size;
        p->frame_left -= size;
        p->taken++;
        int r = incoming_message(s, bytes_of(have.data, size));
        if (!r)
                r = next_message(s);
        return r < 0 ? r : (int)size;
}

int pieces_received(struct session *s)
{
        int r;
        do {
                r = take(s, bytes_of(s->in.data + s->in_head, s->in.size - s->in_head));
                if (r > 0)
                        s->in_head += (size_t)r;
        } while (r > 0);
        buf_consume(&s->in, s->in_head);
        s->in_head = 0;
        return r;
}
