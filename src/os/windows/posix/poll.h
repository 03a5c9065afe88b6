/* POSIX's poll() over Winsock's sockets; the bits of events are Winsock's. */
#ifndef SPANCL_OS_WINDOWS_POSIX_POLL_H
#define SPANCL_OS_WINDOWS_POSIX_POLL_H

#include <sys/socket.h>

struct pollfd {
        int fd;
        short events, revents;
};

typedef unsigned long nfds_t;

/* Wait for events of sockets. Files and pipes are always ready. The function ignores negative descriptors. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms);

#endif
