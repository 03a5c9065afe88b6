/* A kernel queue of events (kqueue(2)): a descriptor that can be polled. It is readable while an event is pending. A
 * child of fork() does not inherit it. */
#ifndef SPANCL_OS_MACOS_QUEUE_H
#define SPANCL_OS_MACOS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/event.h>

#include "base/status.h"

/* Make one with `count` events: `filter`'s, of these numbers. Each stays pending until it is taken. The caller closes
 * it. -1: errno gives the reason. */
SP_NODISCARD int queue_new(int16_t filter, const int *numbers, size_t count);

/* Take a pending event, without waiting. False: there is none. */
bool queue_take(int fd, struct kevent *ret);

#endif
