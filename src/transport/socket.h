/* What the transports over stream sockets share; private to src/transport. */
#ifndef SPANCL_TRANSPORT_SOCKET_H
#define SPANCL_TRANSPORT_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

#include "transport/transport.h"

/* A conn over `fd`, which this call takes over, also when it fails. TCP options are set. SP_E_NOMEM,
 * SP_E_INVAL. */
SP_NODISCARD int socket_conn_new(const struct transport_ops *ops, int fd, struct conn **ret);

/* A listener over a bound socket `fd`, taken over: listens. Its address is the caller's to fill in.
 * SP_E_NOMEM, SP_E_BUSY. */
SP_NODISCARD int socket_listener_new(const struct transport_ops *ops, int fd,
                                     struct listener **ret);

/* struct transport_ops. */
int socket_accept(struct listener *l, struct conn **ret);
ssize_t socket_sendv(struct conn *c, const struct iovec *iov, int n);
ssize_t socket_recvv(struct conn *c, const struct iovec *iov, int n);
void socket_close(struct conn *c);

/* Connect as transport_tcp does, but only to a host all of whose addresses are loopback. SP_E_AUTH: not all are,
 * and nothing was connected to. */
SP_NODISCARD int tcp_connect_loopback(const char *address, int timeout_ms, struct conn **ret);

/* Of an errno of connect, bind or socket: SP_E_*. */
int socket_status(int error);

#endif
