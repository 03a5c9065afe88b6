/* SPANCL_TRACE: one timeline of the client and its servers, written when the program ends. SPANCL_LTTNG:
 * the client's events for LTTng, until then. */
#ifndef SPANCL_CORE_TRACING_H
#define SPANCL_CORE_TRACING_H

#include "core/client.h"

/* Record if a variable asks for it; on a server that has just been connected; and write it all. */
void tracing_start(void);
void tracing_server(struct server *s) REQUIRES(client_held);
void tracing_write(struct client *c) REQUIRES(client_held);
/* Write file `number` of the flight recorder, while recording goes on. */
void tracing_dump(struct client *c, const char *reason, unsigned number) REQUIRES(client_held);

enum { TRACING_RECORDS = 1 << 20 }; /* of one server */

/* Which of a server's records the timeline takes. */
struct tracing_bounds {
        uint64_t begin_ns, end_ns; /* of the client's clock */
        uint64_t dropped; /* counts records that the server has lost, and those beyond the bounds */
};

/* Put a server's answer to trace_query into the timeline. The server may be hostile: unknown probes and spans that end
 * before they begin are left out, and so are threads beyond TRACE_THREADS and records beyond the bounds. */
struct timeline;
void tracing_put_server(struct timeline *out, const struct server *s, struct bytes info,
                        struct tracing_bounds *b) REQUIRES(client_held);

#endif
