#include "core/handle.h"

#include "base/mem.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

void handle_init(struct handle *h, enum handle_type type)
{
        h->dispatch = handle_dispatch;
        h->type = type;
        atomic_store_explicit(&h->refs, 1, memory_order_relaxed);
        atomic_store_explicit(&h->holds, 1, memory_order_relaxed);
}

void handle_retain(struct handle *h)
{
        if (atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed) == 0)
                atomic_fetch_add_explicit(&h->holds, 1, memory_order_relaxed);
}

int handle_release(struct handle *h)
{
        unsigned refs = atomic_load_explicit(&h->refs, memory_order_relaxed);
        do {
                if (!refs)
                        return SP_E_INVAL;
        } while (!atomic_compare_exchange_weak_explicit(
                &h->refs, &refs, refs - 1, memory_order_acq_rel, memory_order_relaxed));
        return refs == 1;
}

void handle_free(struct handle *h, size_t size)
{
        static struct handle *_Atomic graves[64];
        static atomic_uint next;
        h->type = 0;
        ASAN_POISON_MEMORY_REGION(h + 1, size - sizeof(*h));
        unsigned i = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % array_size(graves);
        mem_free(atomic_exchange(&graves[i], h));
}
