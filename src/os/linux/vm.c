/* Parts of os/vm.h that only Linux has: memory that is mapped twice, and what the system knows of pages. */
#include "os/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

int vm_empty_file(int fd, uint64_t offset, size_t size)
{
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                         (off_t)size) < 0
                       ? SP_E_UNSUPP
                       : 0;
}

void vm_keep_from_children(uint64_t at, size_t size)
{
        (void)madvise((void *)(uintptr_t)at, size, MADV_DONTFORK);
}

void vm_prefer_large_pages(void *at, size_t size)
{
        (void)madvise(at, size, MADV_HUGEPAGE);
}

void vm_populate(uint64_t at, size_t size)
{
        enum { POPULATE_READ = 22 }; /* Linux 5.14; older C libraries do not name it */
        (void)madvise((void *)(uintptr_t)at, size, POPULATE_READ);
}

bool vm_can_map_twice(void)
{
        return true;
}

int vm_map_twice(uint64_t at, size_t size, uint64_t *ret, uint64_t *ret_other, int *ret_fd)
{
        uint64_t first, other = 0;
        int r = vm_map(at, size, &first); /* the place is free, and is ours */
        if (r < 0)
                return r;
        int fd = memfd_create("spancl", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
                r = SP_E_LIMIT;
        if (r == 0)
                r = vm_map_file(fd, 0, size, &other);
        if (r == 0 && mmap((void *)(uintptr_t)first, size, PROT_NONE,
                           MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
                vm_unmap(other, size);
                r = SP_E_NOMEM;
        }
        if (r < 0) {
                vm_unmap(first, size);
                if (fd >= 0)
                        close(fd);
                return r;
        }
        vm_keep_from_children(first, size);
        vm_keep_from_children(other, size);
        *ret = first;
        *ret_other = other;
        *ret_fd = fd;
        return 0;
}

bool vm_next_data(int fd, uint64_t from, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
        off_t begin = lseek(fd, (off_t)from, SEEK_DATA);
        off_t hole = begin < 0 ? -1 : lseek(fd, begin, SEEK_HOLE);
        if (hole < 0 || (uint64_t)begin >= end)
                return false;
        *ret_begin = (uint64_t)begin;
        *ret_end = (uint64_t)hole < end ? (uint64_t)hole : end;
        return true;
}

/* Does the file tell of this process's addresses? In an emulator of another processor it tells of the emulator's, at
 * addresses that are shifted. So memory is made of which some pages are used. */
static bool tells_of_us(int fd)
{
        enum { PAGES = 32, USED = 0x2c08 }; /* a bit for each page */
        static atomic_int known;            /* 1: it does; -1: it does not */
        uint64_t entries[PAGES], at, page = vm_page_size();
        if (atomic_load(&known))
                return atomic_load(&known) > 0;
        if (vm_map(0, (size_t)page * PAGES, &at) < 0)
                return false;
        /* Not in pieces of more than a page. */
        (void)madvise((void *)(uintptr_t)at, (size_t)page * PAGES, MADV_NOHUGEPAGE);
        for (unsigned i = 0; i < PAGES; i++)
                if (USED >> i & 1)
                        *(volatile char *)(uintptr_t)(at + i * page) = 1;
        ssize_t n = pread(fd, entries, sizeof(entries), (off_t)(at / page * 8));
        bool same = n == (ssize_t)sizeof(entries);
        for (unsigned i = 0; i < PAGES && same; i++)
                same = entries[i] >> 63 == (USED >> i & 1);
        vm_unmap(at, (size_t)page * PAGES);
        atomic_store(&known, same ? 1 : -1);
        return same;
}

bool vm_touched(uint64_t at, size_t size)
{
        enum { AT_ONCE = 64 };
        uint64_t entries[AT_ONCE], page = vm_page_size(), count = size / page;
        int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        bool touched = fd >= 0 && !tells_of_us(fd);
        for (uint64_t i = 0; fd >= 0 && i < count && !touched; i += AT_ONCE) {
                size_t some = (size_t)(count - i < AT_ONCE ? count - i : AT_ONCE) * 8;
                touched = pread(fd, entries, some, (off_t)((at / page + i) * 8)) != (ssize_t)some;
                for (size_t k = 0; k < some / 8 && !touched; k++)
                        touched = entries[k] >> 63; /* it is mapped */
        }
        if (fd >= 0)
                close(fd);
        return touched || fd < 0;
}

void vm_untouch(uint64_t at, size_t size)
{
        (void)madvise((void *)(uintptr_t)at, size, MADV_DONTNEED);
}
