#include "os/vm.h"

#include <errno.h>

#include <windows.h>

uint64_t vm_page_size(void)
{
        SYSTEM_INFO info;
        GetSystemInfo(&info);
        return info.dwPageSize;
}

int vm_map(uint64_t at, size_t size, uint64_t *ret)
{
        if (!size || size % VM_GRANULE || at % VM_GRANULE || size > SIZE_MAX - VM_GRANULE ||
            at > UINTPTR_MAX - size)
                return SP_E_BUSY;
        void *p =
                VirtualAlloc((void *)(uintptr_t)at, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (!p)
                return at && GetLastError() == ERROR_INVALID_ADDRESS ? SP_E_BUSY : SP_E_NOMEM;
        *ret = (uint64_t)(uintptr_t)p;
        return 0;
}

int vm_allow(uint64_t at, size_t size, enum vm_access access)
{
        static const DWORD protection[] = { PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE };
        DWORD before;
        return VirtualProtect((void *)(uintptr_t)at, size, protection[access], &before)
                       ? 0
                       : SP_E_NOMEM;
}

/* The system frees only whole mappings. Callers unmap no parts. */
void vm_unmap(uint64_t at, size_t size)
{
        (void)size;
        (void)VirtualFree((void *)(uintptr_t)at, 0, MEM_RELEASE);
}

/* ---- mappings of files, and hints ------------------------------------------------------------ */

int vm_map_file(int fd, uint64_t offset, size_t size, uint64_t *ret)
{
        (void)fd, (void)offset, (void)size, (void)ret;
        return SP_E_NOMEM;
}

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
