/* What one session may have of its server: spancld's --session-* options. Guarded by the engine's lock. */
#ifndef SPANCL_ENGINE_LIMITS_H
#define SPANCL_ENGINE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum engine_limit {
        LIMIT_OBJECTS,   /* OpenCL objects: more can't be used */
        LIMIT_PROGRAMS,  /* of them: more can't be built */
        LIMIT_STORAGE,   /* bytes of buffers and images in all domains */
        LIMIT_TRANSFERS, /* bytes of transfers that are in this host's memory */
        LIMIT_BUILD_NS,  /* how long one build may take: then it has failed */
        LIMIT_RUN_NS, /* how long a device may be busy with one command: then the session is over */
        ENGINE_LIMITS,
};

/* 0: none but what the engine itself can hold (state.h). */
struct engine_limits {
        uint64_t max[ENGINE_LIMITS];
};

struct engine;
struct queue;

/* Would it have too much with `more` beside what it `has`? The first time the log says so. */
bool engine_limit_exceeded(struct engine *e, enum engine_limit which, uint64_t has, uint64_t more);

/* A native command of the queue was submitted, is complete. */
void engine_limit_begin(struct queue *q);
void engine_limit_end(struct queue *q);
void engine_limit_free(struct engine *e);

#endif
