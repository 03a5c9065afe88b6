/* Sources, headers and binaries by what they are: the client names bytes that a session had before by
 * their digest. A content is immutable and counted. The store keeps those used last; one that it has
 * given up is sent again when it is needed.
 *
 * The store is guarded by the engine's lock; holding and letting go are not. */
#ifndef SPANCL_ENGINE_CONTENT_H
#define SPANCL_ENGINE_CONTENT_H

#include <stdatomic.h>

#include "base/blake2b.h"
#include "base/list.h"

enum {
        CONTENT_STORE_MAX = 64 << 20, /* bytes kept, */
        CONTENT_KEEP = 4,             /* but so many at least, however large */
};

struct content {
        struct list link;
        atomic_uint refs;
        uint8_t digest[BLAKE2B_SIZE];
        struct buf data;
};

struct content_store {
        struct list contents; /* used last: first */
        size_t count, bytes;
};

void content_store_init(struct content_store *s);
void content_store_fini(struct content_store *s);

/* The content that is `data`, for the caller to unref; kept by the store, too. SP_E_NOMEM. */
SP_NODISCARD int content_put(struct content_store *s, struct bytes data, struct content **ret);

/* The one of a digest, for the caller to unref; NULL: it is not here. */
struct content *content_get(struct content_store *s, const uint8_t digest[BLAKE2B_SIZE]);

struct content *content_ref(struct content *c);
/* NULL is allowed. */
void content_unref(struct content *c);

static inline struct bytes content_bytes(const struct content *c)
{
        return bytes_of(c->data.data, c->data.size);
}

#endif
