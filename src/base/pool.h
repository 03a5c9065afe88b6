/* A pool has blocks of one size that one owner takes and gives back often. It reuses blocks, so
 * that neither end calls the allocator, which is slow if one thread frees another's blocks. No lock
 * inside. Under the address sanitizer it keeps nothing, so that the sanitizer sees each use. */
#ifndef SPANCL_BASE_POOL_H
#define SPANCL_BASE_POOL_H

#include <stddef.h>

struct pool {
        size_t size; /* of a block; constant */
        size_t spare_count;
        void *spare; /* each begins with the next one's address */
};

/* Take a block whose first `zeroed` bytes are zero. NULL: out of memory. */
void *pool_get(struct pool *p, size_t zeroed);

/* NULL is allowed. */
void pool_put(struct pool *p, void *block);

/* Free the spare blocks. */
void pool_fini(struct pool *p);

#endif
