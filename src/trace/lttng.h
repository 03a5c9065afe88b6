/* LTTng's events of this process: each probe is an event of the provider spancl_client or
 * spancl_server. They need the module libspancl-lttng.so, which brings LTTng's library and two
 * threads of that into the process. So it is loaded only if the user asks for it. */
#ifndef SPANCL_TRACE_LTTNG_H
#define SPANCL_TRACE_LTTNG_H

#include <stdbool.h>

/* Load the module and emit events until trace_stop. The events are known to LTTng when this returns,
 * and those that a session has enabled are recorded. False: the log says why it can't be. Call it
 * once, before other threads need the process. */
bool lttng_start(bool server);

#endif
