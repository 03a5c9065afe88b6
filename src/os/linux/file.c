/* Parts of os/file.h that POSIX lacks. */
#include "os/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int file_open_again(int fd)
{
        char path[40];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_RDWR | O_CLOEXEC);
}

int file_create_in_memory(void)
{
        return memfd_create("spancl", MFD_CLOEXEC);
}

bool file_pipe(int ret[2])
{
        return pipe2(ret, O_CLOEXEC) == 0;
}

void file_widen_pipe(int fd, size_t size)
{
        (void)fcntl(fd, F_SETPIPE_SZ, (int)size);
}
