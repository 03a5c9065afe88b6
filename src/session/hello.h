/* The exchange that starts every connection: FRAME_MAGIC and one HELLO frame each way, and what follows for
 * somebody who looks at a server (role 2), in the same form. Sans-IO: encodes and decodes whole exchanges; the caller moves the bytes. */
#ifndef SPANCL_SESSION_HELLO_H
#define SPANCL_SESSION_HELLO_H

#include "base/bytes.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
        HELLO_PREFIX = FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE,
        HELLO_ROLE_LOOK = 2,
        HELLO_ROLE_PAIR = 3,
        HELLO_LINKS_MAX = 3072, /* bytes of records that one session_stats may have */
};

/* Append magic, frame header and message. SP_E_NOMEM. */
SP_NODISCARD int hello_put(struct buf *b, const struct wire_hello *m);
SP_NODISCARD int hello_put_reply(struct buf *b, const struct wire_hello_reply *m);
SP_NODISCARD int hello_put_stats(struct buf *b, const struct wire_session_stats *m);

/* How many bytes the exchange has in all, from its first HELLO_PREFIX bytes, so that a reader takes
 * exactly these from the connection and nothing behind them. SP_E_PROTO: it is not SpanCL that speaks
 * there (may be called with fewer bytes: checks what is there and returns HELLO_PREFIX). */
SP_NODISCARD int hello_size(struct bytes prefix);

/* Decode a whole exchange; fields borrow from `whole`, which is 8-byte aligned. SP_E_PROTO; SP_E_LINK: its checksum is
 * wrong: it was altered on its way. */
SP_NODISCARD int hello_get(struct bytes whole, struct wire_hello *ret);
SP_NODISCARD int hello_get_reply(struct bytes whole, struct wire_hello_reply *ret);
SP_NODISCARD int hello_get_stats(struct bytes whole, struct wire_session_stats *ret);

/* Put the checksum into an exchange that was made, or changed. */
void hello_seal(void *whole, size_t size);

/* The version both sides speak. SP_E_VERSION: none; *ret_text explains it for a reply (static). */
SP_NODISCARD int hello_negotiate(const struct wire_hello *m, uint64_t *ret_version,
                                 const char **ret_text);

#endif
