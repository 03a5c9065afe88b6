/* Calls that send and receive bytes of a socket, for os/net/socket.h, by Winsock. The contract is that of the
 * file of this name for Linux. */
#ifndef SPANCL_OS_WINDOWS_NET_SOCKET_IO_H
#define SPANCL_OS_WINDOWS_NET_SOCKET_IO_H

#include <errno.h>

#include "os/iovec.h"
#include "os/net/socket_address.h"

/* Read bytes without removing them. Returns the number of bytes, 0 at the end, or -1. */
ssize_t socket_peek(int fd, void *ret, size_t size);

/* Send or receive bytes; also gather them from `n` pieces, or scatter them. Return the number of bytes, 0 at the end,
 * or -1. EAGAIN: none now. */
ssize_t socket_send(int fd, const void *data, size_t size);
ssize_t socket_receive(int fd, void *ret, size_t size);
ssize_t socket_sendv(int fd, const struct iovec *iov, int n);
ssize_t socket_receivev(int fd, const struct iovec *iov, int n);

/* Send a datagram to this address. Returns true if it was sent whole. */
bool socket_send_to(int fd, const struct socket_address *to, const void *data, size_t size);

#endif
