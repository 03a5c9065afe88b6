/* Probes record when the code did something, for the timeline that SPANCL_TRACE writes.
 *
 * Each thread records into its own ring, without locks; the newest records stay. Until trace_start
 * recording is off, and a probe costs a load and a branch. When it is on, a probe costs one clock
 * reading for each end. Any thread; readers may read while others record. */
#ifndef SPANCL_TRACE_TRACE_H
#define SPANCL_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/clock.h"

enum trace_probe {
#define PROBE(number, id, group, value, flow, doc) TRACE_##id = number,
#include "trace/probes.def"
};

enum trace_flow { TRACE_FLOW_NONE, TRACE_FLOW_START, TRACE_FLOW_STEP, TRACE_FLOW_END };

/* The description of a probe, from probes.def. */
struct trace_info {
        const char *name, *group, *value, *doc;
        enum trace_flow flow;
};

/* Find a probe. NULL: there is none, for example one of another version. */
const struct trace_info *trace_find(uint64_t probe);

/* CLOCK_MONOTONIC ns; begin == end: a moment. */
struct trace_record {
        uint64_t begin_ns, end_ns, probe, value;
};

enum {
        TRACE_RECORDS = 1 << 15, /* of one thread; new ones overwrite the oldest */
        TRACE_THREADS = 256,     /* further threads are not recorded */
};

extern atomic_bool trace_recording;

static inline bool trace_is_on(void)
{
        return __builtin_expect(atomic_load_explicit(&trace_recording, memory_order_relaxed),
                                false);
}

void trace_start(void);
/* Stop recording; the records stay. */
void trace_stop(void);

void trace_put(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns, uint64_t value);

/* ---- in the code ---------------------------------------------------------------------------- */

struct trace_span {
        enum trace_probe probe;
        uint64_t begin_ns; /* 0: recording was off */
        uint64_t value;    /* may be set until its end */
};

static inline struct trace_span trace_begin(enum trace_probe probe, uint64_t value)
{
        return (struct trace_span){ probe, trace_is_on() ? clock_now_ns() : 0, value };
}

static inline void trace_end(struct trace_span *s)
{
        if (__builtin_expect(s->begin_ns != 0, false))
                trace_put(s->probe, s->begin_ns, clock_now_ns(), s->value);
}

/* Record a span from here to the end of the block; `span_NAME.value` may be changed. */
#define TRACE_SPAN(name, value)                                                       \
        auto_clean(trace_end) __attribute__((unused)) struct trace_span span_##name = \
                trace_begin(TRACE_##name, (uint64_t)(value))

/* Record a moment. */
#define TRACE(name, value)                                                                \
        do {                                                                              \
                if (trace_is_on()) {                                                      \
                        uint64_t trace_at_ = clock_now_ns();                              \
                        trace_put(TRACE_##name, trace_at_, trace_at_, (uint64_t)(value)); \
                }                                                                         \
        } while (0)

/* ---- reading -------------------------------------------------------------------------------- */

struct trace_thread {
        uint64_t id; /* the system's */
        char name[16];
        size_t count;
        struct trace_record *records; /* in the order in which they ended */
};

/* Call `fn` with a copy of each thread's records, one thread after the other; `fn` borrows it.
 * Records that are overwritten meanwhile are left out. A negative result of `fn` stops it and is
 * returned. SP_E_NOMEM. */
SP_NODISCARD int trace_read(int (*fn)(void *user, const struct trace_thread *t), void *user);

#endif
