/* Staging memory: chunks of host memory between a session's lanes and one domain of the backend. Some are
 * the backend's own, which its devices work with best; a few free ones are kept, so that steady traffic
 * touches the same, warm pages again. No locks: the engine's. */
#ifndef SPANCL_ENGINE_STAGING_H
#define SPANCL_ENGINE_STAGING_H

#include "backend/backend.h"

enum {
        STAGING_CHUNK = 2 << 20, /* bytes */
        STAGING_KEPT = 32,       /* free chunks */
        STAGING_SMALL =
                64 << 10, /* of bytes up to here the backend's memory is used only if it is there */
        STAGING_TINY = 4 << 10, /* and up to here it brings nothing */
        STAGING_SLAB = 4 << 20, /* bytes that the backend is asked for at once */
        STAGING_SLABS = 8,
};

/* Zeroed memory is an empty store, without a backend. */
struct staging {
        const struct backend_ops *be; /* NULL: any memory is as good */
        struct backend *backend;
        unsigned domain;
        /* STAGING_SLAB bytes of the bounce buffer (engine_ops.stage), and back if they are of no use. NULL, or returns it: none. */
        void *(*bounce_get)(void *user);
        void (*bounce_put)(void *user, void *slab);
        void *user;
        uint8_t *slabs[STAGING_SLABS]; /* the backend's, or of the bounce buffer */
        size_t slab_count;
        void *kept[STAGING_KEPT];
        size_t count;
};

/* Memory for `size` bytes. NULL: out of memory. */
void *staging_get(struct staging *s, size_t size);

/* What was got for `size` bytes; NULL is allowed. */
void staging_put(struct staging *s, void *chunk, size_t size);

/* Also after the backend was closed. */
void staging_fini(struct staging *s);

#endif
