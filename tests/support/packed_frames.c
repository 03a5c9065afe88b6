#include "support/packed_frames.h"

#include <stdlib.h>

enum { NUMBER = 4, PADDING = 60 };

/* Not with mem_alloc, which is made to fail. */
struct packed_frames_item {
        uint8_t *packed, *plain;
        size_t packed_size, size;
};

void packed_frames_fini(struct packed_frames *p)
{
        for (size_t i = 0; i < p->count; i++) {
                free(p->items[i].packed);
                free(p->items[i].plain);
        }
        free(p->items);
        *p = (struct packed_frames){ 0 };
}

static void *must_have(void *memory)
{
        if (!memory)
                abort();
        return memory;
}

bool packed_frames_pack(struct packed_frames *p, struct rng *rng, struct session *s, unsigned lane)
{
        size_t size = session_lane_fresh(s, lane);
        if (!size)
                return false;
        session_lane_small(s, lane, rng_chance(rng, 60));
        if (!session_lane_packable(s, lane) || rng_chance(rng, 30))
                return false;
        if (p->count == p->cap) {
                p->cap = p->cap ? 2 * p->cap : 16;
                p->items = must_have(realloc(p->items, p->cap * sizeof(*p->items)));
        }
        size_t most = size - 1 < NUMBER + PADDING ? size - 1 : NUMBER + PADDING;
        struct packed_frames_item *item = &p->items[p->count];
        *item = (struct packed_frames_item){ .size = size,
                                             .packed_size = rng_range(rng, NUMBER, most) };
        item->packed = must_have(calloc(1, item->packed_size));
        item->plain = must_have(malloc(size));
        bytes_put_u32(item->packed, (uint32_t)p->count++);
        session_lane_copy(s, lane, item->plain);
        session_lane_pack(s, lane, bytes_of(item->packed, item->packed_size));
        return true;
}

int packed_frames_unpack(struct packed_frames *p, struct session *s, unsigned lane, int r)
{
        struct session_packed_frame u;
        if (r < 0 || !lane || !session_lane_closed(s, lane, &u))
                return r;
        uint32_t i = u.packed.size >= NUMBER ? bytes_get_u32(u.packed.data) : UINT32_MAX;
        const struct packed_frames_item *item = i < p->count ? &p->items[i] : NULL;
        bool good = item && item->size == u.size && item->packed_size == u.packed.size;
        if (good)
                memcpy(u.to, item->plain, u.size);
        return session_lane_unpacked(s, lane, good);
}
