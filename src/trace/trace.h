/* Probes tell when the code did something. Three kinds of consumers take what they tell: the rings of
 * this process (the timeline of SPANCL_TRACE), LTTng (trace/lttng.h), and tracers of static probes.
 *
 * One word counts the consumers, and a probe costs a load and a branch while there is none. With a
 * consumer it costs one reading of a counter for each end (ticks.h). Each thread records into its own ring,
 * without locks; the newest records stay. Any thread; readers may read while others record. */
#ifndef SPANCL_TRACE_TRACE_H
#define SPANCL_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trace/ticks.h"

enum trace_probe {
#define PROBE(number, id, group, value, flow, recorder, doc) TRACE_##id = number,
#include "trace/probes.def"
};

enum trace_flow {
        TRACE_FLOW_NONE,
        TRACE_FLOW_START,
        TRACE_FLOW_STEP,
        TRACE_FLOW_END,
        TRACE_FLOW_MARK, /* no flow: it concerns all rows of the timeline */
};

/* The description of a probe, from probes.def. */
struct trace_info {
        const char *name, *group, *value, *doc;
        enum trace_flow flow;
};

/* Find a probe. NULL: there is none, for example one of another version. */
const struct trace_info *trace_find(uint64_t probe);

/* CLOCK_MONOTONIC ns; begin == end: a moment. */
struct trace_record {
        uint64_t begin_ns, end_ns;
        uint64_t probe; /* of probes.def; in this process with a place (trace_at) */
        uint64_t value;
};

/* A place is the number of a session in this process (0: none), with a lane of it. */
#define TRACE_PROBE_MASK 0xffffull

static inline uint64_t trace_at(uint64_t probe, unsigned place, unsigned lane)
{
        return (probe & TRACE_PROBE_MASK) | (uint64_t)(place & 0xffff) << 16 | (uint64_t)lane << 32;
}

static inline uint64_t trace_probe_of(const struct trace_record *r)
{
        return r->probe & TRACE_PROBE_MASK;
}

static inline unsigned trace_place_of(const struct trace_record *r)
{
        return (unsigned)(r->probe >> 16) & 0xffff;
}

static inline unsigned trace_lane_of(const struct trace_record *r)
{
        return (unsigned)(r->probe >> 32);
}

enum {
        TRACE_RECORDS = 1 << 15, /* of one thread at most; new ones overwrite the oldest */
        TRACE_THREADS = 256,     /* further threads are not recorded */
};

/* The bits of trace_consumers. The word is the semaphore of every static probe: tracers of the
 * operating system add to it and subtract from it, as a signed number that they keep positive. */
enum trace_consumer {
        TRACE_TRACERS = (1 << 12) - 1, /* a count */
        TRACE_ALL = 1 << 12,           /* the rings have more than the flight recorder's probes */
        TRACE_LTTNG = 1 << 13,
        TRACE_RINGS = 1 << 14,
};

extern _Atomic uint16_t trace_consumers;

/* Return true if the flight recorder has the probe. */
static inline bool trace_is_recorder(enum trace_probe probe)
{
        enum { no, yes };
        switch (probe) {
#define PROBE(number, id, group, value, flow, recorder, doc) \
        case number:                                         \
                return recorder;
#include "trace/probes.def"
        }
        return false;
}

/* Return true if the probe has a consumer. For a constant probe it is a load and a branch. */
static inline bool trace_is_on(enum trace_probe probe)
{
        unsigned any = trace_is_recorder(probe) ? UINT16_MAX : UINT16_MAX & ~TRACE_RINGS;
        return __builtin_expect(
                (atomic_load_explicit(&trace_consumers, memory_order_relaxed) & any) != 0, false);
}

/* Have rings use about so many bytes in all, before the first record. Otherwise each thread has TRACE_RECORDS. */
void trace_limit(size_t bytes);
/* The same, but a thread's ring may have more than TRACE_RECORDS, if `bytes` have room for 16 such rings. */
void trace_extend(size_t bytes);

/* Record into the rings: all probes, or only those that the flight recorder has. Also changes between both. */
void trace_start(bool all);
/* Stop recording, also for LTTng; the records stay. */
void trace_stop(void);
/* Have the rings stop, until trace_start; LTTng goes on. */
void trace_pause(void);
/* Return true while the rings record. */
bool trace_is_recording(void);

/* Give a record to LTTng's events, too, until trace_stop. `put` may be called by any thread. */
void trace_use_lttng(void (*put)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                                 uint64_t value));

/* Return the system's number of the calling thread. A thread that has records does not ask the system. */
uint64_t trace_thread_number(void);

/* Give a record to the consumers, with times of ticks_now, and at a place, which only the rings keep. */
void trace_put(uint64_t probe_at, uint64_t begin, uint64_t end, uint64_t value);

/* ---- in the code ---------------------------------------------------------------------------- */

struct trace_span {
        uint64_t probe; /* may get a place (trace_at) until its end */
        uint64_t begin; /* of ticks_now; 0: there was no consumer */
        uint64_t value; /* may be set until its end */
};

static inline struct trace_span trace_begin(enum trace_probe probe, uint64_t value)
{
        return (struct trace_span){ probe, trace_is_on(probe) ? ticks_now() : 0, value };
}

static inline bool trace_has_begun(const struct trace_span *s)
{
        return __builtin_expect(s->begin != 0, false);
}

static inline void trace_end(struct trace_span *s)
{
        if (trace_has_begun(s))
                trace_put(s->probe, s->begin, ticks_now(), s->value);
}

/* trace_end at a place. */
static inline void trace_end_at(struct trace_span *s, unsigned place, unsigned lane)
{
        if (trace_has_begun(s))
                trace_put(trace_at(s->probe, place, lane), s->begin, ticks_now(), s->value);
}

/* Record a span from here to the end of the block; `span_NAME.value` may be changed. */
#define TRACE_SPAN(name, value)                                                       \
        auto_clean(trace_end) __attribute__((unused)) struct trace_span span_##name = \
                trace_begin(TRACE_##name, (uint64_t)(value))

/* Record a moment. */
#define TRACE(name, value)                                                                \
        do {                                                                              \
                if (trace_is_on(TRACE_##name)) {                                          \
                        uint64_t trace_at_ = ticks_now();                                 \
                        trace_put(TRACE_##name, trace_at_, trace_at_, (uint64_t)(value)); \
                }                                                                         \
        } while (0)

/* ---- reading -------------------------------------------------------------------------------- */

struct trace_thread {
        uint64_t id; /* the system's */
        char name[16];
        uint64_t lost; /* older records that were overwritten */
        size_t count;
        struct trace_record *records; /* in the order in which they ended */
};

/* Call `fn` with a copy of each thread's records, one thread after the other; `fn` borrows it.
 * Records that are overwritten meanwhile are left out. A negative result of `fn` stops it and is
 * returned. SP_E_NOMEM. */
SP_NODISCARD int trace_read(int (*fn)(void *user, const struct trace_thread *t), void *user);

#endif
