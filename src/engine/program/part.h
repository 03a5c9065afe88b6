/* The parts of a build. A part is the result of one domain's implementation, made from the
 * program's source or from the compile cache. */
#ifndef SPANCL_ENGINE_PART_H
#define SPANCL_ENGINE_PART_H

#include "engine/program/cached_build.h"

/* One part: the devices of one domain. */
struct part {
        unsigned domain;
        unsigned *devices;
        size_t device_count;
        bool whole;  /* all of the program's devices there */
        bool keyed;  /* `key` is its name in the compile cache */
        bool found;  /* the cache has it: `cached` */
        bool loaded; /* and it was made from that */
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
        bool is_link;            /* else a build or compile, as `in` says */
        struct build_input in;   /* a link uses only its options */
        struct program **inputs; /* of a link; held and shared */
        size_t input_count;
        size_t part_count;
        struct part *parts;
        cl_int status;
        struct buf info;
        uint64_t began_ns;
        /* The client was answered before the native programs were made (announce_early). */
        bool announced;
        bool overdue; /* the client was answered, since it takes too long */
};

void engine_part_fini(struct part *p);

/* Is `device` one of the part's? */
bool engine_part_has(const struct part *p, unsigned device);

/* Is the build's input here? */
bool engine_part_input(const struct build *b);

/* Look for the part in the cache: `found`. For this and the next functions the lock is not held; in
 * single-threaded engines it is held. */
void engine_part_find(struct build *b, struct part *p);

/* Make the part, from the cache or anew: its `status` and `info`. Several threads may each make
 * another part. */
void engine_part_run(struct build *b, struct part *p);

/* Merge the parts' status and info into the build's. */
void engine_part_merge(struct build *b);

#endif
