/* Questions about a kernel that the device answers for an input. */
#ifndef SPANCL_ENGINE_QUERY_H
#define SPANCL_ENGINE_QUERY_H

#include "proto/wire.h"

int engine_handle_kernel_query(void *user, const struct wire_kernel_query *m);

#endif
