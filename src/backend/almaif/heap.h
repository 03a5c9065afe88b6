/* The allocation table of a memory: first fit, no access to the memory itself. One owner. */
#ifndef SPANCL_BACKEND_ALMAIF_HEAP_H
#define SPANCL_BACKEND_ALMAIF_HEAP_H

#include <stdint.h>

#include "base/list.h"
#include "base/status.h"

struct heap {
        uint64_t size, used;
        struct list taken; /* in order of their offsets */
};

void heap_init(struct heap *h, uint64_t size);
void heap_fini(struct heap *h);

/* Allocate `size` bytes (not 0) at a multiple of `align`, a power of two. SP_E_LIMIT: no room;
 * SP_E_NOMEM. */
SP_NODISCARD int heap_take(struct heap *h, uint64_t size, uint64_t align, uint64_t *ret);

/* Free the bytes that were allocated at `at`. */
void heap_give(struct heap *h, uint64_t at);

#endif
