#include "proto/frame.h"

#include "proto/wire.h"

void frame_put(void *out, const struct frame *f)
{
        uint8_t *p = out;
        bytes_put_u32(p, f->size);
        p[4] = (uint8_t)f->type;
        p[5] = f->flags;
        bytes_put_u16(p + 6, f->count);
        bytes_put_u64(p + 8, f->seq);
        bytes_put_u64(p + 16, f->ack);
}

int frame_get(const void *in, struct frame *ret)
{
        const uint8_t *p = in;
        struct frame f = {
                .size = bytes_get_u32(p),
                .type = p[4],
                .flags = p[5],
                .count = bytes_get_u16(p + 6),
                .seq = bytes_get_u64(p + 8),
                .ack = bytes_get_u64(p + 16),
        };
        bool data = f.type == FRAME_DATA, packed = f.type == FRAME_BULK && f.flags == FRAME_PACKED;
        bool probe = f.type == FRAME_PROBE && !(f.flags & ~FRAME_ASK);
        if ((f.flags && !packed && !probe) || (!probe && (data || packed) != (f.count != 0)))
                return SP_E_PROTO;
        switch (f.type) {
        case FRAME_HELLO:
                if (f.size > FRAME_HELLO_MAX || f.size % 8 || f.seq > UINT32_MAX || f.ack)
                        return SP_E_PROTO;
                break;
        case FRAME_DATA:
                if (f.size < WIRE_HEADER_SIZE || f.size > WIRE_MESSAGE_MAX || f.size % 8)
                        return SP_E_PROTO;
                break;
        case FRAME_ACK:
                if (f.size || f.seq)
                        return SP_E_PROTO;
                break;
        case FRAME_PROBE:
                if (f.size)
                        return SP_E_PROTO;
                break;
        case FRAME_BULK:
                if (!f.size || f.size > FRAME_BULK_MAX || !f.seq || f.ack > WIRE_BULK_MAX)
                        return SP_E_PROTO;
                if (packed && (f.size >= frame_plain(&f) ||
                               frame_plain(&f) > FRAME_PLAIN_MAX - f.ack % FRAME_PLAIN_MAX))
                        return SP_E_PROTO;
                break;
        default:
                return SP_E_PROTO;
        }
        *ret = f;
        return 0;
}
