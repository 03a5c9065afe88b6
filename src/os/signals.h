/* Signals that a program waits for by a descriptor. */
#ifndef SPANCL_OS_SIGNALS_H
#define SPANCL_OS_SIGNALS_H

#include <signal.h>
#include <stddef.h>

#include "base/status.h"

/* Block these signals, and return a descriptor that is readable while one is pending; the caller closes it. The
 * process's threads and programs that start later inherit the block. -1: errno gives the reason. */
SP_NODISCARD int signals_watch(const int *numbers, size_t count);

/* Take a pending signal. Returns its number; 0: none. */
int signals_next(int fd);

/* Have writes to a pipe or socket that nobody reads fail, instead of SIGPIPE's end of the process. */
void signals_ignore_pipe(void);

#endif
