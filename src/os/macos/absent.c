/* Functions of the server alone, which is not built for macOS: descriptors for other processes, sets of descriptors.
 * Every call that can fail fails. */
#include <errno.h>

#include "os/event_set.h"
#include "os/passing.h"

void passing_refuse(int socket)
{
        (void)socket;
}

ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds, size_t count)
{
        (void)socket, (void)iov, (void)n, (void)fds, (void)count;
        return SP_E_LINK;
}

ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds, size_t max)
{
        (void)socket, (void)iov, (void)n;
        for (size_t i = 0; i < max; i++)
                ret_fds[i] = -1;
        return SP_E_LINK;
}

ssize_t passing_peek(int socket, void *ret, size_t size)
{
        (void)socket, (void)ret, (void)size;
        return SP_E_LINK;
}

int event_set_new(void)
{
        errno = ENOSYS;
        return -1;
}

bool event_set_add(int set, int fd, unsigned events, void *source)
{
        (void)set, (void)fd, (void)events, (void)source;
        return false;
}

bool event_set_change(int set, int fd, unsigned events, void *source)
{
        return event_set_add(set, fd, events, source);
}

void event_set_remove(int set, int fd)
{
        (void)set, (void)fd;
}

int event_set_wait(int set, int timeout_ms, void *ret[EVENT_SET_MAX])
{
        (void)set, (void)timeout_ms, (void)ret;
        return 0;
}
