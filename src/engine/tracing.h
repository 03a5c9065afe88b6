/* Trace messages: send the client, for its timeline, what this process recorded (trace/trace.h).
 * `user` is the client's struct peer. */
#ifndef SPANCL_ENGINE_TRACING_H
#define SPANCL_ENGINE_TRACING_H

#include <stdbool.h>

#include "engine/lock.h"
#include "proto/wire.h"

int engine_handle_trace_start(void *user, const struct wire_trace_start *m);
int engine_handle_trace_query(void *user, const struct wire_trace_query *m) REQUIRES(engine_held);

/* An observer of the process comes, or goes: its probes are recorded while there is one, and once the client has asked
 * for it. Any thread. */
void engine_trace_watch(bool on);

#endif
