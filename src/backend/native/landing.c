/* Where a driver is slow to tell that a command is complete, the bytes that the device itself writes into memory of the
 * host tell it 2 to 3 µs sooner. A small read goes to a queue's landing, a piece of such memory that was filled with a
 * value beforehand: a word that holds another one has arrived, however the writes are ordered on their way, since a
 * device writes an aligned word as one. Bytes that happen to be that value are told of by the read's event, as are
 * failures. A launch whose end somebody waits for is followed by a read of one word, and its event is that read's.
 *
 * The landing of a queue serves one command at a time; others are waited for by their events. */
#include "backend/native/landing.h"

#include <string.h>

enum {
        LANDINGS = 64,  /* queues of a domain that have one */
        ASK_EVERY = 64, /* looks */
};

static const uint32_t mark = 1; /* what is read behind a launch */

/* The domain's memory, made once. */
static bool have_memory(struct backend *b, struct native_domain *d)
{
        cl_int err = CL_SUCCESS;
        void *at;
        if (d->landings_tried)
                return d->landings;
        d->landings_tried = true;
        if (native_host_memory(b, (unsigned)(d - b->domains), (size_t)LANDINGS * LANDING_MAX,
                               &at) != CL_SUCCESS)
                return false;
        d->landing_mark =
                d->api->clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                       sizeof(mark), (void *)(uintptr_t)&mark, &err);
        d->landings = d->landing_mark ? at : NULL;
        return d->landings;
}

void landing_take(struct backend_queue *q)
{
        struct native_domain *d = q->domain;
        if (!q->in_order || q->profiling || d->quirks->completion != COMPLETION_WAIT ||
            !have_memory(q->backend, d))
                return;
        for (unsigned i = 0; i < LANDINGS; i++) {
                uint64_t bit = 1ull << i;
                if (atomic_fetch_or(&d->landings_taken, bit) & bit)
                        continue;
                q->landing = (void *)(d->landings + (size_t)i * LANDING_MAX);
                q->landing_bit = bit;
                return;
        }
}

void landing_give(struct backend_queue *q)
{
        atomic_fetch_and(&q->domain->landings_taken, ~q->landing_bit);
}

void landings_end(struct native_domain *d)
{
        if (d->landing_mark)
                d->api->clReleaseMemObject(d->landing_mark);
        d->landing_mark = NULL;
        d->landings = NULL;
}

/* Of a launch only if nothing is in flight: what comes behind the read would wait for it, and if that is not the end,
 * the device stands still for some microseconds. */
static bool is_meant_for(const struct backend_queue *q, const struct backend_command *c)
{
        if (c->op == BACKEND_KERNEL)
                return atomic_load_explicit(&q->over, memory_order_relaxed) == q->submitted;
        return c->op == BACKEND_READ && c->size <= LANDING_MAX && c->size % sizeof(mark) == 0 &&
               c->offset_bytes % sizeof(mark) == 0;
}

bool landing_takes(const struct backend_queue *q, const struct backend_command *c)
{
        return q->landing && c->cookie && !c->prints && is_meant_for(q, c) &&
               atomic_load(&q->backend->polling) && !atomic_load(&q->landing_used);
}

void landing_begin(struct backend_queue *q, const struct backend_command *c,
                   struct backend_event *e)
{
        size_t count = c->op == BACKEND_READ ? c->size / sizeof(mark) : 1;
        q->landing_fill = q->landing_fill * 1664525 + 1013904223;
        q->landing_fill += q->landing_fill == mark;
        for (size_t i = 0; i < count; i++)
                atomic_store_explicit(&q->landing[i], q->landing_fill, memory_order_relaxed);
        e->lands = true;
        e->land_left = count;
        e->land_at = q->landing;
        e->land_to = c->op == BACKEND_READ ? c->host : NULL;
        atomic_store(&q->landing_used, true);
}

cl_int landing_mark(struct backend_queue *q, cl_event *ret)
{
        return q->domain->api->clEnqueueReadBuffer(q->queue, q->domain->landing_mark, CL_FALSE, 0,
                                                   sizeof(mark), q->landing, 0, NULL, ret);
}

/* The next word, which has arrived. */
static void pass(struct backend_event *e, uint32_t word)
{
        if (e->land_to) {
                memcpy(e->land_to, &word, sizeof(word));
                e->land_to += sizeof(word);
        }
        e->land_at++;
        e->land_left--;
}

enum landing landing_look(struct backend_event *e)
{
        while (e->land_left) {
                uint32_t word = atomic_load_explicit(e->land_at, memory_order_acquire);
                if (word == e->queue->landing_fill)
                        return ++e->land_looks % ASK_EVERY ? LANDING_WAITS : LANDING_ASK;
                pass(e, word);
        }
        return LANDING_SEEN;
}

void landing_end(struct backend_event *e)
{
        if (!e->lands)
                return;
        while (e->status == CL_COMPLETE && e->land_left)
                pass(e, atomic_load_explicit(e->land_at, memory_order_relaxed));
        e->lands = false;
        atomic_store(&e->queue->landing_used, false);
}
