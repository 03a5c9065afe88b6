#include "transport/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

int socket_status(int error)
{
        switch (error) {
        case ECONNREFUSED:
        case ENOENT:
                return SP_E_REFUSED;
        case ETIMEDOUT:
                return SP_E_TIMEOUT;
        case EADDRINUSE:
                return SP_E_BUSY;
        case EADDRNOTAVAIL:
        case EAFNOSUPPORT:
                return SP_E_HOST;
        case EMFILE:
        case ENFILE:
                return SP_E_LIMIT;
        case ENOMEM:
        case ENOBUFS:
                return SP_E_NOMEM;
        case EINVAL:
        case EACCES:
        case EPERM:
                return SP_E_INVAL;
        default:
                return SP_E_LINK;
        }
}

unsigned transport_timeout_ms = 5000;

/* Failing to set one of these costs speed or patience, not correctness. Idle hosts are probed for
 * life, and sent bytes have to be acknowledged in time (RFC 1122 4.2.3.6, RFC 5482). */
static void set_tcp_options(int fd)
{
        enum { PROBES = 4 };
        unsigned timeout = transport_timeout_ms;
        int seconds = timeout ? (int)((timeout + 999) / 1000) : 0;
        int between = seconds > 2 * PROBES ? seconds / (2 * PROBES) : 1;
        int idle = seconds > PROBES * between ? seconds - PROBES * between : 1;
        const struct {
                int level, name, value;
        } options[] = {
                { IPPROTO_TCP, TCP_NODELAY, 1 },
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout },
                { IPPROTO_TCP, TCP_KEEPIDLE, timeout ? idle : 30 },
                { IPPROTO_TCP, TCP_KEEPINTVL, timeout ? between : 10 },
                { IPPROTO_TCP, TCP_KEEPCNT, PROBES },
        };
        for (size_t i = 0; i < array_size(options); i++)
                (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                                 sizeof(options[i].value));
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
        const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
        const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
        if (a->ss_family == AF_INET6)
                return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* Within a host there is no path to be probed: pacing (BBR) costs half of the bandwidth and more. */
static void set_congestion_control(int fd)
{
        struct sockaddr_storage here, there;
        socklen_t here_len = sizeof(here), there_len = sizeof(there);
        static const char congestion[] = "reno";
        if (getsockname(fd, (struct sockaddr *)&here, &here_len) == 0 &&
            getpeername(fd, (struct sockaddr *)&there, &there_len) == 0 &&
            same_address(&here, &there))
                (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, sizeof(congestion));
}

int socket_conn_new(const struct transport_ops *ops, int fd, struct conn **ret)
{
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
                close(fd);
                return SP_E_INVAL;
        }
        struct conn *c = mem_zalloc(sizeof(*c));
        if (!c) {
                close(fd);
                return SP_E_NOMEM;
        }
        if (ops == &transport_tcp) {
                set_tcp_options(fd);
                set_congestion_control(fd);
        }
        *c = (struct conn){ .ops = ops, .fd = fd, .room_fd = fd, .room_events = POLLOUT };
        *ret = c;
        return 0;
}

int socket_listener_new(const struct transport_ops *ops, int fd, struct listener **ret)
{
        if (listen(fd, SOMAXCONN) < 0) {
                int r = socket_status(errno);
                close(fd);
                return r;
        }
        struct listener *l = mem_zalloc(sizeof(*l));
        if (!l) {
                close(fd);
                return SP_E_NOMEM;
        }
        l->ops = ops;
        l->fd = fd;
        *ret = l;
        return 0;
}

static int adopt_unix(int fd, const struct sockaddr_un *a, struct listener **ret)
{
        int r = socket_listener_new(&transport_unix, fd, ret);
        if (!r)
                snprintf((*ret)->address, sizeof((*ret)->address), "unix:%s", a->sun_path);
        return r;
}

static int adopt_tcp(int fd, struct listener **ret)
{
        int r = socket_listener_new(&transport_tcp, fd, ret);
        if (!r)
                tcp_name_listener(*ret);
        return r;
}

int listener_adopt(int fd, struct listener **ret)
{
        union {
                struct sockaddr any;
                struct sockaddr_un local;
                struct sockaddr_storage storage;
        } a = { 0 };
        socklen_t size = sizeof(a), n = sizeof(int);
        int type = 0, listens = 0, r = SP_E_UNSUPP;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                return SP_E_UNSUPP; /* it is no descriptor */
        bool stream = !getsockname(fd, &a.any, &size) &&
                      !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_STREAM &&
                      !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) && listens;
        if (stream && a.any.sa_family == AF_UNIX && size < sizeof(a.local) && *a.local.sun_path)
                r = adopt_unix(fd, &a.local, ret);
        else if (stream && (a.any.sa_family == AF_INET || a.any.sa_family == AF_INET6))
                r = adopt_tcp(fd, ret);
        else
                close(fd);
        if (!r)
                (*ret)->inherited = true;
        return r;
}

int socket_accept(struct listener *l, struct conn **ret)
{
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
                return socket_conn_new(l->ops, fd, ret);
        switch (errno) {
        case EAGAIN:
                return SP_E_AGAIN;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
                return SP_E_LIMIT;
        default:
                return SP_E_LINK;
        }
}

ssize_t socket_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
        ssize_t r;
        do
                r = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        if (r > 0)
                return r;
        return r < 0 && (errno == EAGAIN || errno == ENOBUFS) ? SP_E_AGAIN : SP_E_LINK;
}

ssize_t socket_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
        ssize_t r;
        do
                r = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (r < 0 && errno == EINTR);
        if (r > 0)
                return r;
        return r < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
}

void socket_close(struct conn *c)
{
        close(c->fd);
        mem_free(c);
}
