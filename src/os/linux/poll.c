#include "os/poll.h"

#include <stddef.h>

#include "os/clock.h"

int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns)
{
        if (deadline_ns == UINT64_MAX)
                return poll(fds, count, -1);
        uint64_t now = clock_now_ns();
        uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec left = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
        return ppoll(fds, count, &left, NULL);
}
