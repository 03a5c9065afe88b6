#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "os/thread.h"
#include "trace/record_times.h"
#include "trace/static_probes.h"

#define FIELDS (sizeof(struct trace_record) / sizeof(uint64_t))

enum { CLOCK_TRIES = 1000 }; /* of a reader, while the clock is written */

/* A ring is written by its thread alone. A slot is stored after the count of the records before it
 * (release). So a reader that sees a new value in a slot also sees a count which says that the old
 * record is gone.
 *
 * Times are ticks, because converting them would cost as much as the rest of a record. So each comparison of the clocks
 * is a record, too (trace/record_times.h). The newest one is also in front of the slots. */
struct ring {
        uint64_t thread;
        char name[THREAD_NAME_MAX];
        _Atomic uint64_t clock_version; /* 2 for each comparison; odd while one is being written */
        _Atomic uint64_t base, base_ns, rate;
        _Atomic uint64_t count; /* records ever put */
        uint64_t size;          /* slots, a power of two */
        _Atomic uint64_t slots[][FIELDS];
};

SEMAPHORE _Atomic uint16_t trace_consumers = 0;

static void (*_Atomic lttng_put)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                                 uint64_t value);
static _Atomic(struct ring *) rings[TRACE_THREADS];
static atomic_uint ring_count;
static unsigned ring_max = TRACE_THREADS; /* both: trace_limit */
static uint64_t ring_size = TRACE_RECORDS;
/* In the space that each thread has from its start, because otherwise each record calls __tls_get_addr. */
static _Thread_local struct {
        struct ring *ring;  /* NULL: none yet, or refused */
        uint64_t ring_base; /* of the comparison that the ring has; 0: none yet, or ticks are ns */
        bool refused, ring_has_clock;
        struct ticks_clock clock;
} own __attribute__((tls_model("initial-exec")));

const struct trace_info *trace_find(uint64_t probe)
{
        static const struct trace_info all[] = {
#define PROBE(number, id, group, value, flow, recorder, doc) \
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

void trace_start(bool all)
{
        atomic_fetch_or(&trace_consumers, TRACE_RINGS | (all ? TRACE_ALL : 0));
        if (!all)
                atomic_fetch_and(&trace_consumers, (uint16_t)~TRACE_ALL);
}

void trace_stop(void)
{
        atomic_fetch_and(&trace_consumers, TRACE_TRACERS);
}

void trace_pause(void)
{
        atomic_fetch_and(&trace_consumers, (uint16_t) ~(TRACE_RINGS | TRACE_ALL));
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
        if (own.refused)
                return NULL;
        own.refused = true;
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
        /* The flight recorder fills all of it, and is to cost little: no fault for each page meanwhile. */
        if (!(atomic_load(&trace_consumers) & TRACE_ALL))
                mem_touch(r->slots, (size_t)ring_size * sizeof(*r->slots));
        r->size = ring_size;
        r->thread = thread_number();
        thread_get_name(r->name);
        own.ring = r;
        atomic_store(&rings[i], r);
        return r;
}

static inline void put_ring(struct ring *r, uint64_t probe, uint64_t begin, uint64_t end,
                            uint64_t value)
{
        uint64_t n = atomic_load_explicit(&r->count, memory_order_relaxed);
        _Atomic uint64_t *slot = r->slots[n & (r->size - 1)];
        atomic_store_explicit(&slot[0], begin, memory_order_release);
        atomic_store_explicit(&slot[1], end, memory_order_release);
        atomic_store_explicit(&slot[2], probe, memory_order_release);
        atomic_store_explicit(&slot[3], value, memory_order_release);
        atomic_store_explicit(&r->count, n + 1, memory_order_release);
}

/* Put the thread's last comparison of the clocks, unless the ring has it. */
static void put_clock(struct ring *r, const struct ticks_clock *c)
{
        if (own.ring_has_clock && own.ring_base == c->base)
                return;
        own.ring_has_clock = true;
        own.ring_base = c->base;
        atomic_fetch_add(&r->clock_version, 1);
        atomic_store_explicit(&r->base, c->base, memory_order_release);
        atomic_store_explicit(&r->base_ns, c->base_ns, memory_order_release);
        atomic_store_explicit(&r->rate, c->rate, memory_order_release);
        atomic_fetch_add(&r->clock_version, 1);
        struct trace_record record = record_times_comparison(c);
        put_ring(r, record.probe, record.begin_ns, record.end_ns, record.value);
}

/* Give a record to all consumers. */
__attribute__((noinline)) static void put_all(uint64_t probe_at, uint64_t begin, uint64_t end,
                                              uint64_t value)
{
        unsigned consumers = atomic_load(&trace_consumers);
        enum trace_probe probe = (enum trace_probe)(probe_at & TRACE_PROBE_MASK);
        uint64_t end_ns = ticks_clock_ns(&own.clock, end);
        uint64_t begin_ns = end_ns - ticks_clock_span(&own.clock, begin, end, end_ns);
        bool kept = consumers & TRACE_ALL || (consumers & TRACE_RINGS && trace_is_recorder(probe));
        struct ring *r = !kept ? NULL : own.ring ? own.ring : make_ring();
        if (r) {
                put_clock(r, &own.clock);
                put_ring(r, probe_at, begin, end, value);
        }
        if (consumers & TRACE_LTTNG)
                atomic_load (&lttng_put)(probe, begin_ns, end_ns, value);
        if (consumers & TRACE_TRACERS)
                static_probes_fire(probe, begin_ns, end_ns, value);
}

void trace_put(uint64_t probe_at, uint64_t begin, uint64_t end, uint64_t value)
{
        struct ring *r = own.ring;
        unsigned consumers = atomic_load_explicit(&trace_consumers, memory_order_relaxed);
        bool only_rings = r && (consumers & ~TRACE_ALL) == TRACE_RINGS;
        if (__builtin_expect(only_rings && ticks_clock_holds(&own.clock, end), true))
                put_ring(r, probe_at, begin, end, value);
        else
                put_all(probe_at, begin, end, value);
}

uint64_t trace_thread_number(void)
{
        return own.ring ? own.ring->thread : thread_number();
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Read the newest comparison of the clocks. Returns how many there were. */
static uint64_t read_clock(const struct ring *r, struct ticks_clock *ret)
{
        uint64_t version;
        /* The writer may be this thread itself, in a signal handler that ends the process. */
        unsigned tries = 0;
        do {
                version = atomic_load(&r->clock_version);
                ret->base = atomic_load_explicit(&r->base, memory_order_acquire);
                ret->base_ns = atomic_load_explicit(&r->base_ns, memory_order_acquire);
                ret->rate = atomic_load_explicit(&r->rate, memory_order_acquire);
        } while ((version % 2 || version != atomic_load(&r->clock_version)) &&
                 ++tries < CLOCK_TRIES);
        return version / 2;
}

/* Copy the records that were complete, and were not overwritten meanwhile. Their times are ticks. */
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

/* Copy a thread's records. Comparisons that were overwritten do not count as lost records. */
static void read_thread(const struct ring *r, struct trace_thread *ret)
{
        struct ticks_clock newest = { 0 };
        uint64_t compared = read_clock(r, &newest);
        copy_ring(r, ret);
        size_t copied = ret->count;
        ret->count = record_times_convert(ret->records, copied, &newest);
        uint64_t found = copied - ret->count, gone = compared > found ? compared - found : 0;
        ret->lost -= gone < ret->lost ? gone : ret->lost;
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
                read_thread(ring, &t);
                r = fn(user, &t);
        }
        mem_free(records);
        return r < 0 ? r : 0;
}
