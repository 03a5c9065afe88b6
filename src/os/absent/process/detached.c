/* Programs that this process starts, and whose output it polls or that need a descriptor for packets: sources of
 * discovery, media processes. The ports to Windows and macOS start none yet. Every call fails. */
#include <errno.h>

#include "os/process/detached.h"

int detached_start(char *const argv[], bool quiet, int *ret_fd)
{
        (void)argv, (void)quiet, (void)ret_fd;
        errno = ENOSYS;
        return SP_E_NOENT;
}

int detached_start_socket(char *const argv[], bool quiet, int *ret_fd, int *ret_id)
{
        *ret_id = 0;
        return detached_start(argv, quiet, ret_fd);
}

/* detached_start_socket returns no number but 0, for which there is no program to collect. */
bool detached_collect(int id)
{
        return id == 0;
}
