/* Parts of os/net/socket.h that POSIX lacks. */
#include "os/net/socket.h"

#include <linux/tcp.h> /* more of tcp_info than libc's */
#include <netinet/in.h>
#include <stddef.h>

#include "os/net/socket_make.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { STATE_CLOSE_WAIT = 8 }; /* libc's TCP_CLOSE_WAIT, whose header excludes the system's */

int socket_make(int family, int type, int protocol)
{
        return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
}

int socket_accept(int fd)
{
        return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

bool socket_other_user(int fd, unsigned *ret)
{
        struct ucred who;
        socklen_t size = sizeof(who);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
                return false;
        *ret = who.uid;
        return true;
}

bool socket_pair_streams(int ret[2])
{
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) == 0;
}

bool socket_pair_packets(int ret[2])
{
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) == 0;
}

bool socket_tcp_state(int fd, struct socket_tcp_state *ret)
{
        struct tcp_info info;
        socklen_t size = sizeof(info);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
            size < offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate))
                return false;
        *ret = (struct socket_tcp_state){
                .round_trip_ns = info.tcpi_rtt * UINT64_C(1000),
                .rate = info.tcpi_delivery_rate_app_limited ? 0 : info.tcpi_delivery_rate,
                .owes = info.tcpi_unacked || info.tcpi_probes,
                .unsent = info.tcpi_notsent_bytes != 0,
                .closed = info.tcpi_state == STATE_CLOSE_WAIT,
                .acknowledged_ms = info.tcpi_last_ack_recv,
        };
        return true;
}

int socket_other_process(int fd)
{
        int process;
        socklen_t size = sizeof(process);
        return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &size) < 0 ? -1 : process;
}
