/* A set of descriptors to wait for (epoll(7)). It is a descriptor itself, which can be polled; file_close() closes it.
 * Closing a descriptor takes it out, unless another process has it, too. */
#ifndef SPANCL_OS_EVENT_SET_H
#define SPANCL_OS_EVENT_SET_H

#include <stdbool.h>

#include "base/status.h"

enum { EVENT_IN = 1, EVENT_OUT = 2, EVENT_END = 4 }; /* bytes, room, the other side sends no more */

/* Make one. -1: errno gives the reason. */
SP_NODISCARD int event_set_new(void);

/* Wait for these events of `fd`, too; errors are reported always. `source` is returned with them. */
SP_NODISCARD bool event_set_add(int set, int fd, unsigned events, void *source);

/* Change the events of `fd`. */
SP_NODISCARD bool event_set_change(int set, int fd, unsigned events, void *source);

/* Take it out, if it is in. */
void event_set_remove(int set, int fd);

enum { EVENT_SET_MAX = 64 };

/* Wait for at most this time; -1: without a limit. Returns the number of sources with events, at most EVENT_SET_MAX;
 * 0: none, or a signal came. */
int event_set_wait(int set, int timeout_ms, void *ret[EVENT_SET_MAX]);

#endif
