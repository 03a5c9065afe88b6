/* Programs that this process starts. The port starts none yet: no sources of discovery, no compilers of
 * accelerators, no media processes. Every call fails. */
#include <errno.h>

#include "os/process/child.h"
#include "os/process/detached.h"
#include "os/process/tool.h"

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

int tool_execute(const char *folder, const char *out, char *const *argv)
{
        (void)folder, (void)out, (void)argv;
        return SP_E_NOENT;
}

int child_start(char *const argv[], int (*failed)(char *const argv[]), struct child *ret)
{
        (void)argv, (void)failed, (void)ret;
        errno = ENOSYS;
        return SP_E_LIMIT;
}

int child_run(int (*run)(void *user, int to), void *user, unsigned limit_s, struct child *ret)
{
        (void)run, (void)user, (void)limit_s, (void)ret;
        errno = ENOSYS;
        return SP_E_LIMIT;
}

enum child_end child_wait(struct child *c, int *ret_number)
{
        (void)c, (void)ret_number;
        return CHILD_LOST;
}
