#include "core/client.h"

void handle_init(struct handle *h, enum handle_type type)
{
        h->dispatch = handle_dispatch;
        h->dispatch_data = handle_dispatch_data;
        h->type = type;
        atomic_store_explicit(&h->refs, 1, memory_order_relaxed);
        atomic_store_explicit(&h->holds, 1, memory_order_relaxed);
}

void handle_retain(struct handle *h)
{
        atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

bool handle_release(struct handle *h)
{
        return atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1;
}
