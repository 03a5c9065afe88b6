/* The limits of one session on its server: spancld's --session-* options. Guarded by the engine's
 * lock. */
#ifndef SPANCL_ENGINE_LIMITS_H
#define SPANCL_ENGINE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/options.h"
#include "engine/lock.h"

enum engine_limit {
        LIMIT_OBJECTS,   /* OpenCL objects: more can't be used */
        LIMIT_PROGRAMS,  /* of them: more can't be built */
        LIMIT_STORAGE,   /* bytes of buffers and images in all domains */
        LIMIT_TRANSFERS, /* bytes of transfers that are in this host's memory */
        LIMIT_BUILD_NS,  /* how long one build may take: then it has failed */
        /* How long a device may be busy with one command; after that the session is over. */
        LIMIT_RUN_NS,
        ENGINE_LIMITS,
};

/* 0: no limit except the engine's own (state.h). */
struct engine_limits {
        uint64_t max[ENGINE_LIMITS];
};

/* The limits that --session-* options set. */
struct engine_limits engine_limits_of(const struct config_options *o);

struct engine;
struct queue;

/* Would the session exceed the limit with `more` beside what it `has`? Logs the first time. */
bool engine_limit_exceeded(struct engine *e, enum engine_limit which, uint64_t has, uint64_t more)
        REQUIRES(engine_held);

/* A native command of the queue was submitted; or is complete. */
void engine_limit_begin(struct queue *q) REQUIRES(engine_held);
void engine_limit_end(struct queue *q);
void engine_limit_free(struct engine *e);

#endif
