#include "base/pool.h"

#include <string.h>

#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SPARE_MAX = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SPARE_MAX = 0 };
#else
enum { SPARE_MAX = 4096 };
#endif
#else
enum { SPARE_MAX = 4096 };
#endif

void *pool_get(struct pool *p, size_t zeroed)
{
        void *block = p->spare;
        if (block) {
                p->spare = *(void **)block;
                p->spare_count--;
        } else {
                block = mem_alloc(p->size);
        }
        if (block)
                memset(block, 0, zeroed);
        return block;
}

void pool_put(struct pool *p, void *block)
{
        if (!block)
                return;
        if (p->spare_count == SPARE_MAX) {
                mem_free(block);
                return;
        }
        *(void **)block = p->spare;
        p->spare = block;
        p->spare_count++;
}

void pool_fini(struct pool *p)
{
        while (p->spare) {
                void *next = *(void **)p->spare;
                mem_free(p->spare);
                p->spare = next;
        }
        p->spare_count = 0;
}
