/* Hash map from non-zero 64-bit keys to pointers: open addressing, linear probing, deletion by
 * shifting back. Zeroed memory is a valid, empty map. No locks: one owner. */
#ifndef SPANCL_BASE_MAP_H
#define SPANCL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct map_slot {
        uint64_t key; /* 0: empty */
        void *value;
};

struct map {
        struct map_slot *slots;
        size_t count;
        size_t cap; /* power of two, or 0 */
};

/* NULL when absent. */
void *map_get(const struct map *m, uint64_t key);

/* Insert or replace. SP_E_NOMEM: nothing changed. */
SP_NODISCARD int map_put(struct map *m, uint64_t key, void *value);

/* Remove and return the value; NULL when absent. */
void *map_del(struct map *m, uint64_t key);

/* Iterate: any entry's value at or after position *pos (start with 0), NULL at the end. The map
 * must not change between calls. */
void *map_next(const struct map *m, size_t *pos);

/* An iteration during which entries may be removed. Zeroed: at the beginning. */
struct map_walk {
        size_t pos;
        bool changed; /* since the beginning: moved entries may not have been seen */
};

/* Return any entry's value; NULL when all entries were seen since the last change of the map. An
 * entry may be seen several times. */
void *map_walk_next(const struct map *m, struct map_walk *w);

/* Report a change: the entry just seen was removed, and perhaps others were removed or added. */
static inline void map_walk_changed(struct map_walk *w)
{
        w->changed = true;
        w->pos--; /* another entry may be in its place */
}

void map_fini(struct map *m);

#endif
