#include "engine/tracing.h"

#include "base/mem.h"
#include "engine/transfer/peer.h"
#include "trace/trace.h"

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

int engine_handle_trace_start(void *user, const struct wire_trace_start *m)
{
        (void)user;
        (void)m;
        trace_start();
        return 0;
}

int engine_handle_trace_query(void *user, const struct wire_trace_query *m)
{
        struct peer *p = user;
        auto_clean(buf_fini) struct buf threads = { 0 };
        int r = trace_read(put_thread, &threads);
        if (r < 0) /* send none rather than half a block */
                threads.size = 0;
        peer_send(p, trace, .request = m->request, .threads = bytes_of(threads.data, threads.size));
        return 0;
}
