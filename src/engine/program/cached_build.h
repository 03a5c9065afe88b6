/* Builds, compiles and links in the compile cache: their keys and values. A value has the native
 * binaries and everything that the client is sent, which is logs and kernels. */
#ifndef SPANCL_ENGINE_CACHED_BUILD_H
#define SPANCL_ENGINE_CACHED_BUILD_H

#include "engine/program/cache.h"
#include "engine/program/program.h"

/* The input of a build, beside the program's source. */
struct build_input {
        char *options; /* as the client sent them */
        struct buf constants;
        uint8_t digest[BLAKE2B_SIZE]; /* of the headers */
        struct content *headers;      /* held; NULL: they are not here */
        bool embedded;                /* some headers are not files of the client */
        bool compile;                 /* a compile, not a build */
};

SP_NODISCARD int build_input_copy(const struct build_input *from, struct build_input *ret);
void build_input_fini(struct build_input *in);

/* Make the keys of the backend's devices, which takes some milliseconds. Called at the start,
 * before anything waits, or when a key is first needed. SP_E_NOMEM. */
SP_NODISCARD int cached_build_prepare(struct engine *e) REQUIRES(engine_held);

/* Make the key of a build or compile for all devices that the program has in a domain. False: it
 * must not be cached. */
bool cached_build_key(struct program *p, const struct build_input *in, const unsigned *devices,
                      size_t device_count, struct cache_key *ret) REQUIRES(engine_held);

/* Make the key of a link. False: it must not be cached, for instance because the origin of an input
 * is not known. */
bool cached_build_link_key(struct engine *e, struct program *const *inputs, size_t input_count,
                           const char *options, unsigned domain, const unsigned *devices,
                           size_t device_count, struct cache_key *ret) REQUIRES(engine_held);

/* A build's value in the cache; the other fields are views of `value`. */
struct cached_build {
        struct buf value;
        struct bytes binaries, info;
        cl_program_binary_type type;
};

/* Find the build in the cache. False: it is not there, or was not usable. Lock not held. */
bool cached_build_find(struct engine *e, const struct cache_key *key, const unsigned *devices,
                       size_t device_count, struct cached_build *ret);
void cached_build_fini(struct cached_build *s);

/* Make the cached program again, for the caller to own. NULL: the entry was not usable, and is
 * removed. Lock not held. */
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

/* Put the build into the cache. Lock not held. */
void cached_build_store(struct engine *e, const struct cache_key *key,
                        struct backend_program *native, const unsigned *devices,
                        size_t device_count, struct bytes info);

#endif
