/* Parts of os/file.h that POSIX lacks. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int file_open_again(int fd)
{
        char path[PATH_MAX];
        return fcntl(fd, F_GETPATH, path) < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
}

/* Shared memory of POSIX can be mapped there, but not read, written or opened again without a name. */
int file_create_in_memory(void)
{
        errno = ENOSYS;
        return -1;
}

/* A program that another thread starts between these calls inherits the pipe. */
bool file_pipe(int ret[2])
{
        int ends[2];
        if (pipe(ends) < 0)
                return false;
        if (file_keep_from_programs(ends[0]) && file_keep_from_programs(ends[1])) {
                ret[0] = ends[0];
                ret[1] = ends[1];
                return true;
        }
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        errno = error;
        return false;
}

/* The system widens pipes itself. */
void file_widen_pipe(int fd, size_t size)
{
        (void)fd, (void)size;
}
