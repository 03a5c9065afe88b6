/* Incoming messages for a side with little memory (session_params.in_bytes). A frame is taken apart as it comes. A
 * message that has no room in the buffer is handed out in parts, and data inline goes to its place at once. Zeroed
 * memory: no frame has begun. */
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
        /* Messages below it were taken. The other side may not hear so before it has sent their frame whole, so it can
         * be ahead of the session's `in_next`. */
        uint64_t taken;
        size_t frame_left;   /* bytes of the frame that were not taken */
        uint64_t seq, end;   /* the number of its next message, and that behind its last one */
        enum pieces_way way; /* how the message is taken of which */
        size_t left;         /* so many bytes were not taken; 0: none has begun */
        bool begun;          /* some were */
        uint64_t transfer, offset;
        size_t data_left; /* PIECES_INLINE: bytes of data to come; padding follows */
};

/* More bytes are in the session's buffer. Calls ops. SP_E_*. */
SP_NODISCARD int pieces_received(struct session *s);

#endif
