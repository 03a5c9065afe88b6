/* Times of a thread's records. The rings keep ticks (trace/ticks.h), and comparisons of the clocks among the records.
 * No state. */
#ifndef SPANCL_TRACE_RECORD_TIMES_H
#define SPANCL_TRACE_RECORD_TIMES_H

#include <stddef.h>

#include "trace/ticks.h"
#include "trace/trace.h"

/* Make the record of a comparison: its ticks, its ns, no probe, and the rate. */
static inline struct trace_record record_times_comparison(const struct ticks_clock *c)
{
        return (struct trace_record){ c->base, c->base_ns, 0, c->rate };
}

/* Convert the times of `count` records, in the order in which they ended, into CLOCK_MONOTONIC ns, and take the
 * comparisons out. Returns the number of records that are left. `newest`: a comparison for records without any. An end
 * is converted by the comparison before it, and an earlier begin between the two around it. No end is before that of an
 * earlier record. */
size_t record_times_convert(struct trace_record *records, size_t count,
                            const struct ticks_clock *newest);

#endif
