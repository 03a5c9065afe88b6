/* A writer of Perfetto's trace files (perfetto.dev, "TracePacket"): tracks, and events on them. Names are interned: a
 * packet contains those that no packet before it had. When the table of names is full, it begins anew, so memory is
 * bounded. One owner. Errors of the file are the stream's. */
#ifndef SPANCL_CLI_TRACE_PACKETS_H
#define SPANCL_CLI_TRACE_PACKETS_H

#include <stdio.h>

#include "base/protobuf_writer.h"
#include "cli/trace/event.h"

struct packets;

/* SP_E_NOMEM. */
SP_NODISCARD int packets_new(FILE *to, struct packets **ret);
void packets_free(struct packets *p);

/* Tracks have numbers that are not 0. `parent` 0: none. */
void packets_process(struct packets *p, uint64_t track, uint32_t process, const char *name);
void packets_track(struct packets *p, uint64_t track, uint64_t parent, const char *name);
void packets_counter_track(struct packets *p, uint64_t track, uint64_t parent, const char *name);

enum packets_type { PACKETS_BEGIN = 1, PACKETS_END, PACKETS_INSTANT, PACKETS_COUNTER };

/* A point of an arrow. */
struct packets_flow {
        uint64_t id;
        bool ends;
};

enum { PACKETS_FLOWS = 16 }; /* of an event at most */

/* `e`: its name, category and arguments; not used at the end of a slice. */
void packets_event(struct packets *p, enum packets_type type, uint64_t track, uint64_t ns,
                   const struct trace_event *e, const struct packets_flow *flows, size_t count);
void packets_count(struct packets *p, uint64_t track, uint64_t ns, double value);

#endif
