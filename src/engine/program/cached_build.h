/* Builds, compiles and links in the compile cache: what names one, and what is kept of it (the native
 * binaries, and all that the client is told: logs and kernels). */
#ifndef SPANCL_ENGINE_CACHED_BUILD_H
#define SPANCL_ENGINE_CACHED_BUILD_H

#include "engine/program/cache.h"
#include "engine/program/program.h"

/* What a build is made from, beside the program's source. */
struct build_input {
        char *options; /* as the client sent them */
        struct buf constants;
        uint8_t digest[BLAKE2B_SIZE]; /* of the headers */
        struct content *headers;      /* held; NULL: they are not here */
        bool embedded;                /* some headers are no files of the client */
        bool compile;                 /* it is no build, but a compile */
};

SP_NODISCARD int build_input_copy(const struct build_input *from, struct build_input *ret);
void build_input_fini(struct build_input *in);

/* Make the keys of the devices that stay, which takes the backend some milliseconds: at the start, when
 * nobody waits yet, or when one is first needed. Lock held, or nobody else has the engine. SP_E_NOMEM. */
SP_NODISCARD int cached_build_prepare(struct engine *e);

/* Name a build or compile for all devices that the program has in a domain. False: it is not to be kept.
 * Lock held. */
bool cached_build_key(struct program *p, const struct build_input *in, const unsigned *devices,
                      size_t device_count, struct cache_key *ret);

/* Name a link. False: it is not to be kept, for instance because it is not known what an input was made
 * of. Lock held. */
bool cached_build_link_key(struct engine *e, struct program *const *inputs, size_t input_count,
                           const char *options, unsigned domain, const unsigned *devices,
                           size_t device_count, struct cache_key *ret);

/* What the cache has of a build: views of `value`. */
struct cached_build {
        struct buf value;
        struct bytes binaries, info;
        cl_program_binary_type type;
};

/* Look for it. False: it is not there, or was not usable. Lock not held. */
bool cached_build_find(struct engine *e, const struct cache_key *key, const unsigned *devices,
                       size_t device_count, struct cached_build *ret);
void cached_build_fini(struct cached_build *s);

/* Make a program that is what it was, for the caller to own. NULL: it was not usable, and is removed. Lock not
 * held. */
struct backend_program *cached_build_load(struct engine *e, const struct cache_key *key,
                                          const struct cached_build *s, unsigned domain,
                                          const unsigned *devices, size_t device_count,
                                          const char *options);

/* Append the binaries with their devices, for cached_build_binary. SP_E_NOMEM. */
SP_NODISCARD int cached_build_binaries(const struct cached_build *s, const unsigned *devices,
                                       size_t device_count, struct buf *out);

/* Append one INFO_PART with the binary for `device` from what cached_build_binaries made. */
SP_NODISCARD cl_int cached_build_binary(const struct buf *binaries, unsigned device,
                                        struct buf *out);

/* Put it into the cache. Lock not held. */
void cached_build_store(struct engine *e, const struct cache_key *key,
                        struct backend_program *native, const unsigned *devices,
                        size_t device_count, struct bytes info);

#endif
