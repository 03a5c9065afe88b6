/* Completion flags report completions 2 to 3 µs sooner than a slow driver. A flag is a piece of the
 * host's memory that the device itself writes to. A small read goes to a flag that was filled with
 * a value before. A word that holds another value has arrived. The order of the writes does not
 * matter, since a device writes an aligned word as one. The read's event reports failures, and data
 * that happens to contain the fill value. A launch whose completion somebody waits for is followed
 * by a read of one word, and takes the event of that read.
 *
 * Two other kinds of reads go to a flag, but their words are not polled. Somewhat larger reads
 * would take longer to poll than that saves. Other reads need a query of their event anyway. Both
 * use a flag because it is the driver's memory. To other memory they would arrive a tenth of a
 * millisecond after the command before them. */
#include "backend/native/completion_flag.h"

#include "backend/native/hostmem.h"

#include <string.h>

enum {
        COMPLETION_FLAGS = 64,    /* of a domain */
        POLLED_THROUGH = 1 << 10, /* bytes */
        ASK_EVERY = 64,           /* looks */
};

static const uint32_t mark = 1; /* the word that is read behind a launch */

void completion_flags_begin(struct backend *b, struct native_domain *d)
{
        cl_int err = CL_SUCCESS;
        void *at;
        /* With several devices the mark would have to move to the device that reads it. */
        if (d->completion_flags_tried || d->quirks->completion != COMPLETION_WAIT ||
            d->device_count != 1)
                return;
        d->completion_flags_tried = true;
        if (native_host_memory(b, (unsigned)(d - b->domains),
                               (size_t)COMPLETION_FLAGS * COMPLETION_FLAG_MAX, NULL,
                               &at) != CL_SUCCESS)
                return;
        op_enter();
        d->completion_flag_mark =
                d->api->clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                       sizeof(mark), (void *)(uintptr_t)&mark, &err);
        op_leave();
        if (!d->completion_flag_mark)
                return;
        /* The driver allocates the buffer when it is first used. That must not happen behind a
         * launch on a full device. */
        uint32_t word;
        op_enter();
        if (d->probe_queue)
                err = d->api->clEnqueueReadBuffer(d->probe_queue, d->completion_flag_mark, CL_TRUE,
                                                  0, sizeof(word), &word, 0, NULL, NULL);
        op_leave();
        if (err != CL_SUCCESS) {
                completion_flags_end(d);
                return;
        }
        d->completion_flags = at;
        atomic_store(&d->completion_flags_free, UINT64_MAX);
}

void completion_flags_end(struct native_domain *d)
{
        if (d->completion_flag_mark)
                d->api->clReleaseMemObject(d->completion_flag_mark);
        d->completion_flag_mark = NULL;
}

/* Is the flag's memory polled? If profiling needs times, or the driver prints when it is queried,
 * the event has to be queried instead. */
static bool is_polled(const struct backend_queue *q, const struct backend_command *c)
{
        return !q->profiling && !c->prints && atomic_load(&q->backend->polling);
}

/* A launch uses a flag only if nothing else is in flight. Otherwise the read would wait for other
 * transfers, and later commands for the read. The device would be idle for some microseconds. */
bool completion_flag_takes(const struct backend_queue *q, const struct backend_command *c)
{
        if (!q->domain->completion_flags || !c->cookie ||
            !atomic_load(&q->domain->completion_flags_free))
                return false;
        if (c->op == BACKEND_KERNEL)
                return q->in_order && c->alone && is_polled(q, c);
        return c->op == BACKEND_READ && c->size <= COMPLETION_FLAG_MAX &&
               c->size % sizeof(mark) == 0 && c->offset_bytes % sizeof(mark) == 0 &&
               (!c->now || is_polled(q, c));
}

void completion_flag_begin(struct backend_queue *q, const struct backend_command *c,
                           struct backend_event *e)
{
        struct native_domain *d = q->domain;
        unsigned piece = (unsigned)__builtin_ctzll(atomic_load(&d->completion_flags_free));
        size_t count = c->op == BACKEND_READ ? c->size / sizeof(mark) : 1;
        struct completion_flag *l = &e->completion_flag;
        atomic_fetch_and(&d->completion_flags_free, ~(1ull << piece));
        d->completion_flag_fill = d->completion_flag_fill * 1664525 + 1013904223;
        d->completion_flag_fill += d->completion_flag_fill == mark;
        *l = (struct completion_flag){
                .at = (void *)(d->completion_flags + (size_t)piece * COMPLETION_FLAG_MAX),
                .piece = piece,
                .left = count,
                .polled = count <= POLLED_THROUGH / sizeof(mark) && is_polled(q, c),
                .fill = d->completion_flag_fill,
                .to = c->op == BACKEND_READ ? c->host : NULL
        };
        for (size_t i = 0; i < count && l->polled; i++)
                atomic_store_explicit(&l->at[i], l->fill, memory_order_relaxed);
}

cl_int completion_flag_mark(struct backend_queue *q, struct backend_event *e)
{
        return q->domain->api->clEnqueueReadBuffer(
                q->queue, q->domain->completion_flag_mark, CL_FALSE, 0, sizeof(mark),
                (void *)(uintptr_t)e->completion_flag.at, 0, NULL, &e->event);
}

enum completion_flag_state completion_flag_poll(struct backend_event *e)
{
        struct completion_flag *l = &e->completion_flag;
        if (!l->polled)
                return COMPLETION_FLAG_ASK;
        while (l->left) {
                uint32_t word = atomic_load_explicit(l->at, memory_order_acquire);
                if (word == l->fill)
                        return ++l->looks % ASK_EVERY ? COMPLETION_FLAG_WAITS : COMPLETION_FLAG_ASK;
                if (l->to) {
                        memcpy(l->to, &word, sizeof(word));
                        l->to += sizeof(word);
                }
                l->at++;
                l->left--;
        }
        return COMPLETION_FLAG_SEEN;
}

void completion_flag_end(struct backend_event *e)
{
        struct completion_flag *l = &e->completion_flag;
        if (!l->at)
                return;
        if (e->status == CL_COMPLETE && l->to && l->left)
                memcpy(l->to, (const void *)(uintptr_t)l->at, l->left * sizeof(mark));
        l->at = NULL;
        atomic_fetch_or(&e->queue->domain->completion_flags_free, 1ull << l->piece);
}
