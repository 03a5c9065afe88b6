/* Threads of SpanCL's own. They take no signals, because signals are the program's business. */
#ifndef SPANCL_LOOP_THREAD_H
#define SPANCL_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

/* Start a thread. `ret` may be NULL for a detached one. SP_E_LIMIT. */
SP_NODISCARD int thread_start(pthread_t *ret, bool detached, void *(*fn)(void *arg), void *arg);

#endif
