/* Signals that a program waits for by a descriptor, and signals that end or stop it. */
#ifndef SPANCL_OS_SIGNALS_H
#define SPANCL_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Block these signals, and return a descriptor that is readable while one is pending; the caller closes it. The
 * process's threads and programs that start later inherit the block. -1: errno gives the reason. */
SP_NODISCARD int signals_watch(const int *numbers, size_t count);

/* Take a pending signal. Returns its number; 0: none. */
int signals_next(int fd);

/* Have `handler` called once at a signal of a fault in the program (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP,
 * SIGSYS). It may raise the signal again, which then ends the program. */
void signals_catch_faults(void (*handler)(int number));

/* Have `handler` called at a signal that the process neither handles nor ignores. False: it does. */
bool signals_catch_free(int number, void (*handler)(int number));

/* Take that back, unless another handler has replaced it. */
void signals_release(int number, void (*handler)(int number));

/* Stop this process until SIGCONT. */
void signals_stop(void);

/* End this process by a signal, also one that it blocks or handles. */
_Noreturn void signals_die(int number);

/* End this process in `seconds`, with status 1 and `text` on standard error, whatever it does then: for calls of
 * libraries that may never return. 0: take that back. `text` has to stay. */
void signals_limit(unsigned seconds, const char *text);

/* Have writes to a pipe or socket that nobody reads fail, instead of SIGPIPE's end of the process. */
void signals_ignore_pipe(void);

#endif
