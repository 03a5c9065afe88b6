/* Frames are the units that a connection carries. Every connection starts, in each direction, with
 * FRAME_MAGIC and one HELLO frame. Then lane 0 carries DATA and ACK frames, the other lanes BULK
 * frames. PROBE frames on lane 0 report the bytes sent on one lane, for lane 0 and each bulk lane in
 * use; FRAME_ASK asks the other side for its own.
 *
 * Header, 24 bytes, little-endian:
 *   u32 size    bytes that follow the header; a multiple of 8 except for BULK
 *   u8  type    FRAME_*
 *   u8  flags   BULK: FRAME_PACKED or 0; PROBE: FRAME_ASK or 0; else 0
 *   u16 count   DATA: messages in the frame, at least 1; packed BULK: 8-byte words that it holds;
 *               PROBE: lane; else 0
 *   u64 seq     DATA: sequence number of the first message; BULK: transfer; PROBE of lane 0: number
 *               of the next message, of another lane: bytes that the sender gave its connection;
 *               HELLO: CRC-32C of the exchange, with 0 in this field; else 0
 *   u64 ack     DATA, ACK, PROBE: every message below it was received; BULK: offset of the first byte
 *
 * The payload of a BULK frame is bytes of the transfer. With FRAME_PACKED it is an LZ4 block, smaller
 * than the bytes that it holds. FRAME_PLAIN_MAX divides a transfer into pieces, and the bytes of a
 * packed frame lie in one of them. */
#ifndef SPANCL_PROTO_FRAME_H
#define SPANCL_PROTO_FRAME_H

#include "base/bytes.h"

#define FRAME_MAGIC "SPANCL\r\n"

enum {
        FRAME_MAGIC_SIZE = 8,
        FRAME_HEADER_SIZE = 24,
        FRAME_COUNT_MAX = 65535,
        FRAME_DATA_TARGET = 256 << 10, /* a sender closes a DATA frame at this size */
        FRAME_BULK_MAX = 4 << 20,      /* payload of one BULK frame */
        FRAME_PLAIN_MAX = 256 << 10,   /* bytes of the transfer in one that is packed */
        FRAME_HELLO_MAX = 4096,
};

enum frame_type {
        FRAME_HELLO = 1,
        FRAME_DATA = 2,
        FRAME_ACK = 3,
        FRAME_BULK = 4,
        FRAME_PROBE = 5,
};

enum {
        FRAME_PACKED = 1, /* only if both hellos said FEATURE_LZ4 */
        FRAME_ASK = 2,    /* the other side is to send its FRAME_PROBEs now */
};

struct frame {
        uint32_t size;
        enum frame_type type;
        uint16_t count;
        uint64_t seq;
        uint64_t ack;
        uint8_t flags;
};

/* Encode into FRAME_HEADER_SIZE bytes. */
void frame_put(void *out, const struct frame *f);

/* Decode and check a header. SP_E_PROTO: no valid header of a frame. */
SP_NODISCARD int frame_get(const void *in, struct frame *ret);

/* How many bytes a packed frame holds. */
static inline size_t frame_plain(const struct frame *f)
{
        return 8 * (size_t)f->count;
}

#endif
