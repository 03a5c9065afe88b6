#include "posix/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_MS = 5000 };

static void close_lane(struct posix_transport *p, unsigned lane)
{
        if (p->lanes[lane].fd1)
                close(p->lanes[lane].fd1 - 1);
        p->lanes[lane].fd1 = 0;
        p->lanes[lane].full = false;
}

void posix_transport_close(struct posix_transport *p)
{
        close_lane(p, 0);
        close_lane(p, 1);
}

/* Wait until the socket is connected. */
static int connected(int fd)
{
        struct pollfd f = { .fd = fd, .events = POLLOUT };
        int error = 0;
        socklen_t size = sizeof(error);
        if (poll(&f, 1, CONNECT_MS) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ||
            error)
                return -1;
        return 0;
}

static int lane_open(void *user, unsigned lane)
{
        struct posix_transport *p = user;
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p->port) };
        const int on = 1;
        close_lane(p, lane);
        if (!lane)
                close_lane(p, 1);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -1;
        p->lanes[lane].fd1 = fd + 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (inet_pton(AF_INET, p->host, &to.sin_addr) == 1 &&
            (!connect(fd, (struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS) &&
            !connected(fd))
                return 0;
        close_lane(p, lane);
        return -1;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        struct posix_transport *p = user;
        ssize_t n = send(p->lanes[lane].fd1 - 1, data, size, MSG_NOSIGNAL);
        p->lanes[lane].full = n < 0 && errno == EAGAIN;
        return n >= 0 ? (int)n : p->lanes[lane].full || errno == EINTR ? 0 : -1;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        struct posix_transport *p = user;
        ssize_t n = recv(p->lanes[lane].fd1 - 1, data, size, 0);
        if (n > 0)
                return (int)n;
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        struct posix_transport *p = user;
        struct pollfd f[2];
        struct timespec now;
        for (unsigned i = 0; i < 2; i++)
                f[i] = (struct pollfd){ .fd = p->lanes[i].fd1 - 1,
                                        .events = p->lanes[i].full ? POLLIN | POLLOUT : POLLIN };
        if (timeout_ms)
                poll(f, 2, (int)timeout_ms);
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct spancl_nano_transport posix_transport(struct posix_transport *p)
{
        return (struct spancl_nano_transport){ lane_open, lane_send, lane_receive, lanes_wait, p };
}
