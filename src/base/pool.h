/* Blocks of one size that one owner makes and gives back all the time: what was given back is used again, so
 * that neither end meets the allocator, which is slow where one thread frees what another has made. No lock
 * inside. Nothing is kept where the address sanitizer watches: it has to see each use. */
#ifndef SPANCL_BASE_POOL_H
#define SPANCL_BASE_POOL_H

#include <stddef.h>

struct pool {
        size_t size; /* of a block; constant */
        size_t spare_count;
        void *spare; /* each begins with the next one's address */
};

/* A block of which the first `zeroed` bytes are zero. NULL: out of memory. */
void *pool_get(struct pool *p, size_t zeroed);

/* NULL is allowed. */
void pool_put(struct pool *p, void *block);

/* Give the spare ones back. */
void pool_fini(struct pool *p);

#endif
