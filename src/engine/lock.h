/* The lock of an engine, as clang's analysis sees it. */
#ifndef SPANCL_ENGINE_LOCK_H
#define SPANCL_ENGINE_LOCK_H

#include "os/lock.h"

/* The analysis does not know that all objects lead to the same engine, so this name stands for the
 * lock of each engine. There is no such object. REQUIRES(engine_held) marks a function that is called
 * with the lock held, which engine_lock takes. */
extern struct lock engine_held;

#endif
