#include "transport/transport.h"

#include <string.h>

#include "os/file.h"
#include "os/net/multipath.h"
#include "os/net/socket.h"
#include "os/process/process.h"
#include "transport/stream.h"
#include "transport/tls.h"

const char *conn_name(const struct conn *c)
{
        const char *tls = tls_name(c);
        bool several = transport_multipath && c->ops->caps & TRANSPORT_ACKNOWLEDGES &&
                       multipath_further_paths(c->room_fd) >= 0;
        if (several)
                return tls ? "tls over mptcp" : "mptcp";
        return tls ? tls : c->ops->name;
}

/* False: it is not TCP, or the system does not tell. */
static bool tcp_state_of(const struct conn *c, struct socket_tcp_state *ret)
{
        if (!(c->ops->caps & TRANSPORT_ACKNOWLEDGES) || !socket_tcp_state(c->room_fd, ret))
                return false;
        if (transport_multipath)
                multipath_state(c->room_fd, ret);
        return true;
}

uint64_t conn_rate(const struct conn *c)
{
        struct socket_tcp_state tcp;
        return tcp_state_of(c, &tcp) ? tcp.rate : 0;
}

uint64_t conn_round_trip(const struct conn *c)
{
        struct socket_tcp_state tcp;
        return tcp_state_of(c, &tcp) ? tcp.round_trip_ns : 0;
}

/* A receiver that reads nothing closes its window. Its system acknowledges the probes of the window all the same, so
 * these count as bytes that were sent. Between two probes nothing is owed, however long that takes. */
enum silence conn_silence(const struct conn *c, struct silence_clock *k, uint64_t now_ns)
{
        struct socket_tcp_state tcp;
        if (!transport_timeout_ms || !tcp_state_of(c, &tcp))
                return SILENCE_NONE;
        uint64_t age_ns = tcp.acknowledged_ms * UINT64_C(1000000);
        if (!tcp.owes)
                k->since_ns = 0;
        else if (!k->since_ns || now_ns - k->since_ns > age_ns)
                k->since_ns = now_ns;
        if (k->since_ns && now_ns - k->since_ns >= transport_timeout_ms * UINT64_C(1000000))
                return SILENCE_LOST;
        return tcp.owes || tcp.unsent ? SILENCE_OWES : SILENCE_NONE;
}

static int entries(const struct conn *c, unsigned want, struct pollfd ret[2])
{
        int n = 0;
        if (want & CONN_IN)
                ret[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
        if (!(want & CONN_OUT))
                return n;
        if (n && c->room_fd == c->fd)
                ret[0].events = (short)(ret[0].events | c->room_events);
        else
                ret[n++] = (struct pollfd){ .fd = c->room_fd, .events = c->room_events };
        return n;
}

static bool arm(struct conn *c, unsigned want)
{
        return c->ops->peek && c->ops->peek(c, want, true);
}

static unsigned polled(struct conn *c, unsigned want, const struct pollfd *fds, size_t n)
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
                return c->ops->polled(c, want, in);
        return (in ? CONN_IN : 0) | (room ? CONN_OUT : 0);
}

static unsigned want_of(bool in, bool out)
{
        return (in ? CONN_IN : 0) | (out ? CONN_OUT : 0);
}

int conn_poll(struct conn *c, bool in, bool out, struct pollfd ret[2])
{
        c->want = want_of(in, out);
        return entries(c, c->want, ret);
}

bool conn_peek(struct conn *c)
{
        return c->ops->peek && c->ops->peek(c, c->want, false);
}

bool conn_arm(struct conn *c)
{
        return arm(c, c->want);
}

unsigned conn_polled(struct conn *c, const struct pollfd *fds, size_t n)
{
        return polled(c, c->want, fds, n);
}

int conn_wait(struct conn *c, bool in, bool out, int timeout_ms)
{
        unsigned want = want_of(in, out);
        struct pollfd p[2];
        int n = entries(c, want, p);
        if (!arm(c, want))
                (void)poll(p, (nfds_t)n, timeout_ms);
        return polled(c, want, p, (size_t)n) ? 0 : SP_E_AGAIN;
}

bool conn_user(const struct conn *c, unsigned *ret)
{
        return c->ops->caps & TRANSPORT_KNOWS_USER && socket_other_user(c->fd, ret);
}

bool conn_is_own_user(const struct conn *c)
{
        unsigned uid;
        return conn_user(c, &uid) && (uid == process_user() || !uid);
}

int conn_from_fd(int fd, struct conn **ret)
{
        struct socket_address a;
        if (!socket_own_address(fd, &a) || !socket_is_stream(fd)) {
                (void)file_close(fd);
                return SP_E_INVAL;
        }
        switch (socket_address_family(&a)) {
        case SOCKET_IP4:
        case SOCKET_IP6:
                return stream_conn_new(&transport_tcp, fd, ret);
        case SOCKET_UNIX:
                return stream_conn_new(&transport_unix, fd, ret);
        case SOCKET_VM:
                return stream_conn_new(&transport_vsock_plain, fd, ret);
        default:
                (void)file_close(fd);
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
        (void)file_close(fd);
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
