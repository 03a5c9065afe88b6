#include "os/net/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "os/net/socket_make.h"

enum { NEW_MAX = 1024 };

/* Known by their inodes, since anybody may close them, and descriptors are used again. */
static struct {
        atomic_int fd;
        atomic_ullong inode; /* 0: none */
} new[NEW_MAX];

static unsigned long long inode_of(int fd)
{
        struct stat st;
        return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

int socket_new_of(const struct socket_address *like, int protocol)
{
        static atomic_uint count;
        int fd = socket_make(like->at.ss_family, SOCK_STREAM, protocol);
        if (fd < 0)
                return fd;
        unsigned i = atomic_fetch_add(&count, 1) % NEW_MAX;
        atomic_store(&new[i].inode, 0);
        atomic_store(&new[i].fd, fd);
        atomic_store(&new[i].inode, inode_of(fd));
        return fd;
}

int socket_new(const struct socket_address *like)
{
        return socket_new_of(like, 0);
}

void socket_close_new(void)
{
        for (unsigned i = 0; i < NEW_MAX; i++) {
                unsigned long long inode = atomic_exchange(&new[i].inode, 0);
                int fd = atomic_load(&new[i].fd);
                if (inode && inode_of(fd) == inode)
                        close(fd);
        }
}

int socket_new_datagrams(const struct socket_address *like)
{
        return socket_make(like->at.ss_family, SOCK_DGRAM, 0);
}

bool socket_connect(int fd, const struct socket_address *to)
{
        return connect(fd, socket_address_raw(to), to->size) == 0;
}

bool socket_connect_wait(int fd, const struct socket_address *to, unsigned timeout_ms)
{
        int flags = fcntl(fd, F_GETFL), r;
        if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
                return false;
        /* Connecting waits while the listener's backlog is full; that wait takes the send timeout. */
        socket_limit_sending(fd, timeout_ms);
        do
                r = connect(fd, socket_address_raw(to), to->size);
        while (r < 0 && errno == EINTR);
        return r == 0 && fcntl(fd, F_SETFL, flags) == 0;
}

int socket_error(int fd)
{
        int error = 0;
        socklen_t size = sizeof(error);
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

bool socket_bind(int fd, const struct socket_address *at, bool both)
{
        static const int one = 1, zero = 0;
        enum socket_family family = socket_address_family(at);
        if (family == SOCKET_IP4 || family == SOCKET_IP6)
                (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (family == SOCKET_IP6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? &zero : &one, sizeof(one));
        return bind(fd, socket_address_raw(at), at->size) == 0;
}

bool socket_takes_both(int fd)
{
        int only = 1;
        socklen_t size = sizeof(only);
        return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && !only;
}

bool socket_listen(int fd)
{
        return listen(fd, SOMAXCONN) == 0;
}

bool socket_own_address(int fd, struct socket_address *ret)
{
        ret->size = sizeof(ret->at);
        return getsockname(fd, (struct sockaddr *)&ret->at, &ret->size) == 0 &&
               ret->size <= sizeof(ret->at);
}

bool socket_other_address(int fd, struct socket_address *ret)
{
        ret->size = sizeof(ret->at);
        return getpeername(fd, (struct sockaddr *)&ret->at, &ret->size) == 0 &&
               ret->size <= sizeof(ret->at);
}

bool socket_is_stream(int fd)
{
        int type;
        socklen_t size = sizeof(type);
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

bool socket_is_listener(int fd)
{
        int listens;
        socklen_t size = sizeof(listens);
        return socket_is_stream(fd) &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

bool socket_adopt(int fd)
{
        int flags = fcntl(fd, F_GETFL);
        return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
               fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

void socket_shut(int fd)
{
        (void)shutdown(fd, SHUT_RDWR);
}

void socket_end_sending(int fd)
{
        (void)shutdown(fd, SHUT_WR);
}

void socket_limit_sending(int fd, unsigned timeout_ms)
{
        const struct timeval t = { .tv_sec = timeout_ms / 1000,
                                   .tv_usec = timeout_ms % 1000 * 1000 };
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

bool socket_is_within_host(int fd)
{
        struct socket_address here, there;
        struct ip a, b;
        return socket_own_address(fd, &here) && socket_other_address(fd, &there) &&
               socket_address_ip(&here, &a) && socket_address_ip(&there, &b) && ip_is(&a, &b);
}

/* Failing to set one of these costs speed or patience, not correctness. */
void socket_tune_tcp(int fd, unsigned timeout_ms)
{
        enum { PROBES = 4 };
        int seconds = timeout_ms ? (int)((timeout_ms + 999) / 1000) : 0;
        int between = seconds > 2 * PROBES ? seconds / (2 * PROBES) : 1;
        int idle = seconds > PROBES * between ? seconds - PROBES * between : 1;
        int probes = seconds > idle ? (seconds - idle) / between : 1;
        const struct {
                int level, name, value;
        } options[] = {
                { IPPROTO_TCP, TCP_NODELAY, 1 },
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, timeout_ms ? idle : 30 },
                { IPPROTO_TCP, TCP_KEEPINTVL, timeout_ms ? between : 10 },
                { IPPROTO_TCP, TCP_KEEPCNT, timeout_ms ? probes : PROBES },
        };
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                                 sizeof(options[i].value));
#ifdef TCP_CONGESTION
        /* Within a host there is no path to be probed: pacing (BBR) costs half of the bandwidth and
         * more. */
        static const char reno[] = "reno";
        if (socket_is_within_host(fd))
                (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno));
#endif
}

void socket_reset_later(int fd)
{
        const struct linger at_once = { .l_onoff = 1 };
        struct socket_address own;
        if (socket_own_address(fd, &own) &&
            (own.at.ss_family == AF_INET || own.at.ss_family == AF_INET6))
                (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static bool can_bind_udp(const struct sockaddr *at, socklen_t size)
{
        const int one = 1;
        int fd = socket_make(at->sa_family, SOCK_DGRAM, 0);
        if (fd < 0)
                return true; /* the system lacks this family */
        if (at->sa_family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
        bool free = bind(fd, at, size) == 0;
        close(fd);
        return free;
}

bool socket_port_is_free(unsigned port)
{
        const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                         .sin6_port = htons((uint16_t)port) };
        return can_bind_udp((const void *)&v4, sizeof(v4)) &&
               can_bind_udp((const void *)&v6, sizeof(v6));
}
