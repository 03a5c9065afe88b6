/* The two providers: functions that emit a probe's event. Any thread. */
#ifndef SPANCL_LTTNG_PROVIDERS_H
#define SPANCL_LTTNG_PROVIDERS_H

#include <stdint.h>

#include "trace/trace.h"

void provider_put_client(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                         uint64_t value);
void provider_put_server(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                         uint64_t value);

#endif
