#include "os/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

int shared_memory_new(uint64_t size)
{
        int fd = memfd_create("spancl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return SP_E_LIMIT;
        if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0) {
                close(fd);
                return SP_E_NOMEM;
        }
        return fd;
}

/* Huge pages can be sealed, too, but a page that is missing then is a SIGBUS. */
int shared_memory_size(int fd, uint64_t *ret)
{
        struct stat st;
        struct statfs fs;
        int seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size < 0 ||
            fstatfs(fd, &fs) < 0 || (uint32_t)fs.f_type == HUGETLBFS_MAGIC)
                return SP_E_INVAL;
        *ret = (uint64_t)st.st_size;
        return 0;
}
