/* Sockets between a virtual machine and its host, or within one of both (vsock(7)). An address is a
 * number of 32 bits, the CID, and a port. Other users of the same machine can listen and connect
 * there, so such a link is one to another host: "vsock:" is TLS, "vsock-plain:" the transport below.
 *
 * The kernel notices at once if the other machine has ended, but not if it is paused: no time-out
 * applies. Bytes cannot be lost or altered. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "base/mem.h"
#include "os/clock.h"
#include "transport/address.h"
#include "transport/stream.h"
#include "transport/tls_conn.h"

static const char any[] = "any";

static int parse(const char *address, struct sockaddr_vm *ret)
{
        struct address at;
        int r = address_parse(address, &at);
        size_t digits = strspn(at.host, "0123456789");
        if (r < 0)
                return r;
        *ret = (struct sockaddr_vm){ .svm_family = AF_VSOCK,
                                     .svm_port = at.port ? at.port : VMADDR_PORT_ANY,
                                     .svm_cid = VMADDR_CID_ANY };
        if (!strcmp(at.host, any))
                return 0;
        unsigned long long cid = strtoull(at.host, NULL, 10);
        if (at.host[digits] || digits > 10 || cid >= VMADDR_CID_ANY)
                return SP_E_INVAL;
        ret->svm_cid = (unsigned)cid;
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
        int error = 0, n;
        socklen_t len = sizeof(error);
        do
                n = poll(&p, 1, clock_poll_ms(deadline_ns));
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? errno : ETIMEDOUT;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
}

static int vsock_connect(const char *address, int timeout_ms, struct conn **ret)
{
        struct sockaddr_vm a;
        int r = parse(address, &a);
        if (r < 0 || a.svm_cid == VMADDR_CID_ANY)
                return SP_E_INVAL;
        int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return status_of(errno);
        int error = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0;
        if (error == EINPROGRESS)
                error = finish(fd, timeout_ms);
        if (!error)
                return stream_conn_new(&transport_vsock_plain, fd, ret);
        close(fd);
        return status_of(error);
}

static int vsock_listen(const char *address, struct listener **ret)
{
        struct sockaddr_vm a;
        socklen_t len = sizeof(a);
        struct address at = { .ops = &transport_vsock_plain };
        char text[ADDRESS_MAX];
        int r = parse(address, &a);
        if (r < 0)
                return r;
        int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return status_of(errno);
        if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
            getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
                r = status_of(errno);
                close(fd);
                return r;
        }
        r = stream_listener_new(&transport_vsock_plain, fd, ret);
        if (r < 0)
                return r;
        at.port = a.svm_port;
        if (a.svm_cid == VMADDR_CID_ANY)
                strcpy(at.host, any);
        else
                snprintf(at.host, sizeof(at.host), "%u", a.svm_cid);
        address_put(&at, text);
        snprintf((*ret)->address, sizeof((*ret)->address), "%.255s", text);
        return 0;
}

static void vsock_listener_close(struct listener *l)
{
        close(l->fd);
        mem_free(l);
}

const struct transport_ops transport_vsock_plain = {
        .name = "vsock-plain",
        .caps = TRANSPORT_HOSTS | TRANSPORT_TAKES_TLS | TRANSPORT_DIRECT | TRANSPORT_WIDE,
        .connect = vsock_connect,
        .listen = vsock_listen,
        .accept = stream_accept,
        .listener_close = vsock_listener_close,
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
