/* The content store: sources, headers and binaries by digest, so that the client can name bytes
 * that a session had before. A content is immutable and reference-counted. The store keeps the most
 * recently used ones. The client sends a dropped one again when it is needed.
 *
 * The engine's lock guards the store. References are taken and dropped without it. */
#ifndef SPANCL_ENGINE_CONTENT_H
#define SPANCL_ENGINE_CONTENT_H

#include <stdatomic.h>

#include "base/blake2b.h"
#include "base/list.h"

enum {
        CONTENT_STORE_MAX = 64 << 20, /* bytes kept; */
        CONTENT_KEEP = 4,             /* contents kept at least, however large */
};

struct content {
        struct list link;
        atomic_uint refs;
        uint8_t digest[BLAKE2B_SIZE];
        struct buf data;
};

struct content_store {
        struct list contents; /* most recently used first */
        size_t count, bytes;
};

void content_store_init(struct content_store *s);
void content_store_fini(struct content_store *s);

/* Give the content with the bytes `data`, for the caller to unref; the store keeps it, too.
 * SP_E_NOMEM. */
SP_NODISCARD int content_put(struct content_store *s, struct bytes data, struct content **ret);

/* Find a content by digest, for the caller to unref. NULL: it is not here. */
struct content *content_get(struct content_store *s, const uint8_t digest[BLAKE2B_SIZE]);

struct content *content_ref(struct content *c);
/* NULL is allowed. */
void content_unref(struct content *c);

static inline struct bytes content_bytes(const struct content *c)
{
        return bytes_of(c->data.data, c->data.size);
}

#endif
