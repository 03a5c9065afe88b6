/* The compile cache maps a key, made from all of a build's input, to the build's result. It is a
 * folder that all sessions of a user share, with a copy in memory of the entries that this session
 * has used.
 *
 * Each entry is one file: a header with its key, size and checksum, then the value. Files appear
 * whole (rename) and never change, so processes need no locks between them. A damaged file is
 * removed when it is read. When the folder outgrows its limit, the least recently used files are
 * removed.
 *
 * Thread-safe. An entry is a hint: a caller that can't use it calls cache_drop and builds. */
#ifndef SPANCL_ENGINE_CACHE_H
#define SPANCL_ENGINE_CACHE_H

#include <stdbool.h>

#include "base/blake2b.h"

struct cache;

struct cache_key {
        uint8_t bytes[BLAKE2B_SIZE];
};

/* Open the cache. `folder` is made when the first entry is put into it; limit_bytes covers all
 * files together. SP_E_NOMEM. */
SP_NODISCARD int cache_new(const char *folder, uint64_t limit_bytes, struct cache **ret);
struct cache *cache_free(struct cache *c);

/* Append the value of `key`. SP_E_NOENT: there is none (any more); SP_E_NOMEM. */
SP_NODISCARD int cache_get(struct cache *c, const struct cache_key *key, struct buf *ret);

/* Change the limit. */
void cache_limit(struct cache *c, uint64_t limit_bytes);

/* Keep a value. On failure it is not kept, and the failure is logged. Return false if not all values found room. */
bool cache_put(struct cache *c, const struct cache_key *key, struct bytes value);

/* Remove an entry whose value was not usable. */
void cache_drop(struct cache *c, const struct cache_key *key);

#endif
