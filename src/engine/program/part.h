/* The parts of a build: what one domain's implementation makes of the program, from its source or from what the
 * compile cache has. */
#ifndef SPANCL_ENGINE_PART_H
#define SPANCL_ENGINE_PART_H

#include "engine/program/cached_build.h"

/* The devices of one domain. */
struct part {
        unsigned domain;
        unsigned *devices;
        size_t device_count;
        bool whole;  /* all that the program has there */
        bool keyed;  /* `key` is its name in the compile cache */
        bool found;  /* there it was: `cached` */
        bool loaded; /* and of that it was made */
        struct cache_key key;
        struct cached_build cached;
        cl_int status;
        struct buf info;
};

struct build {
        struct list link;
        struct engine *engine;
        struct program *program; /* held */
        uint64_t request;
        bool is_link;            /* else what `in` says */
        struct build_input in;   /* of a link its options only */
        struct program **inputs; /* of a link; held and shared */
        size_t input_count;
        size_t part_count;
        struct part *parts;
        cl_int status;
        struct buf info;
        uint64_t began_ns;
        bool told;    /* it was answered, before the native programs were made (tell_early) */
        bool overdue; /* it was answered, since it takes too long */
};

void engine_part_fini(struct part *p);

/* Is `device` one of the part's? */
bool engine_part_has(const struct part *p, unsigned device);

/* Is what the build is made from here? */
bool engine_part_input(const struct build *b);

/* Look for the part in the cache: `found`. Without the lock, or in single-threaded engines with it; so are these: */
void engine_part_find(struct build *b, struct part *p);

/* Make it, of what was found or anew: its `status` and `info`. Several threads may, each another part. */
void engine_part_run(struct build *b, struct part *p);

/* The build's status and info from those of its parts. */
void engine_part_merge(struct build *b);

#endif
