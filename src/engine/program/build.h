/* The builder: program builds on threads of their own, while commands go on. */
#ifndef SPANCL_ENGINE_BUILD_H
#define SPANCL_ENGINE_BUILD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "proto/wire.h"

enum {
        BUILD_THREADS_MAX = 4,
        BUILD_CREW_MAX = 8,     /* threads of one build for several domains */
        BUILD_QUEUE_MAX = 4096, /* builds that wait; more fail with CL_OUT_OF_RESOURCES */
};

/* Guarded by the engine's lock. */
struct builder {
        pthread_t threads[BUILD_THREADS_MAX];
        unsigned thread_count, idle;
        pthread_cond_t wake; /* a job, or stop */
        struct list jobs;
        size_t job_count;
        struct list working; /* those that threads are at, the longest first; but not */
        unsigned overdue;    /* those of which nobody wants to know any more */
        struct list stores;  /* what is to be put into the cache */
        size_t store_count;
        pthread_cond_t unshared; /* a program is read by one less, or loaded */
        bool watched;            /* a thread waits for quiet, to store */
        bool stop;
};

struct engine;

/* See engine_deadline, engine_expire. Lock held. */
uint64_t engine_builder_deadline(struct engine *e);
void engine_builder_expire(struct engine *e, uint64_t now_ns);

void engine_builder_init(struct builder *b);
/* Wait for builds at work, forget the others; what is to be put into the cache is. Without the lock. */
void engine_builder_stop(struct engine *e);
void engine_builder_fini(struct builder *b);

int engine_handle_program_link(void *user, const struct wire_program_link *m);
int engine_handle_program_build(void *user, const struct wire_program_build *m);

#endif
