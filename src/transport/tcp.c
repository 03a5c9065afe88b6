#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loopback.h"
#include "base/mem.h"
#include "os/clock.h"
#include "transport/address.h"
#include "transport/socket.h"

enum {
        ATTEMPTS_MAX = 8,      /* addresses of one host that are tried */
        ATTEMPT_STAGGER = 250, /* ms before the next is tried as well (RFC 8305) */
};

static int resolve(const struct address *at, int flags, struct addrinfo **ret)
{
        char port[8];
        struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = flags | AI_NUMERICSERV };
        snprintf(port, sizeof(port), "%u", at->port);
        switch (getaddrinfo(at->host, port, &hints, ret)) {
        case 0:
                return 0;
        case EAI_MEMORY:
                return SP_E_NOMEM;
        default:
                return SP_E_HOST;
        }
}

/* Start a connect; the descriptor, or a status. */
static int attempt(const struct addrinfo *a, int *ret_fd)
{
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return socket_status(errno);
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS) {
                int r = socket_status(errno);
                close(fd);
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
        if (!t->status || t->status == SP_E_LINK || t->status == SP_E_HOST)
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
                int fd = p->fd, error = 0;
                socklen_t len = sizeof(error);
                if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
                        error = errno;
                *p = t->fds[--t->count];
                if (!error)
                        return fd;
                note(t, socket_status(error));
                close(fd);
        }
        return -1;
}

/* One address after another, each while the earlier ones go on. */
static int connect_any(const struct addrinfo *list, int timeout_ms, int *ret_fd)
{
        struct attempts t = { .count = 0 };
        int64_t deadline = (int64_t)(clock_now_ns() / 1000000) + timeout_ms;
        int fd = -1;
        while (fd < 0 && (list || t.count)) {
                if (list && t.count < ATTEMPTS_MAX) {
                        int r = attempt(list, &t.fds[t.count].fd);
                        list = list->ai_next;
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
                if (list && t.count < ATTEMPTS_MAX && wait > ATTEMPT_STAGGER)
                        wait = ATTEMPT_STAGGER;
                if (poll(t.fds, t.count, (int)wait) > 0)
                        fd = harvest(&t);
        }
        for (nfds_t i = 0; i < t.count; i++)
                close(t.fds[i].fd);
        if (fd < 0)
                return t.status ? t.status : SP_E_HOST;
        *ret_fd = fd;
        return 0;
}

static bool all_loopback(const struct addrinfo *list)
{
        while (list && loopback_address(list->ai_addr))
                list = list->ai_next;
        return !list;
}

static int connect_to(const struct address *at, bool loopback, int timeout_ms, struct conn **ret)
{
        struct addrinfo *list;
        int fd = -1;
        int r = resolve(at, 0, &list);
        if (r < 0)
                return r;
        r = loopback && !all_loopback(list) ? SP_E_AUTH : connect_any(list, timeout_ms, &fd);
        freeaddrinfo(list);
        return r < 0 ? r : socket_conn_new(&transport_tcp, fd, ret);
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

static int bind_one(const struct addrinfo *a, bool both, int *ret_fd)
{
        int one = 1, zero = 0;
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return socket_status(errno);
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (a->ai_family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? &zero : &one, sizeof(one));
        if (bind(fd, a->ai_addr, a->ai_addrlen) < 0) {
                int r = socket_status(errno);
                close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

void tcp_name_listener(struct listener *l)
{
        struct sockaddr_storage a;
        socklen_t len = sizeof(a);
        struct address at = { .ops = &transport_tcp };
        char port[8], text[ADDRESS_MAX];
        if (getsockname(l->fd, (struct sockaddr *)&a, &len) < 0 ||
            getnameinfo((struct sockaddr *)&a, len, at.host, sizeof(at.host), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV))
                return;
        at.port = (unsigned)atoi(port);
        address_put(&at, text);
        snprintf(l->address, sizeof(l->address), "%.255s", text);
}

static int tcp_listen(const char *address, struct listener **ret)
{
        struct address at;
        struct addrinfo *list;
        int r = address_parse(address, &at);
        if (r < 0)
                return r;
        bool both = !strcmp(at.host, "*");
        if (both)
                strcpy(at.host, "::");
        r = resolve(&at, AI_PASSIVE, &list);
        if (r < 0)
                return r;
        int fd = -1;
        r = bind_one(list, both, &fd);
        for (const struct addrinfo *a = list->ai_next; r == SP_E_HOST && a; a = a->ai_next)
                r = bind_one(a, both, &fd);
        freeaddrinfo(list);
        if (r == SP_E_HOST && both) { /* a host without IPv6 */
                struct sockaddr_in any = { .sin_family = AF_INET,
                                           .sin_port = htons((uint16_t)at.port) };
                struct addrinfo a = { .ai_family = AF_INET,
                                      .ai_addr = (struct sockaddr *)&any,
                                      .ai_addrlen = sizeof(any) };
                r = bind_one(&a, false, &fd);
        }
        if (r < 0)
                return r;
        r = socket_listener_new(&transport_tcp, fd, ret);
        if (!r)
                tcp_name_listener(*ret);
        return r;
}

static void tcp_listener_close(struct listener *l)
{
        close(l->fd);
        mem_free(l);
}

const struct transport_ops transport_tcp = {
        .name = "tcp",
        .caps = TRANSPORT_TAKES_TLS | TRANSPORT_ALTERABLE | TRANSPORT_PEERS | TRANSPORT_HOSTS |
                TRANSPORT_DIRECT | TRANSPORT_WIDE,
        .connect = tcp_connect,
        .listen = tcp_listen,
        .accept = socket_accept,
        .listener_close = tcp_listener_close,
        .sendv = socket_sendv,
        .recvv = socket_recvv,
        .close = socket_close,
};
