/* The table of the module libspancl-lttng.so (src/lttng), which needs LTTng's library (liblttng-ust).
 * Nothing links with it. */
#ifndef SPANCL_TRACE_LTTNG_MODULE_H
#define SPANCL_TRACE_LTTNG_MODULE_H

#include <stdint.h>

#include "trace/trace.h"

enum { LTTNG_MODULE_VERSION = 1 }; /* of this table and of probes.def's meaning */

struct lttng_module {
        unsigned version; /* LTTNG_MODULE_VERSION */
        /* Emit the probe's event of the provider spancl_client or spancl_server. Any thread. */
        void (*put_client)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                           uint64_t value);
        void (*put_server)(enum trace_probe probe, uint64_t begin_ns, uint64_t end_ns,
                           uint64_t value);
};

/* The symbol that the module exports. */
#define LTTNG_MODULE_SYMBOL "spancl_lttng"
extern const struct lttng_module spancl_lttng;

#endif
