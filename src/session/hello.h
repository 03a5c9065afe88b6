/* The hello exchange that starts every connection: FRAME_MAGIC and one HELLO frame each way. The
 * answer to a client that only queries a server (role 2) has the same form. Sans-IO: this encodes
 * and decodes whole exchanges; the caller moves the bytes. */
#ifndef SPANCL_SESSION_HELLO_H
#define SPANCL_SESSION_HELLO_H

#include "base/bytes.h"
#include "proto/frame.h"
#include "proto/wire.h"

enum {
        HELLO_PREFIX = FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE,
        HELLO_ROLE_LOOK = 2,
        HELLO_ROLE_PAIR = 3,
        HELLO_ROLE_DRAIN = 4,
        HELLO_ROLE_OBSERVE = 5,
        HELLO_LINKS_MAX = 3072, /* bytes of records that one session_stats may have */
};

_Static_assert(WIRE_DESCRIPTION_PART + 256 <= FRAME_HELLO_MAX,
               "a part has room in a frame of the hello's kind");

/* Append magic, frame header and message. SP_E_NOMEM. */
SP_NODISCARD int hello_put(struct buf *b, const struct wire_hello *m);
SP_NODISCARD int hello_put_reply(struct buf *b, const struct wire_hello_reply *m);
SP_NODISCARD int hello_put_stats(struct buf *b, const struct wire_session_stats *m);
SP_NODISCARD int hello_put_part(struct buf *b, const struct wire_description *m);

/* Why a side whose numbers are big-endian is refused: both sides can tell, by the frame header. Words of 32 and 64 bits
 * are no difference here. */
#define HELLO_BIG_ENDIAN \
        "the other side is a big-endian system or build: SpanCL runs between little-endian ones only"

/* Compute the size of the whole exchange from its first HELLO_PREFIX bytes. A reader then takes
 * exactly these bytes from the connection. With fewer bytes it checks these and returns
 * HELLO_PREFIX. SP_E_PROTO: the other side does not speak SpanCL. SP_E_VERSION: HELLO_BIG_ENDIAN. */
SP_NODISCARD int hello_size(struct bytes prefix);

/* Decode a whole exchange; fields borrow from `whole`, which is 8-byte aligned. SP_E_PROTO;
 * SP_E_LINK: the checksum is wrong, so the bytes were altered on their way. */
SP_NODISCARD int hello_get(struct bytes whole, struct wire_hello *ret);
SP_NODISCARD int hello_get_reply(struct bytes whole, struct wire_hello_reply *ret);
SP_NODISCARD int hello_get_stats(struct bytes whole, struct wire_session_stats *ret);
SP_NODISCARD int hello_get_part(struct bytes whole, struct wire_description *ret);

/* The descriptions of a server's devices, as they come in parts. Zeroed memory is empty. */
struct hello_devices {
        struct buf info;   /* info blocks of server_info, checked once it is complete */
        uint64_t sessions; /* that the server has */
        uint64_t left;     /* bytes to come */
        bool begun;
};

/* Append the exchange that carries the next part of these descriptions, from byte *at on; moves *at. SP_E_NOMEM. */
SP_NODISCARD int hello_put_next_part(struct buf *b, struct bytes info, size_t *at,
                                     uint64_t sessions);
/* Append all exchanges that carry these descriptions. SP_E_NOMEM; SP_E_LIMIT: there are more than
 * WIRE_DESCRIPTION_MAX bytes. */
SP_NODISCARD int hello_put_devices(struct buf *b, struct bytes info, uint64_t sessions);

/* Take a whole exchange. 1: it was the last one; 0: more come. SP_E_PROTO, SP_E_LINK as above; SP_E_NOMEM. */
SP_NODISCARD int hello_take_devices(struct hello_devices *d, struct bytes whole);
void hello_devices_fini(struct hello_devices *d);

/* Put the checksum into a new or changed exchange. */
void hello_seal(void *whole, size_t size);

/* The version both sides speak. SP_E_VERSION: none; *ret_text explains it for a reply (static). */
SP_NODISCARD int hello_negotiate(const struct wire_hello *m, uint64_t *ret_version,
                                 const char **ret_text);

#endif
