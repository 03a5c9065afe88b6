#include "transport/transport.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket.h"
#include "transport/tls.h"

const struct transport_ops *transport_of(const char *address)
{
        static const struct {
                const char *prefix;
                const struct transport_ops *ops;
        } all[] = {
                { "tcp:", &transport_tcp },
                { "unix:", &transport_unix },
                { "inproc:", &transport_inproc },
                { "tls:", &transport_tls },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (!strncmp(address, all[i].prefix, strlen(all[i].prefix)))
                        return all[i].ops;
        return NULL;
}

int conn_poll(const struct conn *c, bool in, bool out, struct pollfd ret[2])
{
        int n = 0;
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
