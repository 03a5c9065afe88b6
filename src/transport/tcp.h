/* Connections by TCP; private to src/transport. */
#ifndef SPANCL_TRANSPORT_TCP_H
#define SPANCL_TRANSPORT_TCP_H

#include "transport/address.h"

/* Connect as transport_tcp does, but only if all addresses of the host are loopback. SP_E_AUTH: not
 * all are, and no connection was tried. */
SP_NODISCARD int tcp_connect_loopback(const struct address *at, int timeout_ms, struct conn **ret);

/* Fill in the address of a TCP listener, as connect takes it. */
void tcp_name_listener(struct listener *l);

#endif
