/* Threads of ours, which take no signals: those are the program's business. */
#ifndef SPANCL_LOOP_THREAD_H
#define SPANCL_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

/* `ret` may be NULL for one that is detached. SP_E_LIMIT. */
SP_NODISCARD int thread_start(pthread_t *ret, bool detached, void *(*fn)(void *arg), void *arg);

#endif
