/* Staging memory: chunks of host memory between a session's lanes and one domain of the backend.
 * The backend makes some of them, with which its devices work best. A few free ones are kept, so
 * that steady traffic uses the same, warm pages again. No locks: the engine's lock guards it. */
#ifndef SPANCL_ENGINE_STAGING_H
#define SPANCL_ENGINE_STAGING_H

#include "backend/backend.h"

enum {
        STAGING_CHUNK = 2 << 20, /* bytes */
        STAGING_KEPT = 32,       /* free chunks */
        /* For sizes up to here the backend's memory is used only if it exists already. */
        STAGING_SMALL = 64 << 10,
        STAGING_TINY = 4 << 10, /* up to here the backend's memory has no advantage */
        STAGING_SLAB = 4 << 20, /* bytes asked of the backend at once */
        STAGING_SLABS = 8,
};

/* Zeroed memory is an empty store, without a backend. */
struct staging {
        const struct backend_ops *be; /* NULL: all memory is equal */
        struct backend *backend;
        unsigned domain;
        /* Take STAGING_SLAB bytes of the bounce buffer (engine_ops.bounce), and give them back if
         * they can't be used. NULL function or NULL result: none. */
        void *(*bounce_get)(void *user);
        void (*bounce_put)(void *user, void *slab);
        void *user;
        uint8_t *slabs[STAGING_SLABS]; /* from the backend or the bounce buffer */
        size_t slab_count;
        void *kept[STAGING_KEPT];
        size_t count;
};

/* Memory for `size` bytes. NULL: out of memory. */
void *staging_get(struct staging *s, size_t size);

/* Give back memory got for `size` bytes; NULL is allowed. */
void staging_put(struct staging *s, void *chunk, size_t size);

/* Free all; allowed after the backend was closed. */
void staging_fini(struct staging *s);

#endif
