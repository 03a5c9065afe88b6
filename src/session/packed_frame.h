/* A packed frame that arrives on a bulk lane (FRAME_PACKED). Its bytes are collected, then unpacked
 * into their place. Zeroed memory: none. */
#ifndef SPANCL_SESSION_PACKED_FRAME_H
#define SPANCL_SESSION_PACKED_FRAME_H

#include <stdbool.h>

#include "base/bytes.h"
#include "proto/frame.h"

struct packed_frame {
        uint8_t *packed, *loose;   /* FRAME_PLAIN_MAX bytes each, made when needed */
        uint64_t transfer, offset; /* of its first byte */
        size_t size, plain;        /* packed bytes, and bytes that they hold */
        uint8_t *place;            /* of the first `placed` of them */
        size_t placed;
        bool closed; /* all have come */
};

/* Free all memory. */
void packed_frame_fini(struct packed_frame *p);

/* The frame's payload is about to arrive; `place` is for its first `placed` bytes or all. Return
 * where to collect it. SP_E_NOMEM. */
SP_NODISCARD int packed_frame_begin(struct packed_frame *p, const struct frame *f, void *place,
                                    size_t placed, uint8_t **ret);

/* Where to unpack to. If the place is in several pieces, this is memory of our own. */
uint8_t *packed_frame_target(const struct packed_frame *p);

#endif
