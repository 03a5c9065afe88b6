#include "transport/stream.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "transport/tcp.h"

int stream_status(int error)
{
        switch (error) {
        case ECONNREFUSED:
        case ENOENT:
                return SP_E_REFUSED;
        case ETIMEDOUT:
                return SP_E_TIMEOUT;
        case EHOSTUNREACH:
        case ENETUNREACH:
        case EHOSTDOWN:
        case ENETDOWN:
                return SP_E_UNREACH;
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
bool transport_multipath;

int stream_conn_new(const struct transport_ops *ops, int fd, struct conn **ret)
{
        if (!socket_adopt(fd)) {
                (void)file_close(fd);
                return SP_E_INVAL;
        }
        struct conn *c = mem_zalloc(sizeof(*c));
        if (!c) {
                (void)file_close(fd);
                return SP_E_NOMEM;
        }
        if (ops == &transport_tcp)
                socket_tune_tcp(fd, transport_timeout_ms);
        *c = (struct conn){ .ops = ops, .fd = fd, .room_fd = fd, .room_events = POLLOUT };
        *ret = c;
        return 0;
}

int stream_listener_new(const struct transport_ops *ops, int fd, struct listener **ret)
{
        if (!socket_listen(fd)) {
                int r = stream_status(errno);
                (void)file_close(fd);
                return r;
        }
        struct listener *l = mem_zalloc(sizeof(*l));
        if (!l) {
                (void)file_close(fd);
                return SP_E_NOMEM;
        }
        l->ops = ops;
        l->fd = fd;
        *ret = l;
        return 0;
}

int listener_adopt(int fd, struct listener **ret)
{
        static const char scheme[] = "unix:";
        struct socket_address at;
        char path[SOCKET_PATH_MAX];
        if (!socket_adopt(fd))
                return SP_E_UNSUPP; /* it is no descriptor */
        bool listens = socket_is_listener(fd) && socket_own_address(fd, &at);
        enum socket_family family = listens ? socket_address_family(&at) : SOCKET_OTHER;
        bool local = family == SOCKET_UNIX && socket_address_path(&at, path);
        if (!local && family != SOCKET_IP4 && family != SOCKET_IP6) {
                (void)file_close(fd);
                return SP_E_UNSUPP;
        }
        int r = stream_listener_new(local ? &transport_unix : &transport_tcp, fd, ret);
        if (r < 0)
                return r;
        (*ret)->inherited = true;
        if (local)
                snprintf((*ret)->address, sizeof((*ret)->address), "%s%s", scheme, path);
        else
                tcp_name_listener(*ret);
        return 0;
}

int stream_accept(struct listener *l, struct conn **ret)
{
        int fd = socket_accept(l->fd);
        if (fd >= 0)
                return stream_conn_new(l->ops, fd, ret);
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

ssize_t stream_sendv(struct conn *c, const struct iovec *iov, int n)
{
        ssize_t r = socket_sendv(c->fd, iov, n);
        if (r > 0)
                return r;
        return r < 0 && socket_would_wait(errno) ? SP_E_AGAIN : SP_E_LINK;
}

ssize_t stream_recvv(struct conn *c, const struct iovec *iov, int n)
{
        ssize_t r = socket_receivev(c->fd, iov, n);
        if (r > 0)
                return r;
        return r < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
}

void stream_listener_close(struct listener *l)
{
        (void)file_close(l->fd);
        mem_free(l);
}

void stream_close(struct conn *c)
{
        (void)file_close(c->fd);
        mem_free(c);
}
