#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "os/thread.h"
#include "trace/static_probes.h"

#define FIELDS (sizeof(struct trace_record) / sizeof(uint64_t))

/* A ring is written by its thread alone. A slot is stored after the count of the records before it
 * (release). So a reader that sees a new value in a slot also sees a count which says that the old
 * record is gone. */
struct ring {
        uint64_t thread;
        char name[THREAD_NAME_MAX];
        _Atomic uint64_t count; /* records ever put */
        uint64_t size;          /* slots, a power of two */
        _Atomic uint64_t slots[][FIELDS];
};

/* Tracers find semaphores in this section. */
__attribute__((used, section(".probes"))) _Atomic uint16_t trace_consumers = 0;

static void (*_Atomic lttng_put)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                                 uint64_t value);
static _Atomic(struct ring *) rings[TRACE_THREADS];
static atomic_uint ring_count;
static unsigned ring_max = TRACE_THREADS; /* both: trace_limit */
static uint64_t ring_size = TRACE_RECORDS;
/* In the space that each thread has from its start, because otherwise each record calls __tls_get_addr. */
static _Thread_local struct ring *own __attribute__((tls_model("initial-exec")));
static _Thread_local bool refused;

const struct trace_info *trace_find(uint64_t probe)
{
        static const struct trace_info all[] = {
#define PROBE(number, id, group, value, flow, doc) \
        [number] = { #id, #group, #value, doc, TRACE_FLOW_##flow },
#include "trace/probes.def"
        };
        return probe < array_size(all) && all[probe].name ? &all[probe] : NULL;
}

void trace_limit(size_t bytes)
{
        enum { SHARES = 16, LEAST = 128 };
        const size_t record = sizeof(struct trace_record);
        while (ring_size > LEAST && ring_size * record * SHARES > bytes)
                ring_size /= 2;
        size_t rings_max = bytes / (size_t)(ring_size * record);
        ring_max = rings_max > TRACE_THREADS ? TRACE_THREADS : rings_max ? (unsigned)rings_max : 1;
}

void trace_extend(size_t bytes)
{
        enum { SHARES = 16, MOST = 1 << 20 };
        while (ring_size < MOST && 2 * ring_size * sizeof(struct trace_record) * SHARES <= bytes)
                ring_size *= 2;
        trace_limit(bytes);
}

void trace_start(void)
{
        atomic_fetch_or(&trace_consumers, TRACE_RINGS);
}

void trace_stop(void)
{
        atomic_fetch_and(&trace_consumers, TRACE_TRACERS);
}

void trace_pause(void)
{
        atomic_fetch_and(&trace_consumers, (uint16_t)~TRACE_RINGS);
}

bool trace_is_recording(void)
{
        return atomic_load_explicit(&trace_consumers, memory_order_relaxed) & TRACE_RINGS;
}

void trace_use_lttng(void (*put)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                                 uint64_t value))
{
        atomic_store(&lttng_put, put);
        atomic_fetch_or(&trace_consumers, TRACE_LTTNG);
}

/* Make the calling thread's ring, which outlives the thread. NULL: there are too many rings, or no
 * memory. */
__attribute__((noinline, cold)) static struct ring *make_ring(void)
{
        if (refused)
                return NULL;
        refused = true;
        struct ring *r = calloc(
                1, sizeof(*r) +
                           (size_t)ring_size *
                                   sizeof(*r->slots)); /* never freed, so not counted as a block */
        if (!r)
                return NULL;
        unsigned i = atomic_load(&ring_count);
        do {
                if (i >= ring_max) {
                        free(r);
                        return NULL;
                }
        } while (!atomic_compare_exchange_weak(&ring_count, &i, i + 1));
        r->size = ring_size;
        r->thread = thread_number();
        thread_get_name(r->name);
        own = r;
        atomic_store(&rings[i], r);
        return r;
}

static void put_ring(uint64_t probe, uint64_t begin_ns, uint64_t end_ns, uint64_t value)
{
        struct ring *r = own ? own : make_ring();
        if (!r)
                return;
        uint64_t n = atomic_load_explicit(&r->count, memory_order_relaxed);
        _Atomic uint64_t *slot = r->slots[n & (r->size - 1)];
        const uint64_t fields[FIELDS] = { begin_ns, end_ns, probe, value };
        for (size_t i = 0; i < FIELDS; i++)
                atomic_store_explicit(&slot[i], fields[i], memory_order_release);
        atomic_store_explicit(&r->count, n + 1, memory_order_release);
}

void trace_put_at(uint64_t probe_at, uint64_t begin_ns, uint64_t end_ns, uint64_t value)
{
        unsigned consumers = atomic_load(&trace_consumers);
        enum trace_probe probe = (enum trace_probe)(probe_at & TRACE_PROBE_MASK);
        if (consumers & TRACE_RINGS)
                put_ring(probe_at, begin_ns, end_ns, value);
        if (consumers & TRACE_LTTNG)
                atomic_load (&lttng_put)(probe, begin_ns, end_ns, value);
        if (consumers & TRACE_TRACERS)
                static_probes_fire(probe, begin_ns, end_ns, value);
}

void trace_put(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns, uint64_t value)
{
        trace_put_at(probe, begin_ns, end_ns, value);
}

/* Copy the records that were complete, and were not overwritten meanwhile. */
static void copy_ring(const struct ring *r, struct trace_thread *ret)
{
        uint64_t end = atomic_load_explicit(&r->count, memory_order_acquire);
        uint64_t begin = end > r->size ? end - r->size : 0;
        for (uint64_t n = begin; n < end; n++) {
                const _Atomic uint64_t *slot = r->slots[n & (r->size - 1)];
                uint64_t fields[FIELDS];
                for (size_t i = 0; i < FIELDS; i++)
                        fields[i] = atomic_load_explicit(&slot[i], memory_order_acquire);
                ret->records[n - begin] =
                        (struct trace_record){ fields[0], fields[1], fields[2], fields[3] };
        }
        /* The record after the last may be half written, into the slot of the record that many
         * before it. */
        uint64_t now = atomic_load_explicit(&r->count, memory_order_relaxed) + 1;
        uint64_t valid = now > r->size ? now - r->size : 0;
        size_t gone = valid > begin ? (size_t)(valid - begin) : 0;
        ret->count = (size_t)(end - begin);
        gone = gone < ret->count ? gone : ret->count;
        ret->count -= gone;
        ret->lost = begin + gone;
        memmove(ret->records, ret->records + gone, ret->count * sizeof(*ret->records));
}

int trace_read(int (*fn)(void *user, const struct trace_thread *t), void *user)
{
        /* A ring that was made before a limit may be larger than those after it. */
        uint64_t most = 1;
        unsigned count = atomic_load(&ring_count);
        for (unsigned i = 0; i < count; i++) {
                const struct ring *ring = atomic_load(&rings[i]);
                most = ring && ring->size > most ? ring->size : most;
        }
        struct trace_record *records = mem_alloc((size_t)most * sizeof(*records));
        if (!records)
                return SP_E_NOMEM;
        int r = 0;
        for (unsigned i = 0; i < count && r >= 0; i++) {
                const struct ring *ring = atomic_load(&rings[i]);
                if (!ring || ring->size > most)
                        continue; /* the ring is being made, or was not there above */
                struct trace_thread t = { .id = ring->thread, .records = records };
                memcpy(t.name, ring->name, sizeof(t.name));
                copy_ring(ring, &t);
                r = fn(user, &t);
        }
        mem_free(records);
        return r < 0 ? r : 0;
}
