/* Probes: what the code did when, for the timeline that SPANCL_TRACE writes.
 *
 * Each thread records into a ring of its own, without locks; the newest records stay. Recording is off
 * until trace_start: then a probe costs a load and a branch. On, it costs a reading of the clock for each
 * end. Any thread; readers may read while others record. */
#ifndef SPANCL_TRACE_TRACE_H
#define SPANCL_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"

enum trace_probe {
#define PROBE(number, id, group, value, flow, doc) TRACE_##id = number,
#include "trace/probes.def"
};

enum trace_flow { TRACE_FLOW_NONE, TRACE_FLOW_START, TRACE_FLOW_STEP, TRACE_FLOW_END };

/* What is known of a probe. */
struct trace_info {
        const char *name, *group, *value, *doc;
        enum trace_flow flow;
};

/* NULL: no such probe (another version's). */
const struct trace_info *trace_find(uint64_t probe);

/* CLOCK_MONOTONIC ns; begin == end: a moment. */
struct trace_record {
        uint64_t begin_ns, end_ns, probe, value;
};

enum {
        TRACE_RECORDS = 1 << 15, /* of one thread; the oldest are overwritten */
        TRACE_THREADS = 256,     /* those that come later are not recorded */
};

extern atomic_bool trace_recording;

static inline bool trace_is_on(void)
{
        return __builtin_expect(atomic_load_explicit(&trace_recording, memory_order_relaxed),
                                false);
}

void trace_start(void);
/* What was recorded stays. */
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

/* From here to the end of the block; `span_NAME.value` may be changed. */
#define TRACE_SPAN(name, value)                                                       \
        auto_clean(trace_end) __attribute__((unused)) struct trace_span span_##name = \
                trace_begin(TRACE_##name, (uint64_t)(value))

/* A moment. */
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

/* A copy of what each thread recorded, one after the other; `fn` borrows it. What is overwritten meanwhile
 * is left out. A negative result of `fn` ends it and is returned. SP_E_NOMEM. */
SP_NODISCARD int trace_read(int (*fn)(void *user, const struct trace_thread *t), void *user);

#endif
