#include "trace/record_times.h"

/* During the conversion a comparison has the place of the one before it, plus one, above the bits of the probe. */
enum { PROBE_BITS = 16 };

static struct ticks_clock clock_of(const struct trace_record *r)
{
        return (struct ticks_clock){ .base = r->begin_ns, .base_ns = r->end_ns, .rate = r->value };
}

/* Convert a time before the last comparison, which is at `last` - 1, between the two comparisons around it. The span
 * that begins then may be long, and the rate of one comparison is exact to 1e-7 only: to some us in half a minute. */
static uint64_t convert_earlier(const struct trace_record *records, size_t last, uint64_t at)
{
        struct ticks_clock before = clock_of(&records[last - 1]), after = before;
        while (before.base > at && (last = (size_t)(records[last - 1].probe >> PROBE_BITS))) {
                after = before;
                before = clock_of(&records[last - 1]);
        }
        if (before.base > at) /* before the first one */
                return ticks_clock_at(&before, at);
        return ticks_clock_between(&before, &after, at);
}

size_t record_times_convert(struct trace_record *records, size_t count,
                            const struct ticks_clock *newest)
{
        struct ticks_clock clock = *newest;
        size_t left = 0, i = 0, last = 0;
        uint64_t last_ns = 0;
        while (i < count && records[i].probe)
                i++;
        if (i < count)
                clock = clock_of(&records[i]);
        /* The comparisons stay until all records are converted. */
        for (i = 0; i < count; i++) {
                struct trace_record *r = &records[i];
                if (!r->probe) {
                        clock = clock_of(r);
                        r->probe = (uint64_t)last << PROBE_BITS;
                        last = i + 1;
                        continue;
                }
                uint64_t begin = r->begin_ns, end = r->end_ns, end_ns = ticks_clock_at(&clock, end);
                last_ns = end_ns > last_ns ? end_ns : last_ns;
                r->end_ns = last_ns;
                r->begin_ns = last && begin < clock.base && begin < end
                                      ? convert_earlier(records, last, begin)
                                      : last_ns - ticks_clock_span(&clock, begin, end, last_ns);
                if (r->begin_ns > last_ns)
                        r->begin_ns = last_ns;
        }
        for (i = 0; i < count; i++)
                if (trace_probe_of(&records[i]))
                        records[left++] = records[i];
        return left;
}
