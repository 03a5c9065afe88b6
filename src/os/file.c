#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"

bool file_exists(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0;
}

bool file_is_readable(const char *path)
{
        return access(path, R_OK) == 0;
}

bool file_is_executable(const char *path)
{
        return access(path, X_OK) == 0;
}

bool file_real_path(const char *path, char ret[PATH_MAX])
{
        return realpath(path, ret) != NULL;
}

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

FILE *file_create_stream(const char *path)
{
        int fd = file_create(path);
        FILE *ret = fd < 0 ? NULL : fdopen(fd, "w");
        if (!ret && fd >= 0)
                (void)file_close(fd);
        return ret;
}

int file_create_unique(char *path)
{
        return mkostemp(path, O_CLOEXEC);
}

int file_open_both(const char *path, bool create)
{
        return open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
}

int file_open_uncached(const char *path)
{
        return open(path, O_RDWR | O_CLOEXEC | O_SYNC);
}

int file_take(const char *path, bool replace)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
                      0640);
        struct stat st;
        if (fd < 0)
                return -1;
        int wrong = 0;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                wrong = EINVAL;
        else if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
                wrong = errno;
        else if (st.st_size && !replace)
                wrong = EEXIST;
        else if (st.st_size && ftruncate(fd, 0) < 0)
                wrong = errno;
        if (!wrong)
                return fd;
        close(fd);
        errno = wrong;
        return -1;
}

bool file_seek(int fd, uint64_t at)
{
        return at <= INT64_MAX && lseek(fd, (off_t)at, SEEK_SET) >= 0;
}

bool file_resize(int fd, uint64_t size)
{
        return ftruncate(fd, (off_t)size) == 0;
}

bool file_lock_bytes(int fd, uint64_t at, uint64_t size)
{
        struct flock lock = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = (off_t)size
        };
        return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

int file_duplicate(int fd)
{
        return fcntl(fd, F_DUPFD_CLOEXEC, FILE_STDERR + 1);
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

bool file_wait(int fd)
{
        return fcntl(fd, F_SETFL, 0) == 0;
}

bool file_put(int fd, int place)
{
        return dup2(fd, place) >= 0;
}

bool file_keep_from_programs(int fd)
{
        return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool file_sync(int fd)
{
        return fsync(fd) == 0;
}

bool file_give(int fd, unsigned user, unsigned group)
{
        return fchown(fd, user, group) == 0;
}

bool file_move(const char *from, const char *to, bool replace)
{
        if (replace)
                return rename(from, to) == 0;
        if (link(from, to) < 0)
                return false;
        (void)unlink(from);
        return true;
}

bool file_unlink(const char *path)
{
        return unlink(path) == 0;
}

void file_touch(int fd)
{
        (void)futimens(fd, NULL);
}

bool file_is_terminal(int fd)
{
        return isatty(fd);
}

/* Make the folder of a file. */
static bool make_folder_of(const char *path)
{
        char folder[PATH_MAX];
        const char *slash = strrchr(path, '/');
        if (!slash)
                return true;
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        return folder_make(folder) == 0;
}

bool file_replace(const char *path, const void *data, size_t size)
{
        char temp[PATH_MAX + 16];
        struct stat st;
        snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
        int fd = make_folder_of(path) ? file_create_unique(temp) : -1;
        if (fd < 0)
                return false;
        bool ok = stat(path, &st) < 0 || fchmod(fd, st.st_mode & 0777) == 0;
        ok = ok && file_write_all(fd, data, size) && fsync(fd) == 0;
        int error = errno;
        if (close(fd) < 0 && ok) {
                ok = false;
                error = errno;
        }
        if (ok && rename(temp, path) == 0)
                return true;
        if (ok)
                error = errno;
        unlink(temp);
        errno = error;
        return false;
}

bool file_is_link(const char *path)
{
        struct stat st;
        return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

bool file_link(const char *target, const char *path)
{
        return symlink(target, path) == 0;
}
