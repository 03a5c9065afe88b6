#include "transport/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loopback.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/multipath.h"
#include "os/net/socket.h"
#include "transport/address.h"
#include "transport/stream.h"

enum {
        ATTEMPTS_MAX = 8,      /* addresses of one host that are tried */
        ATTEMPT_STAGGER = 250, /* ms before the next is tried as well (RFC 8305) */
};

static int socket_for(const struct socket_address *at)
{
        return transport_multipath && !loopback_address(socket_address_raw(at)) ? multipath_new(at)
                                                                                : socket_new(at);
}

/* Start a connect; the descriptor, or a status. */
static int attempt(const struct socket_address *to, int *ret_fd)
{
        int fd = socket_for(to);
        if (fd < 0)
                return stream_status(errno);
        if (!socket_connect(fd, to) && errno != EINPROGRESS) {
                int r = stream_status(errno);
                (void)file_close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

struct attempts {
        struct pollfd fds[ATTEMPTS_MAX];
        nfds_t count;
        int status; /* of the first that failed with something telling */
};

static void note(struct attempts *t, int status)
{
        if (!t->status || t->status == SP_E_LINK || t->status == SP_E_HOST ||
            t->status == SP_E_UNREACH)
                t->status = status;
}

/* The first connected one, taken out; those that failed are closed. -1: none yet. */
static int harvest(struct attempts *t)
{
        for (nfds_t i = 0; i < t->count;) {
                struct pollfd *p = &t->fds[i];
                if (!p->revents) {
                        i++;
                        continue;
                }
                int fd = p->fd, error = socket_error(fd);
                *p = t->fds[--t->count];
                if (!error)
                        return fd;
                note(t, stream_status(error));
                (void)file_close(fd);
        }
        return -1;
}

/* One address after another, each while the earlier ones go on. */
static int connect_any(const struct socket_address *to, size_t count, int timeout_ms, int *ret_fd)
{
        struct attempts t = { .count = 0 };
        int64_t deadline = (int64_t)(clock_now_ns() / 1000000) + timeout_ms;
        int fd = -1;
        while (fd < 0 && (count || t.count)) {
                if (count && t.count < ATTEMPTS_MAX) {
                        int r = attempt(to++, &t.fds[t.count].fd);
                        count--;
                        if (r < 0) {
                                note(&t, r);
                                continue;
                        }
                        t.fds[t.count++].events = POLLOUT;
                }
                int64_t wait = deadline - (int64_t)(clock_now_ns() / 1000000);
                if (wait <= 0) {
                        note(&t, SP_E_TIMEOUT);
                        break;
                }
                if (count && t.count < ATTEMPTS_MAX && wait > ATTEMPT_STAGGER)
                        wait = ATTEMPT_STAGGER;
                if (poll(t.fds, t.count, (int)wait) > 0)
                        fd = harvest(&t);
        }
        for (nfds_t i = 0; i < t.count; i++)
                (void)file_close(t.fds[i].fd);
        if (fd < 0)
                return t.status ? t.status : SP_E_HOST;
        *ret_fd = fd;
        return 0;
}

static bool all_loopback(const struct socket_address *all, size_t count)
{
        size_t i = 0;
        while (i < count && loopback_address(socket_address_raw(&all[i])))
                i++;
        return i == count;
}

static int connect_to(const struct address *at, bool loopback, int timeout_ms, struct conn **ret)
{
        struct socket_address *all;
        size_t count;
        int fd = -1;
        int r = socket_address_resolve(at->host, at->port, false, &all, &count, NULL);
        if (r < 0)
                return r;
        r = loopback && !all_loopback(all, count) ? SP_E_AUTH
                                                  : connect_any(all, count, timeout_ms, &fd);
        free(all);
        return r < 0 ? r : stream_conn_new(&transport_tcp, fd, ret);
}

static int tcp_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct address at;
        int r = address_parse(address, &at);
        return r < 0 ? r : connect_to(&at, false, timeout_ms, ret);
}

int tcp_connect_loopback(const struct address *at, int timeout_ms, struct conn **ret)
{
        return connect_to(at, true, timeout_ms, ret);
}

static int bind_one(const struct socket_address *at, bool both, int *ret_fd)
{
        int fd = socket_for(at);
        if (fd < 0)
                return stream_status(errno);
        if (!socket_bind(fd, at, both)) {
                int r = stream_status(errno);
                (void)file_close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

void tcp_name_listener(struct listener *l)
{
        struct socket_address a;
        struct address at = { .ops = &transport_tcp };
        char text[ADDRESS_MAX];
        if (!socket_own_address(l->fd, &a) || !socket_address_text(&a, at.host, &at.port))
                return;
        address_put(&at, text);
        snprintf(l->address, sizeof(l->address), "%.255s", text);
}

static int tcp_listen(const char *address, struct listener **ret)
{
        struct address at;
        struct socket_address *all, any;
        size_t count;
        int r = address_parse(address, &at);
        if (r < 0)
                return r;
        bool both = !strcmp(at.host, "*");
        if (both)
                strcpy(at.host, "::");
        r = socket_address_resolve(at.host, at.port, true, &all, &count, NULL);
        if (r < 0)
                return r;
        int fd = -1;
        r = SP_E_HOST;
        for (size_t i = 0; r == SP_E_HOST && i < count; i++)
                r = bind_one(&all[i], both, &fd);
        free(all);
        if (r == SP_E_HOST && both) { /* a host without IPv6 */
                socket_address_any_ip4(at.port, &any);
                r = bind_one(&any, false, &fd);
        }
        if (r < 0)
                return r;
        r = stream_listener_new(&transport_tcp, fd, ret);
        if (!r)
                tcp_name_listener(*ret);
        return r;
}

const struct transport_ops transport_tcp = {
        .name = "tcp",
        .caps = TRANSPORT_TAKES_TLS | TRANSPORT_ALTERABLE | TRANSPORT_PEERS | TRANSPORT_HOSTS |
                TRANSPORT_DIRECT | TRANSPORT_WIDE | TRANSPORT_ACKNOWLEDGES,
        .connect = tcp_connect,
        .listen = tcp_listen,
        .accept = stream_accept,
        .listener_close = stream_listener_close,
        .sendv = stream_sendv,
        .recvv = stream_recvv,
        .close = stream_close,
};
