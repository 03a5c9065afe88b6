#include "backend/almaif/heap.h"

#include <assert.h>

struct piece {
        struct list link;
        uint64_t at, size;
};

void heap_init(struct heap *h, uint64_t size)
{
        *h = (struct heap){ .size = size };
        list_init(&h->taken);
}

void heap_fini(struct heap *h)
{
        if (!h->taken.next)
                return;
        list_each(p, &h->taken, struct piece, link)
        {
                list_remove(&p->link);
                mem_free(p);
        }
}

int heap_take(struct heap *h, uint64_t size, uint64_t align, uint64_t *ret)
{
        if (size > h->size - h->used)
                return SP_E_LIMIT;
        uint64_t at = 0;
        struct list *before = &h->taken;
        list_each(p, &h->taken, struct piece, link)
        {
                if (p->at >= at && p->at - at >= size) {
                        before = &p->link;
                        break;
                }
                at = (p->at + p->size + align - 1) & ~(align - 1);
        }
        if (at > h->size || size > h->size - at)
                return SP_E_LIMIT;
        struct piece *p = mem_alloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        p->at = at;
        p->size = size;
        list_append(before, &p->link); /* in front of it */
        h->used += size;
        *ret = at;
        return 0;
}

void heap_give(struct heap *h, uint64_t at)
{
        list_each(p, &h->taken, struct piece, link)
        {
                if (p->at != at)
                        continue;
                h->used -= p->size;
                list_remove(&p->link);
                mem_free(p);
                return;
        }
        assert(!"was not taken");
}
