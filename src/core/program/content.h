/* How bytes travel: those that a server has are only named, by their digest. What was sent to a server is
 * remembered; what is large is named also the first time, since the server may need no more than that to
 * find a build in its cache. A server that lacks what is named answers BUILD_NEEDS, and the question is
 * asked again with everything in it. */
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

/* What to put into a message: the bytes, or a digest; the other is empty. */
struct content_name {
        struct bytes data, digest;
        uint8_t bytes[BLAKE2B_SIZE];
};

/* `data` is borrowed while *ret is used. May send it. SP_E_*. Lock held. */
SP_NODISCARD int content_name(struct server *s, struct bytes data, enum content_mode mode,
                              struct content_name *ret);

#endif
