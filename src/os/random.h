/* The system's random numbers, good enough for keys. Any thread. */
#ifndef SPANCL_OS_RANDOM_H
#define SPANCL_OS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Fill `ret` with random bytes. False: there are none, and errno gives the reason. */
SP_NODISCARD bool random_fill(void *ret, size_t size);

#endif
