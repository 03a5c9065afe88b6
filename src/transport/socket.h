/* State and functions that the transports over stream sockets share; private to src/transport. */
#ifndef SPANCL_TRANSPORT_SOCKET_H
#define SPANCL_TRANSPORT_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

#include "transport/address.h"

/* Make a conn over `fd` and set TCP options. This call takes `fd` over, also when it fails.
 * SP_E_NOMEM, SP_E_INVAL. */
SP_NODISCARD int socket_conn_new(const struct transport_ops *ops, int fd, struct conn **ret);

/* Make a listener over a bound socket `fd`, taken over, and listen. The caller fills in its
 * address. SP_E_NOMEM, SP_E_BUSY. */
SP_NODISCARD int socket_listener_new(const struct transport_ops *ops, int fd,
                                     struct listener **ret);

/* Fill in the address of a TCP listener, as connect takes it. */
void tcp_name_listener(struct listener *l);

/* struct transport_ops. */
int socket_accept(struct listener *l, struct conn **ret);
ssize_t socket_sendv(struct conn *c, const struct iovec *iov, int n);
ssize_t socket_recvv(struct conn *c, const struct iovec *iov, int n);
void socket_close(struct conn *c);

/* Connect as transport_tcp does, but only if all addresses of the host are loopback. SP_E_AUTH: not
 * all are, and no connection was tried. */
SP_NODISCARD int tcp_connect_loopback(const struct address *at, int timeout_ms, struct conn **ret);

/* The SP_E_* for an errno of connect, bind or socket. */
int socket_status(int error);

#endif
