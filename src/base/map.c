#include "base/map.h"

#include "base/mem.h"

static size_t home(const struct map *m, uint64_t key)
{
        return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (m->cap - 1);
}

/* The slot that holds `key`, or the empty one where it belongs. */
static size_t find(const struct map *m, uint64_t key)
{
        size_t i = home(m, key);
        while (m->slots[i].key && m->slots[i].key != key)
                i = (i + 1) & (m->cap - 1);
        return i;
}

void *map_get(const struct map *m, uint64_t key)
{
        return m->cap ? m->slots[find(m, key)].value : NULL;
}

static int grow(struct map *m)
{
        struct map bigger = { .cap = m->cap ? m->cap * 2 : 64, .count = m->count };
        bigger.slots = mem_zalloc(bigger.cap * sizeof(*bigger.slots));
        if (!bigger.slots)
                return SP_E_NOMEM;
        for (size_t i = 0; i < m->cap; i++)
                if (m->slots[i].key)
                        bigger.slots[find(&bigger, m->slots[i].key)] = m->slots[i];
        mem_free(m->slots);
        *m = bigger;
        return 0;
}

int map_put(struct map *m, uint64_t key, void *value)
{
        if ((m->count + 1) * 4 > m->cap * 3) {
                int r = grow(m);
                if (r < 0)
                        return r;
        }
        struct map_slot *s = &m->slots[find(m, key)];
        m->count += !s->key;
        *s = (struct map_slot){ key, value };
        return 0;
}

void *map_del(struct map *m, uint64_t key)
{
        if (!m->cap)
                return NULL;
        size_t hole = find(m, key);
        void *value = m->slots[hole].value;
        if (!m->slots[hole].key)
                return NULL;
        m->count--;
        size_t mask = m->cap - 1;
        for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
                /* Move entries back that the hole would cut off from their home slot. */
                if (((i - home(m, m->slots[i].key)) & mask) >= ((i - hole) & mask)) {
                        m->slots[hole] = m->slots[i];
                        hole = i;
                }
        }
        m->slots[hole] = (struct map_slot){ 0 };
        return value;
}

void *map_next(const struct map *m, size_t *pos)
{
        while (*pos < m->cap) {
                const struct map_slot *s = &m->slots[(*pos)++];
                if (s->key)
                        return s->value;
        }
        return NULL;
}

void *map_walk_next(const struct map *m, struct map_walk *w)
{
        void *value = map_next(m, &w->pos);
        if (value || !w->changed)
                return value;
        *w = (struct map_walk){ 0 };
        return map_next(m, &w->pos);
}

void map_fini(struct map *m)
{
        mem_free(m->slots);
        *m = (struct map){ 0 };
}
