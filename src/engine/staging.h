/* Staging memory: chunks of host memory between a session's lanes and the backend. A few free ones are
 * kept, so that steady traffic touches the same, warm pages again. Zeroed memory is an empty store; no
 * locks: the engine's. */
#ifndef SPANCL_ENGINE_STAGING_H
#define SPANCL_ENGINE_STAGING_H

#include <stddef.h>

enum {
        STAGING_CHUNK = 2 << 20, /* bytes */
        STAGING_KEPT = 32,       /* free chunks */
};

struct staging {
        void *kept[STAGING_KEPT];
        size_t count;
};

/* NULL: out of memory. */
void *staging_get(struct staging *s);

/* NULL is allowed. */
void staging_put(struct staging *s, void *chunk);

void staging_fini(struct staging *s);

#endif
