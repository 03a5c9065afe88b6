/* Sockets between a virtual machine and its host, or within one of both (vsock(7)). An address is a
 * number of 32 bits, the CID, and a port. Other users of the same machine can listen and connect
 * there, so such a link is one to another host: "vsock:" is TLS, "vsock-plain:" the transport below.
 *
 * The kernel notices at once if the other machine has ended, but not if it is paused: no time-out
 * applies. Bytes cannot be lost or altered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/poll.h"
#include "transport/address.h"
#include "transport/stream.h"
#include "transport/tls_conn.h"
#include "transport/tls_dial.h"

static const char any[] = "any";

static int parse(const char *address, uint32_t *ret_machine, struct socket_address *ret)
{
        struct address at;
        int r = address_parse(address, &at);
        size_t digits = strspn(at.host, "0123456789");
        if (r < 0)
                return r;
        unsigned long long machine = SOCKET_VM_ANY;
        if (strcmp(at.host, any) != 0) {
                machine = strtoull(at.host, NULL, 10);
                if (at.host[digits] || digits > 10 || machine >= SOCKET_VM_ANY)
                        return SP_E_INVAL;
        }
        *ret_machine = (uint32_t)machine;
        socket_address_of_vm(*ret_machine, at.port ? at.port : SOCKET_VM_ANY, ret);
        return 0;
}

static int status_of(int error)
{
        switch (error) {
        case ECONNRESET: /* no process listens there */
                return SP_E_REFUSED;
        case ENODEV:
        case EHOSTUNREACH:
        case ENETUNREACH:
                return SP_E_HOST;
        default:
                return stream_status(error);
        }
}

/* Wait until the connection is made. An errno; 0: it is. */
static int finish(int fd, int timeout_ms)
{
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;
        int n;
        do
                n = poll(&p, 1, clock_poll_ms(deadline_ns));
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? errno : ETIMEDOUT;
        return socket_error(fd);
}

static int vsock_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct socket_address a;
        uint32_t machine;
        int r = parse(address, &machine, &a);
        if (r < 0 || machine == SOCKET_VM_ANY)
                return SP_E_INVAL;
        int fd = socket_new(&a);
        if (fd < 0)
                return status_of(errno);
        int error = socket_connect(fd, &a) ? 0 : errno;
        if (error == EINPROGRESS)
                error = finish(fd, timeout_ms);
        if (!error)
                return stream_conn_new(&transport_vsock_plain, fd, ret);
        (void)file_close(fd);
        return status_of(error);
}

static int vsock_listen(const char *address, struct listener **ret)
{
        struct socket_address a;
        struct address at = { .ops = &transport_vsock_plain };
        uint32_t machine, port;
        char text[ADDRESS_MAX];
        int r = parse(address, &machine, &a);
        if (r < 0)
                return r;
        int fd = socket_new(&a);
        if (fd < 0)
                return status_of(errno);
        if (!socket_bind(fd, &a, false) || !socket_own_address(fd, &a)) {
                r = status_of(errno);
                (void)file_close(fd);
                return r;
        }
        r = stream_listener_new(&transport_vsock_plain, fd, ret);
        if (r < 0)
                return r;
        socket_address_vm(&a, &machine, &port);
        at.port = port;
        if (machine == SOCKET_VM_ANY)
                strcpy(at.host, any);
        else
                snprintf(at.host, sizeof(at.host), "%u", machine);
        address_put(&at, text);
        snprintf((*ret)->address, sizeof((*ret)->address), "%.255s", text);
        return 0;
}

const struct transport_ops transport_vsock_plain = {
        .name = "vsock-plain",
        .caps = TRANSPORT_HOSTS | TRANSPORT_TAKES_TLS | TRANSPORT_DIRECT | TRANSPORT_WIDE,
        .connect = vsock_connect,
        .listen = vsock_listen,
        .accept = stream_accept,
        .listener_close = stream_listener_close,
        .sendv = stream_sendv,
        .recvv = stream_recvv,
        .close = stream_close,
};

/* Its conns are those of transport_tls. */
const struct transport_ops transport_vsock = {
        .name = "vsock",
        .caps = TRANSPORT_HOSTS | TRANSPORT_ENCRYPTED,
        .below = &transport_vsock_plain,
        .connect = tls_connect,
        .listen = tls_listen,
        .accept = tls_listener_accept,
        .listener_close = tls_listener_close,
};
