/* A pool of the memory that decoders write pictures to: pieces of the part that the session's worker reads. So nothing
 * copies a picture in this process. All pieces have one size, which changes only while none is in use.
 *
 * The worker can change the bytes at any time, also of pictures that libavcodec refers to. A picture has no address or
 * size, but wrong samples may be wrong indices of a table. A worker gains nothing, because this process has no right
 * that the worker lacks. */
#ifndef SPANCL_AV_POOL_H
#define SPANCL_AV_POOL_H

#include <stdatomic.h>

#include <libavcodec/avcodec.h>

#include "base/status.h"

/* It outlives all frames with pieces. One thread gets frames, and any may release them. */
struct pool {
        uint8_t *memory;
        uint64_t room;
        uint64_t size;          /* of a piece */
        _Atomic(uint64_t) used; /* a bit for each piece */
};

/* Make a pool of `room` bytes; the memory stays the caller's. */
void pool_init(struct pool *p, uint8_t *memory, uint64_t room);

/* Give memory to a frame of a picture of this size, whose format is set: a piece, or memory of the process if none is
 * left. Strides do not depend on which, since decoders need equal ones in a stream. Returns 0 or an AVERROR. */
SP_NODISCARD int pool_get(struct pool *p, AVFrame *f, int width, int height);

/* The get_buffer2 of a context whose `opaque` is a pool. */
int pool_get_buffer(AVCodecContext *c, AVFrame *f, int flags);

#endif
