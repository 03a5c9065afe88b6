#include "engine/tracing.h"

#include "base/mem.h"
#include "engine/engine.h"
#include "engine/transfer/peer.h"
#include "os/lock.h"
#include "trace/trace.h"

enum { OBSERVED_BYTES = 32 << 20 }; /* of rings */

static int put_thread(void *user, const struct trace_thread *t)
{
        struct buf *out = user;
        size_t mark, size = t->count * sizeof(struct trace_record);
        if (out->size + size + 256 > WIRE_BLOB_MAX)
                return 0; /* left out */
        int r = info_begin(out, INFO_TRACE_THREAD, &mark);
        if (!r)
                r = info_put_u64(out, INFO_TRACE_THREAD_ID, t->id);
        if (!r)
                r = info_put(out, INFO_TRACE_THREAD_NAME, t->name, strlen(t->name));
        if (!r && t->lost)
                r = info_put_u64(out, INFO_TRACE_LOST, t->lost);
        size_t records = 0;
        if (!r)
                r = info_begin(out, INFO_TRACE_RECORDS, &records);
        if (!r)
                r = buf_reserve(out, size);
        for (size_t i = 0; i < t->count && !r; i++) {
                const struct trace_record *a = &t->records[i];
                const uint64_t fields[] = { a->begin_ns, a->end_ns, trace_probe_of(a), a->value };
                for (size_t k = 0; k < array_size(fields) && !r; k++)
                        r = buf_put_u64(out, fields[k]);
        }
        if (r < 0)
                return r;
        info_end(out, records);
        info_end(out, mark);
        return 0;
}

/* The recording of probes, for all engines of the process: it is on for observers, and for the client. */
static struct {
        struct lock lock;
        unsigned observers;
        enum { CLIENT_NO, CLIENT_RECORDER, CLIENT_ALL } client; /* until its session ends */
        bool limited; /* trace_limit was called, or it is too late */
} watch = { .lock = LOCK_INIT };

/* Record what observers and the client want. */
static void record(void) REQUIRES(watch.lock)
{
        if (watch.observers || watch.client)
                trace_start(watch.observers || watch.client == CLIENT_ALL);
        else
                trace_pause();
}

int engine_handle_trace_start(void *user, const struct wire_trace_start *m)
{
        (void)user;
        lock_take(&watch.lock);
        watch.client = m->flags & TRACE_START_RECORDER ? CLIENT_RECORDER : CLIENT_ALL;
        watch.limited = true;
        record();
        lock_release(&watch.lock);
        return 0;
}

void engine_trace_watch(bool on)
{
        lock_take(&watch.lock);
        if (!watch.limited) /* the session did not ask for the memory */
                trace_limit(OBSERVED_BYTES);
        watch.limited = true;
        watch.observers += on ? 1 : -1u;
        record();
        lock_release(&watch.lock);
}

int engine_get_threads(struct buf *ret)
{
        return trace_read(put_thread, ret);
}

int engine_handle_trace_query(void *user, const struct wire_trace_query *m)
{
        struct peer *p = user;
        auto_clean(buf_fini) struct buf threads = { 0 };
        int r = engine_get_threads(&threads);
        if (r < 0) /* send none rather than half a block */
                threads.size = 0;
        peer_send(p, trace, .request = m->request, .threads = bytes_of(threads.data, threads.size));
        return 0;
}
