/* The events of a client: spancl_client:*. */
#define LTTNG_UST_TRACEPOINT_PROVIDER spancl_client
#define PROVIDER_PUT                  provider_put_client
#include "lttng/provider.def"
