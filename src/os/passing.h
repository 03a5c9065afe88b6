/* Sends and receives bytes over a Unix socket, with descriptors for the other process. */
#ifndef SPANCL_OS_PASSING_H
#define SPANCL_OS_PASSING_H

#include <sys/uio.h>

#include "base/status.h"

enum { PASSING_MAX = 3 }; /* descriptors at once */

/* Make the socket refuse descriptors: a received socket that lingers would make our close wait.
 * Before Linux 6.16 this has no effect. */
void passing_refuse(int socket);

/* Send bytes with copies of `count` descriptors, which stay the caller's. Does not block. Returns
 * the number of bytes sent. SP_E_AGAIN: the other side does not keep up; SP_E_LINK: it is gone. */
SP_NODISCARD ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds,
                                  size_t count);

/* Receive bytes with up to `max` descriptors, which the caller then owns; the rest of ret_fds is
 * -1. Does not block. Returns the number of bytes, at least 1. SP_E_AGAIN: nothing is there;
 * SP_E_LINK: the other side is gone; SP_E_PROTO: one packet has more bytes than there is room for;
 * no descriptor is returned then. */
SP_NODISCARD ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds,
                                     size_t max);

/* Read the first bytes of the next packet without removing it. Does not block. Returns the number of bytes; 0 or less:
 * there are none. */
ssize_t passing_peek(int socket, void *ret, size_t size);

#endif
