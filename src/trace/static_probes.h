/* Static probes of the operating system's tracers (USDT: sys/sdt.h), one for each of probes.def, where
 * the build has them. Their provider is `spancl`; their arguments are begin_ns, end_ns and the value.
 * For trace.c alone. */
#ifndef SPANCL_TRACE_STATIC_PROBES_H
#define SPANCL_TRACE_STATIC_PROBES_H

#include <stdint.h>

#include "trace/trace.h"

#ifdef SPANCL_HAVE_SDT

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* Tracers find semaphores in this section. */
#define SEMAPHORE __attribute__((used, section(".probes")))

/* All semaphores are one word, so that a probe in the code has one test for all consumers. */
#define PROBE(number, id, group, value, flow, recorder, doc)  \
        extern __attribute__((alias("trace_consumers"), used, \
                              visibility("hidden"))) _Atomic uint16_t spancl_##id##_semaphore;
#include "trace/probes.def"

/* Fire the probe. The nop in it is where a tracer attaches itself. */
static void static_probes_fire(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                               uint64_t value)
{
        switch (probe) {
#define PROBE(number, id, group, value_name, flow, recorder, doc) \
        case TRACE_##id:                                          \
                STAP_PROBE3(spancl, id, begin_ns, end_ns, value); \
                break;
#include "trace/probes.def"
        }
}

#else

#define SEMAPHORE

static void static_probes_fire(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                               uint64_t value)
{
        (void)probe, (void)begin_ns, (void)end_ns, (void)value;
}

#endif
#endif
