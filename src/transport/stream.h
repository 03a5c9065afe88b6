/* State and functions that the transports over stream sockets share; private to src/transport. */
#ifndef SPANCL_TRANSPORT_STREAM_H
#define SPANCL_TRANSPORT_STREAM_H

#include "transport/address.h"

/* Make a conn over `fd` and set TCP options. This call takes `fd` over, also when it fails.
 * SP_E_NOMEM, SP_E_INVAL. */
SP_NODISCARD int stream_conn_new(const struct transport_ops *ops, int fd, struct conn **ret);

/* Make a listener over a bound socket `fd`, taken over, and listen. The caller fills in its
 * address. SP_E_NOMEM, SP_E_BUSY. */
SP_NODISCARD int stream_listener_new(const struct transport_ops *ops, int fd,
                                     struct listener **ret);

/* struct transport_ops. */
int stream_accept(struct listener *l, struct conn **ret);
ssize_t stream_sendv(struct conn *c, const struct iovec *iov, int n);
ssize_t stream_recvv(struct conn *c, const struct iovec *iov, int n);
void stream_close(struct conn *c);
void stream_listener_close(struct listener *l);

/* The SP_E_* for an errno of connect, bind or socket. */
int stream_status(int error);

#endif
