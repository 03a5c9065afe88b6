/* The compile cache: what builds made, by a key of everything they were made from. A folder that all
 * sessions of a user share, and in front of it the entries that this session has used.
 *
 * One file for each entry: a header with its key, size and checksum, then the value. Files appear whole
 * (rename) and are never changed, so processes need no locks among each other; one that is not whole is
 * removed when it is met. When the folder has grown past its bound, files used least recently go.
 *
 * Thread-safe. An entry is a hint: who can't use it calls cache_drop and builds. */
#ifndef SPANCL_ENGINE_CACHE_H
#define SPANCL_ENGINE_CACHE_H

#include "base/blake2b.h"

struct cache;

struct cache_key {
        uint8_t bytes[BLAKE2B_SIZE];
};

/* `folder` is made when something is put into it; limit_bytes is of all files together. SP_E_NOMEM. */
SP_NODISCARD int cache_new(const char *folder, uint64_t limit_bytes, struct cache **ret);
struct cache *cache_free(struct cache *c);

/* Append the value of `key`. SP_E_NOENT: there is none (any more); SP_E_NOMEM. */
SP_NODISCARD int cache_get(struct cache *c, const struct cache_key *key, struct buf *ret);

/* Keep a value. Failures are logged: it is not kept then. */
void cache_put(struct cache *c, const struct cache_key *key, struct bytes value);

/* Its value was not usable: remove it. */
void cache_drop(struct cache *c, const struct cache_key *key);

#endif
