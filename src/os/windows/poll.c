#include "os/poll.h"

#include <errno.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/windows/descriptor.h"

enum { SMALL = 64 };

/* Collect the sockets and return their number. *ret_ready: the number of other descriptors that are ready. */
static ULONG collect(struct pollfd *fds, nfds_t count, WSAPOLLFD *ret, int *ret_ready)
{
        ULONG n = 0;
        for (nfds_t i = 0; i < count; i++) {
                fds[i].revents = 0;
                if (fds[i].fd < 0)
                        continue;
                if (!descriptor_is_socket(fds[i].fd)) {
                        fds[i].revents = fds[i].events;
                        *ret_ready += fds[i].events != 0;
                        continue;
                }
                ret[n++] =
                        (WSAPOLLFD){ .fd = descriptor_socket(fds[i].fd), .events = fds[i].events };
        }
        return n;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
        WSAPOLLFD few[SMALL], *all = few;
        int ready = 0;
        if (count > SMALL && !(all = malloc(count * sizeof(*all)))) {
                errno = ENOMEM;
                return -1;
        }
        ULONG n = collect(fds, count, all, &ready);
        if (ready)
                timeout_ms = 0;
        int r = 0;
        if (n)
                r = WSAPoll(all, n, timeout_ms);
        else if (timeout_ms)
                Sleep(timeout_ms < 0 ? INFINITE : (DWORD)timeout_ms);
        if (r < 0)
                r = descriptor_fail();
        for (nfds_t i = 0, at = 0; r > 0 && i < count; i++)
                if (descriptor_is_socket(fds[i].fd))
                        fds[i].revents = all[at++].revents;
        if (all != few)
                free(all);
        return r < 0 ? r : r + ready;
}

int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns)
{
        return poll(fds, count, clock_poll_ms(deadline_ns));
}
