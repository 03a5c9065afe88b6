/* SPANCL_TRACE: one timeline of the client and its servers, written when the program ends. SPANCL_LTTNG:
 * the client's events for LTTng, until then. */
#ifndef SPANCL_CORE_TRACING_H
#define SPANCL_CORE_TRACING_H

#include "core/client.h"

/* Record if a variable asks for it; on a server that has just been connected; and write it all. `knows_recorder`: it
 * takes TRACE_START_RECORDER. */
void tracing_start(void);
void tracing_server(struct server *s, bool knows_recorder) REQUIRES(client_held);
void tracing_write(struct client *c) REQUIRES(client_held);
/* Write file `number` of the flight recorder, while recording goes on. */
void tracing_dump(struct client *c, const char *reason, unsigned number) REQUIRES(client_held);

#endif
