#include "transport/transport.h"

#include <linux/tcp.h> /* more of tcp_info than libc's */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket.h"
#include "transport/tls.h"

const char *conn_name(const struct conn *c)
{
        const char *tls = tls_name(c);
        return tls ? tls : c->ops->name;
}

uint64_t conn_rate(const struct conn *c)
{
        struct tcp_info info;
        socklen_t size = sizeof(info);
        if ((c->ops != &transport_tcp && c->ops != &transport_tls &&
             c->ops != &transport_checked) ||
            getsockopt(c->room_fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
            size < offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate))
                return 0;
        return info.tcpi_delivery_rate_app_limited ? 0 : info.tcpi_delivery_rate;
}

int conn_poll(struct conn *c, bool in, bool out, struct pollfd ret[2])
{
        int n = 0;
        if (c->ops->peek) {
                c->in = in;
                c->out = out;
        }
        if (in)
                ret[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
        if (!out)
                return n;
        if (n && c->room_fd == c->fd)
                ret[0].events = (short)(ret[0].events | c->room_events);
        else
                ret[n++] = (struct pollfd){ .fd = c->room_fd, .events = c->room_events };
        return n;
}

bool conn_peek(struct conn *c)
{
        return c->ops->peek && c->ops->peek(c, false);
}

bool conn_arm(struct conn *c)
{
        return c->ops->peek && c->ops->peek(c, true);
}

unsigned conn_polled(struct conn *c, const struct pollfd *fds, size_t n)
{
        bool in = false, room = false;
        for (size_t i = 0; i < n; i++) {
                const struct pollfd *p = &fds[i];
                if (!p->revents)
                        continue;
                if (p->fd == c->fd && (p->revents & (POLLIN | POLLHUP | POLLERR)))
                        in = true;
                if (p->fd == c->room_fd && (p->revents & ~POLLIN || c->fd != p->fd))
                        room = true;
        }
        if (c->ops->polled)
                return c->ops->polled(c, in);
        return (in ? CONN_IN : 0) | (room ? CONN_OUT : 0);
}

int conn_wait(struct conn *c, bool in, bool out, int timeout_ms)
{
        struct pollfd p[2];
        int n = conn_poll(c, in, out, p);
        if (!conn_arm(c))
                (void)poll(p, (nfds_t)n, timeout_ms);
        return conn_polled(c, p, (size_t)n) ? 0 : SP_E_AGAIN;
}

bool conn_user(const struct conn *c, unsigned *ret)
{
        struct ucred who;
        socklen_t size = sizeof(who);
        if (!(c->ops->caps & TRANSPORT_KNOWS_USER) ||
            getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
                return false;
        *ret = who.uid;
        return true;
}

bool conn_is_own_user(const struct conn *c)
{
        unsigned uid;
        return conn_user(c, &uid) && (uid == geteuid() || !uid);
}

int conn_from_fd(int fd, struct conn **ret)
{
        struct sockaddr_storage a;
        socklen_t len = sizeof(a);
        int type;
        socklen_t type_len = sizeof(type);
        if (getsockname(fd, (struct sockaddr *)&a, &len) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 || type != SOCK_STREAM) {
                close(fd);
                return SP_E_INVAL;
        }
        switch (a.ss_family) {
        case AF_INET:
        case AF_INET6:
                return socket_conn_new(&transport_tcp, fd, ret);
        case AF_UNIX:
                return socket_conn_new(&transport_unix, fd, ret);
        case AF_VSOCK:
                return socket_conn_new(&transport_vsock_plain, fd, ret);
        default:
                close(fd);
                return SP_E_INVAL;
        }
}

int conn_export(struct conn *c, struct buf *ret)
{
        uint8_t state[TLS_STATE_SIZE];
        if (c->ops != &transport_tls)
                return 0;
        int r = tls_export(c, state);
        if (!r)
                r = buf_put(ret, state, sizeof(state));
        explicit_bzero(state, sizeof(state));
        return r;
}

int conn_import(int fd, struct bytes state, struct conn **ret)
{
        if (!state.size)
                return conn_from_fd(fd, ret);
        if (state.size == TLS_STATE_SIZE)
                return tls_import(fd, state.data, ret);
        close(fd);
        return SP_E_INVAL;
}

struct conn *conn_close(struct conn *c)
{
        if (c)
                c->ops->close(c);
        return NULL;
}

struct listener *listener_close(struct listener *l)
{
        if (l)
                l->ops->listener_close(l);
        return NULL;
}

uint64_t conn_round_trip(const struct conn *c)
{
        struct tcp_info info;
        socklen_t size = sizeof(info);
        if ((c->ops != &transport_tcp && c->ops != &transport_tls &&
             c->ops != &transport_checked) ||
            getsockopt(c->room_fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
            size < offsetof(struct tcp_info, tcpi_rtt) + sizeof(info.tcpi_rtt))
                return 0;
        return info.tcpi_rtt * UINT64_C(1000);
}
