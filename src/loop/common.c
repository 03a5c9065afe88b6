#include "loop/common.h"

#include <sys/mman.h>

#include "base/vm.h"

int common_storage(const struct conn *c, uint64_t *ret_size)
{
        uint64_t size = 0;
        int fd = conn_common(c, &size);
        if (fd < 0 || size <= COMMON_STAGE)
                return -1;
        *ret_size = size - COMMON_STAGE;
        return fd;
}

void common_map_stage(const struct conn *c, struct common_stage *ret)
{
        uint64_t offset, address;
        int fd = common_storage(c, &offset);
        if (fd < 0 || vm_map_file(fd, offset, COMMON_STAGE, &address) < 0)
                return; /* everything goes through rings */
        ret->base = (void *)(uintptr_t)address;
        ret->size = COMMON_STAGE;
        /* A child of this process has no part in it. */
        (void)madvise(ret->base, ret->size, MADV_DONTFORK);
}

void common_use_stage(const struct common_stage *s, unsigned lane, struct conn *c)
{
        if (s->base && lane == COMMON_LANE)
                conn_stage(c, s->base, s->size);
}

void common_unmap_stage(struct common_stage *s)
{
        if (s->base)
                vm_unmap((uint64_t)(uintptr_t)s->base, s->size);
        *s = (struct common_stage){ 0 };
}
