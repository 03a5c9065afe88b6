#include "os/writes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/vm.h"

/* From the kernel's headers (linux/userfaultfd.h, linux/fs.h), which may be older than the kernel. */

enum {
        UFFD_API_VERSION = 0xaa,
        UFFD_USER_MODE_ONLY_FLAG = 1,
        FEATURE_WP_SHMEM = 1 << 12,
        FEATURE_WP_ASYNC = 1 << 15,
        REGISTER_MODE_WP = 2,
        WRITEPROTECT_MODE_WP = 1,

        SCAN_WP_MATCHING = 1,
        SCAN_CHECK_WPASYNC = 2,
        PAGE_WRITTEN = 1 << 1,
};

struct uffd_api {
        __u64 api, features, ioctls;
};

struct uffd_register {
        __u64 start, len, mode, ioctls;
};

struct uffd_range {
        __u64 start, len;
};

struct uffd_writeprotect {
        __u64 start, len, mode;
};

struct scan_region {
        __u64 start, end, categories;
};

struct scan {
        __u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
        __u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define CALL_API          _IOWR(0xaa, 0x3f, struct uffd_api)
#define CALL_REGISTER     _IOWR(0xaa, 0x00, struct uffd_register)
#define CALL_UNREGISTER   _IOR(0xaa, 0x01, struct uffd_range)
#define CALL_WRITEPROTECT _IOWR(0xaa, 0x06, struct uffd_writeprotect)
#define CALL_SCAN         _IOWR('f', 16, struct scan)

static int uffd = -1,
           pagemap = -1; /* `owner`'s; a descriptor from before a fork acts on the parent */
static _Atomic pid_t owner;
static bool works;

static bool open_both(void)
{
        struct uffd_api api = { .api = UFFD_API_VERSION,
                                .features = FEATURE_WP_SHMEM | FEATURE_WP_ASYNC };
#ifdef SYS_userfaultfd
        /* Without privileges this is for faults in user mode only. The kernel handles write notes itself. */
        uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY_FLAG);
#endif
        if (uffd < 0 || ioctl(uffd, CALL_API, &api) < 0)
                return false;
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        return pagemap >= 0;
}

static void close_both(void)
{
        if (uffd >= 0)
                close(uffd);
        if (pagemap >= 0)
                close(pagemap);
        uffd = pagemap = -1;
}

static int watch(uint64_t at, size_t size)
{
        struct uffd_register r = { .start = at, .len = size, .mode = REGISTER_MODE_WP };
        return ioctl(uffd, CALL_REGISTER, &r) < 0 ? SP_E_UNSUPP : 0;
}

static int note(uint64_t at, uint64_t size)
{
        struct uffd_writeprotect w = { .start = at, .len = size, .mode = WRITEPROTECT_MODE_WP };
        return ioctl(uffd, CALL_WRITEPROTECT, &w) < 0 ? SP_E_UNSUPP : 0;
}

static int take(uint64_t at, uint64_t end, struct written *ret, unsigned max, uint64_t *ret_next)
{
        enum { AT_ONCE = 64 };
        struct scan_region regions[AT_ONCE];
        unsigned room = max < AT_ONCE ? max : AT_ONCE;
        /* The kernel has a fast path for this combination. */
        struct scan s = { .size = sizeof(s),
                          .flags = SCAN_WP_MATCHING | SCAN_CHECK_WPASYNC,
                          .start = at,
                          .end = end,
                          .vec = (uintptr_t)regions,
                          .vec_len = room,
                          .category_mask = PAGE_WRITTEN,
                          .return_mask = PAGE_WRITTEN };
        int count = ioctl(pagemap, CALL_SCAN, &s);
        if (count < 0 || (unsigned)count > room || s.walk_end <= at || s.walk_end > end)
                return SP_E_UNSUPP;
        for (int i = 0; i < count; i++)
                ret[i] = (struct written){ regions[i].start, regions[i].end };
        *ret_next = s.walk_end;
        return count;
}

/* Is exactly this range written in [at, end)? */
static bool takes(uint64_t at, uint64_t end, uint64_t begin, uint64_t size)
{
        struct written w;
        uint64_t next;
        int count = take(at, end, &w, 1, &next);
        if (!size)
                return count == 0 && next == end;
        return count == 1 && w.begin == begin && w.end == begin + size;
}

static void touch(uint64_t at, bool write)
{
        volatile char *p = (volatile char *)(uintptr_t)at;
        char value = *p;
        if (write)
                *p = value;
}

/* At `at` there is a large piece of memory: all of it takes no notes but the first granule. */
static bool test_at(uint64_t at, uint64_t end)
{
        uint64_t page = vm_page_size(), rest = at + VM_GRANULE, last = rest - page;
        bool ok = watch(at, end - at) == 0 && note(at, VM_GRANULE) == 0;
        touch(at, false);
        ok = ok && takes(at, rest, 0, 0);
        touch(last, true);
        ok = ok && takes(at, rest, last, page) && takes(at, rest, 0, 0);
        /* Pages that the program has written and then emptied, whose page tables are gone, too. */
        for (uint64_t i = rest; i < end; i += VM_GRANULE)
                touch(i, true);
        vm_untouch(at, end - at);
        return ok && takes(rest, end, rest, end - rest) && takes(rest, end, 0, 0);
}

/* Try it. An emulator of another processor may have other addresses than the kernel, and another system may have the
 * call but not all of its meaning. */
static bool test(void)
{
        enum { SIZE = 64 * VM_GRANULE };
        uint64_t at, other;
        int fd;
        if (vm_map_twice(0, SIZE, &at, &other, &fd) < 0)
                return false;
        bool ok = vm_allow(at, SIZE, VM_WRITE) == 0 && test_at(at, at + SIZE);
        vm_unmap(at, SIZE);
        vm_unmap(other, SIZE);
        close(fd);
        return ok;
}

/* Before Linux 6.15 a scan could miss a written page that the kernel was moving at that moment ("fix uffd-wp confusion
 * in pagemap_scan_pmd_entry"). Some older kernels have that correction, too, which does not show. */
static bool kernel_is_exact(void)
{
        struct utsname u;
        unsigned major = 0, minor = 0;
        return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
               (major > 6 || (major == 6 && minor >= 15));
}

static bool is_owner(void)
{
        return works && atomic_load(&owner) == getpid();
}

bool writes_can_be_noted(void)
{
        pid_t self = getpid();
        if (atomic_load(&owner) == self)
                return works;
        close_both();
        int error = errno;
        works = kernel_is_exact() && open_both() && test();
        if (!works)
                close_both();
        errno = error;
        atomic_store(&owner, self);
        return works;
}

int writes_watch(uint64_t at, size_t size)
{
        return is_owner() ? watch(at, size) : SP_E_UNSUPP;
}

void writes_forget(uint64_t at, size_t size)
{
        struct uffd_range r = { .start = at, .len = size };
        if (is_owner())
                (void)ioctl(uffd, CALL_UNREGISTER, &r);
}

int writes_note(uint64_t at, size_t size)
{
        return is_owner() ? note(at, size) : SP_E_UNSUPP;
}

int writes_take(uint64_t at, uint64_t end, struct written *ret, unsigned max, uint64_t *ret_next)
{
        return is_owner() ? take(at, end, ret, max, ret_next) : SP_E_UNSUPP;
}
