/* Content naming: bytes that a server has already are named by their digest instead of sent. The
 * client remembers which contents it sent to a server. Large contents are named even the first
 * time, since the server may need only the name to find a build in its cache. A server that lacks
 * named contents answers BUILD_NEEDS, and the client repeats the request with all bytes in it. */
#ifndef SPANCL_CORE_CONTENT_H
#define SPANCL_CORE_CONTENT_H

#include "base/blake2b.h"
#include "core/client.h"

enum {
        CONTENT_INLINE_MAX = 4096,   /* so few bytes are not worth a name */
        CONTENT_LARGE = 64 << 10,    /* from here on, sending takes longer than asking */
        CONTENT_KNOWN_MAX = 1 << 16, /* names remembered for a server */
};

enum content_mode {
        CONTENT_KNOWN, /* named if it was sent before */
        CONTENT_HOPE,  /* or if it is large */
        CONTENT_SEND,  /* never named alone */
};

/* The fields of a message for one content: the bytes or their digest; the other one is empty. */
struct content_name {
        struct bytes data, digest;
        uint8_t bytes[BLAKE2B_SIZE];
};

/* Name or include `data`, which is borrowed while *ret is used. May send it ahead in a message of
 * its own. SP_E_*. */
SP_NODISCARD int content_name(struct server *s, struct bytes data, enum content_mode mode,
                              struct content_name *ret) REQUIRES(client_held);

#endif
