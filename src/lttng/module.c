/* The module of LTTng's events (trace/lttng_module.h). */
#include "trace/lttng_module.h"

#include "lttng/providers.h"

__attribute__((visibility("default"))) const struct lttng_module spancl_lttng = {
        .version = LTTNG_MODULE_VERSION,
        .put_client = provider_put_client,
        .put_server = provider_put_server,
};
