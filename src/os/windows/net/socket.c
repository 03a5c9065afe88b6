#include "os/net/socket.h"

#include <errno.h>

#include "os/file.h"
#include "os/windows/descriptor.h"
#include "os/windows/packets.h"

#include <mstcpip.h>

enum { PIECES_MAX = 64, PIECE_MAX = 1 << 30 };

/* ---- making them ----------------------------------------------------------------------------- */

static int make(const struct socket_address *like, int type, int protocol)
{
        return descriptor_start() ? descriptor_of(socket(like->at.ss_family, type, protocol), false)
                                  : -1;
}

int socket_new_of(const struct socket_address *like, int protocol)
{
        return make(like, SOCK_STREAM, protocol);
}

int socket_new(const struct socket_address *like)
{
        return socket_new_of(like, 0);
}

/* Windows has no fork(), so no child has copies. */
void socket_close_new(void)
{
}

int socket_new_datagrams(const struct socket_address *like)
{
        return make(like, SOCK_DGRAM, 0);
}

bool socket_connect(int fd, const struct socket_address *to)
{
        if (connect(descriptor_socket(fd), socket_address_raw(to), to->size) == 0)
                return true;
        errno = WSAGetLastError() == WSAEWOULDBLOCK ? EINPROGRESS
                                                    : descriptor_error(WSAGetLastError());
        return false;
}

bool socket_connect_wait(int fd, const struct socket_address *to, unsigned timeout_ms)
{
        (void)fd, (void)to, (void)timeout_ms;
        errno = EAFNOSUPPORT; /* this port has no Unix sockets */
        return false;
}

int socket_error(int fd)
{
        int error = 0, size = sizeof(error);
        if (getsockopt(descriptor_socket(fd), SOL_SOCKET, SO_ERROR, (char *)&error, &size) < 0)
                error = WSAGetLastError();
        return descriptor_error(error);
}

/* Each option is a number. */
static bool set(int fd, int level, int name, int value)
{
        return setsockopt(descriptor_socket(fd), level, name, (const char *)&value,
                          sizeof(value)) == 0 ||
               descriptor_fail() == 0;
}

static bool get(int fd, int level, int name, int *ret)
{
        int size = sizeof(*ret);
        *ret = 0;
        return getsockopt(descriptor_socket(fd), level, name, (char *)ret, &size) == 0 ||
               descriptor_fail() == 0;
}

/* SO_REUSEADDR would let other programs take the address, too. */
bool socket_bind(int fd, const struct socket_address *at, bool both)
{
        (void)set(fd, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1);
        if (socket_address_family(at) == SOCKET_IP6)
                (void)set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both);
        return bind(descriptor_socket(fd), socket_address_raw(at), at->size) == 0 ||
               descriptor_fail() == 0;
}

bool socket_takes_both(int fd)
{
        int only;
        return get(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only) && !only;
}

bool socket_listen(int fd)
{
        return listen(descriptor_socket(fd), SOMAXCONN) == 0 || descriptor_fail() == 0;
}

int socket_accept(int fd)
{
        return descriptor_of(accept(descriptor_socket(fd), NULL, NULL), false);
}

bool socket_own_address(int fd, struct socket_address *ret)
{
        ret->size = sizeof(ret->at);
        return getsockname(descriptor_socket(fd), (struct sockaddr *)&ret->at, &ret->size) == 0 ||
               descriptor_fail() == 0;
}

bool socket_other_address(int fd, struct socket_address *ret)
{
        ret->size = sizeof(ret->at);
        return getpeername(descriptor_socket(fd), (struct sockaddr *)&ret->at, &ret->size) == 0 ||
               descriptor_fail() == 0;
}

bool socket_is_within_host(int fd)
{
        struct socket_address here, there;
        struct ip a, b;
        return socket_own_address(fd, &here) && socket_other_address(fd, &there) &&
               socket_address_ip(&here, &a) && socket_address_ip(&there, &b) && ip_is(&a, &b);
}

bool socket_is_stream(int fd)
{
        int type;
        return get(fd, SOL_SOCKET, SO_TYPE, &type) && type == SOCK_STREAM;
}

bool socket_is_listener(int fd)
{
        int listens;
        return socket_is_stream(fd) && get(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens) && listens;
}

bool socket_adopt(int fd)
{
        return file_never_wait(fd) && file_keep_from_programs(fd);
}

bool socket_other_user(int fd, unsigned *ret)
{
        (void)fd, (void)ret;
        return false;
}

int socket_other_process(int fd)
{
        (void)fd;
        return -1;
}

void socket_reset_later(int fd)
{
        const struct linger at_once = { .l_onoff = 1 };
        (void)setsockopt(descriptor_socket(fd), SOL_SOCKET, SO_LINGER, (const char *)&at_once,
                         sizeof(at_once));
}

void socket_shut(int fd)
{
        (void)shutdown(descriptor_socket(fd), SD_BOTH);
}

void socket_end_sending(int fd)
{
        (void)shutdown(descriptor_socket(fd), SD_SEND);
}

/* Make a socket that programs can also read and write like a file, which those for overlapped calls can't. */
static int new_plain(const struct socket_address *like)
{
        return descriptor_start()
                       ? descriptor_of(WSASocketW(like->at.ss_family, SOCK_STREAM, 0, NULL, 0, 0),
                                       false)
                       : -1;
}

static bool is_same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
        return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

/* Accept the connection of `to`, which has been made. Other programs' connections, which may have come before it, are
 * closed. -1: it is not among them. */
