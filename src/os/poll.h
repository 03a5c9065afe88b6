/* Polling of descriptors: struct pollfd, its POLL* bits and poll(), as POSIX has them. */
#ifndef SPANCL_OS_POLL_H
#define SPANCL_OS_POLL_H

#include <poll.h>
#include <stdint.h>

/* Sleep in poll() until a time of clock_now_ns; UINT64_MAX: without a limit. Returns what poll()
 * returns; a signal may end it (-1, EINTR). */
int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns);

#endif
