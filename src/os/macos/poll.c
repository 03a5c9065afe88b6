#include "os/poll.h"

#include "os/clock.h"

/* The system has no ppoll(). */
int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns)
{
        return poll(fds, count, clock_poll_ms(deadline_ns));
}
