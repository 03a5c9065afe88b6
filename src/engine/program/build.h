/* The builder runs program builds on its own threads, while commands go on. */
#ifndef SPANCL_ENGINE_BUILD_H
#define SPANCL_ENGINE_BUILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "engine/lock.h"
#include "os/condition.h"
#include "os/thread.h"
#include "proto/wire.h"

enum {
        BUILD_THREADS_MAX = 4,
        BUILD_CREW_MAX = 8,     /* threads of one build for several domains */
        BUILD_QUEUE_MAX = 4096, /* waiting builds; further ones fail with CL_OUT_OF_RESOURCES */
};

/* Guarded by the engine's lock. */
struct builder {
        thread_id threads[BUILD_THREADS_MAX];
        unsigned thread_count, idle;
        struct condition wake; /* a job, or stop */
        struct list jobs;
        size_t job_count;
        /* Builds that threads work on, the longest first, without the overdue ones. */
        struct list working;
        /* Builds at work whose result nobody needs any more. */
        unsigned overdue;
        /* Built binaries that wait to be put into the cache. */
        struct list stores;
        size_t store_count;
        /* A program has one reader less, or is loaded. */
        struct condition unshared;
        /* A build of this session has ended, so another one may begin (--client-builds). */
        struct condition turn;
        uint64_t turn_ns; /* the session begins no build before that time of clock_now_ns */
        /* A thread waits for a quiet time, to store. */
        bool watched;
        bool stop;
};

struct engine;

/* See engine_deadline, engine_expire. */
uint64_t engine_builder_deadline(struct engine *e) REQUIRES(engine_held);
void engine_builder_expire(struct engine *e, uint64_t now_ns) REQUIRES(engine_held);

void engine_builder_init(struct builder *b);
/* Wait for the builds at work, drop the waiting ones, and put what waits for it into the cache. */
void engine_builder_stop(struct engine *e) EXCLUDES(engine_held);
void engine_builder_fini(struct builder *b);

int engine_handle_program_link(void *user, const struct wire_program_link *m) REQUIRES(engine_held);
int engine_handle_program_build(void *user, const struct wire_program_build *m)
        REQUIRES(engine_held);

#endif
