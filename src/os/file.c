#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open(const char *path, bool follow, uint64_t *ret_size)
{
        int fd = open(path,
                      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
        struct stat st;
        if (fd < 0)
                return -1;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                close(fd);
                errno = EINVAL;
                return -1;
        }
        *ret_size = (uint64_t)st.st_size;
        return fd;
}

int file_create(const char *path)
{
        return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int file_create_unique(char *path)
{
        return mkostemp(path, O_CLOEXEC);
}

int file_duplicate(int fd)
{
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

bool file_close(int fd)
{
        return close(fd) == 0;
}

int64_t file_read(int fd, void *ret, size_t size)
{
        ssize_t n;
        do
                n = read(fd, ret, size);
        while (n < 0 && errno == EINTR);
        return n;
}

bool file_read_all(int fd, void *ret, size_t size)
{
        for (char *p = ret; size;) {
                int64_t n = file_read(fd, p, size);
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

bool file_write_all(int fd, const void *data, size_t size)
{
        for (const char *p = data; size;) {
                ssize_t n = write(fd, p, size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                p += n;
                size -= (size_t)n;
        }
        return true;
}

bool file_never_wait(int fd)
{
        return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

bool file_pipe(int ret[2])
{
        return pipe2(ret, O_CLOEXEC) == 0;
}

bool file_keep_from_programs(int fd)
{
        return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

void file_touch(int fd)
{
        (void)futimens(fd, NULL);
}

bool file_link(const char *target, const char *path)
{
        return symlink(target, path) == 0;
}
