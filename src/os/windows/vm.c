#include "os/vm.h"

#include <io.h>

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
        if (!UnmapViewOfFile((void *)(uintptr_t)at))
                (void)VirtualFree((void *)(uintptr_t)at, 0, MEM_RELEASE);
}

int vm_map_file(int fd, uint64_t offset, size_t size, uint64_t *ret)
{
        HANDLE mapping =
                CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL, PAGE_READWRITE, 0, 0, NULL);
        if (!mapping)
                return SP_E_NOMEM;
        void *p =
                MapViewOfFile(mapping, FILE_MAP_WRITE, (DWORD)(offset >> 32), (DWORD)offset, size);
        CloseHandle(mapping); /* the view keeps it */
        if (!p)
                return SP_E_NOMEM;
        *ret = (uint64_t)(uintptr_t)p;
        return 0;
}
