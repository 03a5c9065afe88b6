/* Bytes over a Unix socket, with descriptors that go to the other process. */
#ifndef SPANCL_BASE_PASSING_H
#define SPANCL_BASE_PASSING_H

#include <sys/uio.h>

#include "base/status.h"

enum { PASSING_MAX = 3 }; /* descriptors at once */

/* Have the socket take no descriptors: nobody's close then takes as long as a socket lingers. Before Linux 6.16 they
 * come nevertheless. */
void passing_refuse(int socket);

/* Send with copies of `count` descriptors, which stay the caller's. Does not block. Returns how many bytes went;
 * SP_E_AGAIN: the other side does not keep up; SP_E_LINK: it is gone. */
SP_NODISCARD ssize_t passing_send(int socket, struct iovec *iov, size_t n, const int *fds,
                                  size_t count);

/* Receive, with up to `max` descriptors, which are the caller's, the rest of ret_fds -1. Does not block. Returns how
 * many bytes came, at least 1; SP_E_AGAIN: nothing there; SP_E_LINK: the other side is gone; SP_E_PROTO: more bytes
 * in one packet than there is room for, with no descriptor then. */
SP_NODISCARD ssize_t passing_receive(int socket, struct iovec *iov, size_t n, int *ret_fds,
                                     size_t max);

#endif
