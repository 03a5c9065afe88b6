/* Parts of os/vm.h for systems without their counterpart: they do not map memory twice, do not tell which pages are
 * used, and take no hints. */
#include "os/vm.h"

#include <errno.h>

bool vm_can_map_twice(void)
{
        return false;
}

int vm_map_twice(uint64_t at, size_t size, uint64_t *ret, uint64_t *ret_other, int *ret_fd)
{
        (void)at, (void)size, (void)ret, (void)ret_other, (void)ret_fd;
        errno = ENOSYS;
        return SP_E_LIMIT;
}

int vm_empty_file(int fd, uint64_t offset, size_t size)
{
        (void)fd, (void)offset, (void)size;
        return SP_E_UNSUPP;
}

void vm_keep_from_children(uint64_t at, size_t size)
{
        (void)at, (void)size;
}

void vm_prefer_large_pages(void *at, size_t size)
{
        (void)at, (void)size;
}

void vm_populate(uint64_t at, size_t size)
{
        (void)at, (void)size;
}

bool vm_next_data(int fd, uint64_t from, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
        (void)fd;
        if (from >= end)
                return false;
        *ret_begin = from;
        *ret_end = end;
        return true;
}

bool vm_touched(uint64_t at, size_t size)
{
        (void)at, (void)size;
        return true;
}

void vm_untouch(uint64_t at, size_t size)
{
        (void)at, (void)size;
}
