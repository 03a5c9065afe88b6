/* Kernel queries: questions about a kernel that the device answers for a given input. */
#ifndef SPANCL_ENGINE_QUERY_H
#define SPANCL_ENGINE_QUERY_H

#include "engine/program/program.h"

enum { QUERY_WAITING_MAX = 1024 }; /* queries that wait for one program; more fail */

int engine_handle_kernel_query(void *user, const struct wire_kernel_query *m) REQUIRES(engine_held);

/* The program is loaded: answer the queries that waited for it. */
void engine_query_resume(struct program *p) REQUIRES(engine_held);

#endif