static int accept_own(int listener, int to)
{
        enum { STRANGERS_MAX = 1000 };
        struct socket_address own, other;
        if (!socket_own_address(to, &own))
                return -1;
        for (int i = 0; i < STRANGERS_MAX; i++) {
                int fd = socket_accept(listener);
                if (fd < 0)
                        return -1;
                if (socket_other_address(fd, &other) &&
                    is_same((struct sockaddr_in *)&own.at, (struct sockaddr_in *)&other.at))
                        return fd;
                (void)file_close(fd);
        }
        return -1;
}

/* Windows has no pairs of sockets. A connection over the loopback interface takes their place, if both its ends are of
 * this call. The second end, which is accepted, is of the listener's kind. */
bool socket_pair_streams(int ret[2])
{
        struct socket_address at;
        socket_address_any_ip4(0, &at);
        ((struct sockaddr_in *)&at.at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int listener = new_plain(&at), to = socket_new(&at), from = -1;
        bool ok = listener >= 0 && to >= 0 && socket_bind(listener, &at, false) &&
                  socket_listen(listener) && socket_own_address(listener, &at) &&
                  file_wait(listener) && file_wait(to) && socket_connect(to, &at);
        if (ok)
                from = accept_own(listener, to);
        ok = ok && from >= 0 && file_wait(from);
        if (listener >= 0)
                (void)file_close(listener);
        if (ok) {
                ret[0] = to;
                ret[1] = from;
                return true;
        }
        if (to >= 0)
                (void)file_close(to);
        if (from >= 0)
                (void)file_close(from);
        return false;
}

bool socket_pair_packets(int ret[2])
{
        int pair[2];
        if (!socket_pair_streams(pair))
                return false;
        for (int i = 0; i < 2; i++)
                (void)set(pair[i], IPPROTO_TCP, TCP_NODELAY, 1);
        if (file_never_wait(pair[0]) && file_never_wait(pair[1]) && packets_begin(pair)) {
                ret[0] = pair[0];
                ret[1] = pair[1];
                return true;
        }
        (void)file_close(pair[0]);
        (void)file_close(pair[1]);
        errno = ENOMEM;
        return false;
}

bool socket_port_is_free(unsigned port)
{
        struct socket_address at;
        socket_address_any_ip4(port, &at);
        int fd = socket_new_datagrams(&at);
        bool ok = fd < 0 || socket_bind(fd, &at, false);
        if (fd >= 0)
                (void)file_close(fd);
        return ok;
}

void socket_limit_sending(int fd, unsigned timeout_ms)
{
        (void)set(fd, SOL_SOCKET, SO_SNDTIMEO, (int)timeout_ms);
}

/* The system sends 10 probes. */
void socket_tune_tcp(int fd, unsigned timeout_ms)
{
        enum { PROBES = 10 };
        struct tcp_keepalive k = { .onoff = 1, .keepalivetime = 30000, .keepaliveinterval = 10000 };
        DWORD unused;
        if (timeout_ms) {
                k.keepalivetime = timeout_ms / 2 ? timeout_ms / 2 : 1;
                k.keepaliveinterval = timeout_ms / 2 / PROBES ? timeout_ms / 2 / PROBES : 1;
        }
        (void)set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        (void)WSAIoctl(descriptor_socket(fd), SIO_KEEPALIVE_VALS, &k, sizeof(k), NULL, 0, &unused,
                       NULL, NULL);
}

bool socket_tcp_state(int fd, struct socket_tcp_state *ret)
{
        (void)fd, (void)ret;
        return false;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int at_most(size_t size)
{
        return size > PIECE_MAX ? PIECE_MAX : (int)size;
}

static ssize_t count_of(int r)
{
        return r < 0 ? descriptor_fail() : r;
}

ssize_t socket_peek(int fd, void *ret, size_t size)
{
        return count_of(recv(descriptor_socket(fd), ret, at_most(size), MSG_PEEK));
}

ssize_t socket_send(int fd, const void *data, size_t size)
{
        return count_of(send(descriptor_socket(fd), data, at_most(size), 0));
}

ssize_t socket_receive(int fd, void *ret, size_t size)
{
        return count_of(recv(descriptor_socket(fd), ret, at_most(size), 0));
}

/* Convert the first pieces, at most PIECES_MAX. */
static DWORD pieces(const struct iovec *iov, int n, WSABUF ret[PIECES_MAX])
{
        DWORD count = 0;
        for (size_t all = 0; count < PIECES_MAX && count < (DWORD)n && all < PIECE_MAX; count++) {
                ret[count] = (WSABUF){ .len = (ULONG)at_most(iov[count].iov_len),
                                       .buf = iov[count].iov_base };
                all += ret[count].len;
                if (ret[count].len < iov[count].iov_len)
                        return count + 1;
        }
        return count;
}

ssize_t socket_sendv(int fd, const struct iovec *iov, int n)
{
        WSABUF all[PIECES_MAX];
        DWORD sent;
        return WSASend(descriptor_socket(fd), all, pieces(iov, n, all), &sent, 0, NULL, NULL)
                       ? descriptor_fail()
                       : (ssize_t)sent;
}

ssize_t socket_receivev(int fd, const struct iovec *iov, int n)
{
        WSABUF all[PIECES_MAX];
        DWORD received, flags = 0;
        return WSARecv(descriptor_socket(fd), all, pieces(iov, n, all), &received, &flags, NULL,
                       NULL)
                       ? descriptor_fail()
                       : (ssize_t)received;
}

bool socket_send_to(int fd, const struct socket_address *to, const void *data, size_t size)
{
        int r = sendto(descriptor_socket(fd), data, at_most(size), 0, socket_address_raw(to),
                       to->size);
        return count_of(r) >= 0 && (size_t)r == size;
}
