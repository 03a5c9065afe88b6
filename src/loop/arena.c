#include "loop/arena.h"

#include "os/vm.h"
#include "transport/shm.h"

int arena_storage(const struct conn *c, uint64_t *ret_size)
{
        uint64_t size = 0;
        int fd = conn_arena(c, &size);
        if (fd < 0 || size <= ARENA_BOUNCE)
                return -1;
        *ret_size = size - ARENA_BOUNCE;
        return fd;
}

void arena_map_bounce(const struct conn *c, struct arena_bounce *ret)
{
        uint64_t offset, address;
        int fd = arena_storage(c, &offset);
        if (fd < 0 || vm_map_file(fd, offset, ARENA_BOUNCE, &address) < 0)
                return; /* everything goes through rings */
        ret->base = (void *)(uintptr_t)address;
        ret->size = ARENA_BOUNCE;
        /* A child of this process has no part in it. */
        vm_keep_from_children(address, ARENA_BOUNCE);
}

void arena_use_bounce(const struct arena_bounce *s, unsigned lane, struct conn *c)
{
        if (s->base && lane == ARENA_LANE)
                conn_bounce(c, s->base, s->size);
}

void arena_unmap_bounce(struct arena_bounce *s)
{
        if (s->base)
                vm_unmap((uint64_t)(uintptr_t)s->base, s->size);
        *s = (struct arena_bounce){ 0 };
}
