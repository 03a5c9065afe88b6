/* The frame being sent on a lane. Zeroed memory: none. */
#ifndef SPANCL_SESSION_SENDING_H
#define SPANCL_SESSION_SENDING_H

#include <stdbool.h>

#include "os/iovec.h"
#include "proto/frame.h"

struct sending {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t header_left;        /* bytes of the header not sent yet */
        uint64_t at;               /* lane 0: offset in the outbox; bulk: offset in the transfer */
        size_t left;               /* payload bytes not sent yet */
        size_t size;               /* bytes in all; packed: bytes that it holds */
        const uint8_t *packed;     /* packed bytes still to send; `at` stays at its begin */
        uint64_t seq;              /* lane 0: of the first message */
        struct session_bulk *bulk; /* bulk lanes: its transfer; NULL between frames */
};

static inline bool sending_any(const struct sending *tx)
{
        return tx->header_left || tx->left;
}

/* Begin a frame whose payload is the `f->size` bytes at `at`. */
static inline void sending_begin(struct sending *tx, const struct frame *f, uint64_t at)
{
        *tx = (struct sending){
                .header_left = FRAME_HEADER_SIZE, .at = at, .left = f->size, .size = f->size
        };
        frame_put(tx->header, f);
}

/* Give the unsent rest of the header, which goes before the payload. Returns the number of pieces. */
static inline int sending_header(struct sending *tx, struct iovec *ret)
{
        if (!tx->header_left)
                return 0;
        *ret = (struct iovec){ tx->header + FRAME_HEADER_SIZE - tx->header_left, tx->header_left };
        return 1;
}

/* `size` more bytes of it were sent. */
static inline void sending_advance(struct sending *tx, size_t size)
{
        size_t h = size < tx->header_left ? size : tx->header_left;
        tx->header_left -= h;
        size -= h;
        if (tx->packed)
                tx->packed += size;
        else
                tx->at += size;
        tx->left -= size;
}

#endif
