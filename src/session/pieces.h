/* Pieces: incoming messages of a side with little memory (session_params.in_bytes). A frame is taken apart as it
 * comes. A message that does not fit into the buffer is handed out in parts, and inline data goes to its place at
 * once. Zeroed memory: no frame has begun. */
#ifndef SPANCL_SESSION_PIECES_H
#define SPANCL_SESSION_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct session;

enum pieces_way {
        PIECES_SKIP,   /* a repeated message */
        PIECES_PART,   /* in parts */
        PIECES_INLINE, /* transfer_data */
};

struct pieces {
        /* Messages below it were handed out. They are not acknowledged before their frame has come whole, so it can be
         * ahead of the session's `in_next`. */
        uint64_t taken;
        size_t frame_left;   /* bytes of the frame that were not taken */
        uint64_t seq, end;   /* the numbers of its next message, and behind its last one */
        enum pieces_way way; /* how the present message is taken */
        size_t left;         /* bytes of it that were not taken; 0: there is none */
        bool begun;          /* some bytes were taken */
        uint64_t transfer, offset;
        size_t data_left; /* PIECES_INLINE: bytes of data to come; padding follows */
};

/* More bytes are in the session's buffer. Calls ops. SP_E_*. */
SP_NODISCARD int pieces_received(struct session *s);

#endif
