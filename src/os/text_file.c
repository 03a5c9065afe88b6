#include "os/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int text_file_write(int dir, const char *path, const char *text)
{
        int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        size_t n = strlen(text);
        ssize_t done = write(fd, text, n);
        int r = done == (ssize_t)n ? 0 : done < 0 ? -errno : -EIO;
        close(fd);
        return r;
}

void text_file_read(int dir, const char *path, char *ret, size_t size)
{
        int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
        ret[n > 0 ? n : 0] = 0;
        if (fd >= 0)
                close(fd);
}
