/* Calls that send and receive bytes of a socket, for os/net/socket.h. They are inline, because every message passes
 * through them. A failed call leaves its reason in errno. No call waits. */
#ifndef SPANCL_OS_NET_SOCKET_IO_H
#define SPANCL_OS_NET_SOCKET_IO_H

#include <errno.h>

#include "os/iovec.h"
#include "os/net/socket_address.h"

/* Read bytes without removing them. Returns the number of bytes, 0 at the end, or -1. */
static inline ssize_t socket_peek(int fd, void *ret, size_t size)
{
        ssize_t r;
        do
                r = recv(fd, ret, size, MSG_PEEK | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        return r;
}

/* Send or receive bytes; also gather them from `n` pieces, or scatter them. Return the number of bytes, 0 at the end,
 * or -1. EAGAIN: none now. A received descriptor is closed. */
static inline ssize_t socket_send(int fd, const void *data, size_t size)
{
        ssize_t r;
        do
                r = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        return r;
}

static inline ssize_t socket_receive(int fd, void *ret, size_t size)
{
        ssize_t r;
        do
                r = recv(fd, ret, size, MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        return r;
}

static inline ssize_t socket_sendv(int fd, const struct iovec *iov, int n)
{
        struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
        ssize_t r;
        do
                r = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        return r;
}

static inline ssize_t socket_receivev(int fd, const struct iovec *iov, int n)
{
        struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
        ssize_t r;
        do
                r = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (r < 0 && errno == EINTR);
        return r;
}

/* Send a datagram to this address. Returns true if it was sent whole. */
static inline bool socket_send_to(int fd, const struct socket_address *to, const void *data,
                                  size_t size)
{
        ssize_t r;
        do
                r = sendto(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT, socket_address_raw(to),
                           to->size);
        while (r < 0 && errno == EINTR);
        return r >= 0 && (size_t)r == size;
}

#endif
