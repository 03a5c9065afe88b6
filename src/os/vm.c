#include "os/vm.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Without MAP_FIXED the address is a hint, and existing mappings stay. */
static int map(uint64_t at, size_t size, uint64_t *ret)
{
        void *p = mmap((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
                return errno == ENOMEM ? SP_E_NOMEM : SP_E_BUSY;
        *ret = (uint64_t)(uintptr_t)p;
        return 0;
}

static int map_anywhere(size_t size, uint64_t *ret)
{
        uint64_t at, all = (uint64_t)size + VM_GRANULE;
        int r = map(0, (size_t)all, &at);
        if (r < 0)
                return r;
        /* The kernel's pages may be smaller. */
        uint64_t begin = (at + VM_GRANULE - 1) / VM_GRANULE * VM_GRANULE;
        if (begin > at)
                vm_unmap(at, (size_t)(begin - at));
        vm_unmap(begin + size, (size_t)(at + all - begin - size));
        *ret = begin;
        return 0;
}

uint64_t vm_page_size(void)
{
        return (uint64_t)sysconf(_SC_PAGESIZE);
}

int vm_map(uint64_t at, size_t size, uint64_t *ret)
{
        uint64_t got;
        if (!size || size % VM_GRANULE || at % VM_GRANULE || size > SIZE_MAX - VM_GRANULE)
                return SP_E_BUSY;
        if (at > UINTPTR_MAX - size)
                return SP_E_BUSY;
        if (!at)
                return map_anywhere(size, ret);
        int r = map(at, size, &got);
        if (r < 0)
                return r;
        if (got != at) {
                vm_unmap(got, size);
                return SP_E_BUSY;
        }
        *ret = got;
        return 0;
}

int vm_map_file(int fd, uint64_t offset, size_t size, uint64_t *ret)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                       (off_t)offset);
        if (p == MAP_FAILED)
                return SP_E_NOMEM;
        *ret = (uint64_t)(uintptr_t)p;
        return 0;
}

int vm_allow(uint64_t at, size_t size, enum vm_access access)
{
        static const int bits[] = {
                [VM_NONE] = PROT_NONE, [VM_READ] = PROT_READ, [VM_WRITE] = PROT_READ | PROT_WRITE
        };
        return mprotect((void *)(uintptr_t)at, size, bits[access]) < 0 ? SP_E_NOMEM : 0;
}

void vm_unmap(uint64_t at, size_t size)
{
        if (size)
                (void)munmap((void *)(uintptr_t)at, size);
}
