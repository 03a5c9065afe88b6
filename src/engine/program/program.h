/* Programs: a native one for each domain. */
#ifndef SPANCL_ENGINE_PROGRAM_H
#define SPANCL_ENGINE_PROGRAM_H

#include "engine/object.h"
#include "engine/program/cache.h"
#include "engine/program/content.h"

/* Kinds of program_create, and what program_link makes. */
enum program_kind_number {
        PROGRAM_KIND_SOURCE,
        PROGRAM_KIND_BINARY,
        PROGRAM_KIND_IL,
        PROGRAM_KIND_BUILT_IN,
        PROGRAM_KIND_LINKED,
};

struct build_input;

struct program_replica {
        unsigned domain;
        struct backend_program *native; /* made when first needed */
        /* The input of the build, for all devices of the domain, whose result came from the compile
         * cache; NULL: it did not come from there. */
        struct build_input *cached;
        /* The key in the compile cache of its build, compile or link, if `named`. */
        struct cache_key name;
        bool named;
        /* The binaries that it was made of, if it is not built, or has to be made of
         * (cached_build_binaries). */
        struct buf binaries;
};

struct program {
        struct object object;
        unsigned kind;
        unsigned *devices; /* it may be built for these */
        size_t device_count;
        uint8_t digest[BLAKE2B_SIZE]; /* of its parts */
        struct content *parts;        /* held; NULL: they are not here */
        bool building;                /* the client waits for a build */
        /* The client does not wait any more, but launches and kernel queries do. */
        bool loading;
        bool busy;             /* a builder's thread uses the native programs */
        struct list questions; /* waiting kernel queries (engine/query.h) */
        size_t question_count;
        /* Other readers of the native programs: links with it as input, the cache. */
        unsigned shared;
        struct program_replica *replicas; /* one for each domain of its devices */
        size_t replica_count;
};

struct program *engine_program_find(struct engine *e, uint64_t id);

/* Make a program of `kind` for some devices of the engine, in the table; without parts. SP_E_PROTO,
 * SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int engine_program_new(struct engine *e, uint64_t id, unsigned kind,
                                    struct wire_u64s devices, struct program **ret)
        REQUIRES(engine_held);

/* Give the content that a message names or holds, for the caller to unref. NULL: the message names
 * it, and it is not here. SP_E_PROTO: it does both; SP_E_NOMEM. */
SP_NODISCARD int engine_content_take(struct engine *e, struct bytes data, struct bytes digest,
                                     uint8_t ret_digest[BLAKE2B_SIZE], struct content **ret);

/* Are the program's parts here now? */
bool engine_program_complete(struct program *p);

/* Its replica in a domain; NULL: none of its devices is there. */
struct program_replica *engine_program_replica(struct program *p, unsigned domain);

/* Replace the native program in a domain by `native`, which may be NULL. Takes both arguments over. */
void engine_program_replace(struct program *p, unsigned domain, struct backend_program *native,
                            struct build_input *cached);

/* The program in a domain. */
SP_NODISCARD cl_int engine_program_native(struct program *p, unsigned domain,
                                          struct backend_program **ret);

/* Is `device` one of its devices? */
bool engine_program_has(const struct program *p, uint64_t device);

int engine_handle_content(void *user, const struct wire_content *m);
int engine_handle_program_create(void *user, const struct wire_program_create *m)
        REQUIRES(engine_held);
int engine_handle_program_inspect(void *user, const struct wire_program_inspect *m)
        REQUIRES(engine_held);
int engine_handle_program_binaries_query(void *user, const struct wire_program_binaries_query *m)
        REQUIRES(engine_held);

#endif
