/* The events of a server: spancl_server:*. */
#define LTTNG_UST_TRACEPOINT_PROVIDER spancl_server
#define PROVIDER_PUT                  provider_put_server
#include "lttng/provider.def"
